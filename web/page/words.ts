// Labels and texts of the page.
import type { Field, Form, Takes } from "./api";
import type { ErrorView } from "./views";

/** Titles of parameters by name, as the models of the service have them. */
const titles = new Map<string, string>();

export function learnTitles(form: Form): void {
  const fields = [...Object.values(form.reading), ...form.methods.map((each) => each.fields), form.run, form.audit];
  for (const { name, title } of fields.flat()) if (!titles.has(name)) titles.set(name, title);
}

/** Columns that a table can have; coordinates are named together, as LON,LAT of the origin or the destination. */
const COORDINATES: Record<string, string> = {
  origin_lon: "Origin longitude", origin_lat: "Origin latitude",
  destination_lon: "Destination longitude", destination_lat: "Destination latitude",
};
export const ROLES: Record<Takes, string[]> = {
  flows: ["origin", "destination", "time", "user", ...Object.keys(COORDINATES), "volume", "people", "weight"],
  trajectories: ["lat", "lon", "time", "trajectory", "user"],
};
export const KINDS: Record<Takes, string> = { flows: "Trips or flows", trajectories: "Trajectories" };
export const STATUSES: Record<string, string> = {
  proven: "Proven: the guarantee follows from what the method does.",
  argued: "Argued: the guarantee rests on an argument with stated assumptions.",
  heuristic: "Heuristic: no guarantee of anonymity, only measured risk.",
};
export const STATES: Record<string, string> = {
  queued: "Waiting", running: "Running", done: "Done", failed: "Failed", cancelled: "Cancelled", expired: "Removed",
  awaiting: "Awaiting review", approved: "Approved", rejected: "Rejected",
};
export const STAGES = ["reading", "anonymizing", "writing", "verifying", "attacking", "reporting", "packing"];
const ATTACKS: Record<string, string> = {
  "homogeneity-area": "Destination area is certain", "homogeneity-tile": "Destination tile is certain",
  "minimum-group-size": "Flows of fewer than k", "singleton-margins": "Sums of fewer than k",
  differencing: "Differences of fewer than k", dominance: "Record of the person who has most of a group",
};
export const attackTitle = (name: string): string => ATTACKS[name] ?? `Person found by ${spoken(name).toLowerCase()}`;

/** The label of a parameter or column. */
export const label = (name: string): string => titles.get(name) ?? COORDINATES[name] ?? spoken(name);

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A name of the program in plain words. */
export const spoken = (name: string): string => capital(name.replace(/[_-]/g, " "));

/** An error as one sentence: parameters have the labels of their fields, and files keep their names. */
export function sentence({ parts }: Pick<ErrorView, "parts">): string {
  return parts.map((part, at) => {
    if (typeof part === "string") return at === 0 ? capital(part) : part;
    if (part.subject) return `${part.kind === "name" ? part.name : label(part.name)}: `;
    return part.kind === "name" ? part.name : `“${label(part.name)}”`;
  }).join("");
}

/** A sentence that names options of the command line, with the labels of their fields. */
export const withLabels = (text: string): string =>
  text.replace(/--([a-z][a-z0-9-]*)/g, (_, name: string) => `“${label(name.replace(/-/g, "_"))}”`);

export const number = (value: number): string => value.toLocaleString("en");
export const percent = (share: number): string => `${number(Number((100 * share).toPrecision(12)))}%`;

/** The value of a field as text to type; empty for none. */
export function typed(field: Field, value: unknown): string {
  if (value === null || value === undefined) return "";
  return field.kind === "share" && typeof value === "number" ? percent(value) : String(value);
}

export function size(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB"];
  let at = 0;
  for (; bytes >= 1000 && at < units.length - 1; at++) bytes /= 1000;
  return `${bytes.toLocaleString("en", { maximumSignificantDigits: 3 })} ${units[at]}`;
}

export const moment = (iso: string | null): string =>
  iso === null ? "–" : new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const duration = (seconds: number): string => seconds < 60
  ? `${seconds.toLocaleString("en", { maximumSignificantDigits: 2 })} s`
  : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;

/** A value of a manifest for readers. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return number(value);
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value !== "object") return String(value);
  return Object.entries(value).map(([name, inner]) => `${name.replace(/_/g, " ")} ${shown(inner)}`).join(", ");
}
