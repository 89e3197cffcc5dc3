// Which page is asked for: the part of the address behind #.
export const route = (): string[] => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);
export const go = (path: string): void => { location.hash = path; };
