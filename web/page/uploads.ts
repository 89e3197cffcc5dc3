// Files that are sent once: previews and jobs name them by id.
import { leaveBehind, send, ServiceError } from "./api";
import type { UploadView } from "./views";

class Upload {
  private sent = 0;
  private id: Promise<string> | null = null;
  private kept: string | null = null;
  private readonly control = new AbortController();
  private watchers = new Set<() => void>();

  constructor(private readonly file: File) {}

  /** Send the file unless that was done, and return its id. */
  ready(): Promise<string> {
    this.id ??= this.post().catch((problem) => { this.expire(); throw problem; });
    return this.id;
  }

  share(): number { return this.sent / Math.max(this.file.size, 1); }

  /** Send it again next time: the service no longer has it. */
  expire(): void { this.id = this.kept = null; this.sent = 0; this.changed(); }

  remove(): void {
    this.control.abort();
    if (this.kept !== null) leaveBehind(`/uploads/${this.kept}`, "DELETE"); // at once: the token may be gone soon
  }

  watch(look: () => void): () => void {
    this.watchers.add(look);
    return () => this.watchers.delete(look);
  }

  private changed(): void { for (const look of [...this.watchers]) look(); }

  private async post(): Promise<string> {
    const headers = { "Content-Type": "application/octet-stream" };
    const progress = (bytes: number) => { this.sent = Math.min(bytes, this.file.size); this.changed(); };
    const path = `/uploads?name=${encodeURIComponent(this.file.name)}`;
    this.kept = (await send<UploadView>(path, this.file, headers, progress, this.control.signal)).id;
    return this.kept;
  }
}

const known = new Map<File, Upload>();

function upload(file: File): Upload {
  const found = known.get(file) ?? new Upload(file);
  known.set(file, found);
  return found;
}

/** Send files, and use their ids; once more where the service removed one of them. */
export async function withUploads<T>(files: Record<string, File>, use: (ids: Record<string, string>) => Promise<T>,
  progress: (share: number) => void, signal: AbortSignal): Promise<T> {
  const full = Object.entries(files).filter(([, file]) => file.size > 0);
  const total = full.reduce((sum, [, file]) => sum + file.size, 0);
  const look = () => progress(full.reduce((sum, [, file]) => sum + (upload(file).share() * file.size) / total, 0));
  const watched = full.map(([, file]) => upload(file).watch(look));
  try {
    for (let turn = 0; ; turn++) {
      const ids = await Promise.all(full.map(async ([name, file]) => [name, await upload(file).ready()]));
      if (signal.aborted) throw new DOMException("ended", "AbortError");
      try { return await use(Object.fromEntries(ids)); } catch (problem) {
        if (!(problem instanceof ServiceError) || problem.status !== 404 || turn > 0) throw problem;
        for (const [, file] of full) upload(file).expire();
      }
    }
  } finally { for (const end of watched) end(); }
}

/** Remove files from the service that are no longer needed. */
export function forget(...files: (File | null | undefined)[]): void {
  for (const file of files) if (file) { known.get(file)?.remove(); known.delete(file); }
}

export const forgetAll = (): void => forget(...known.keys());

/** How much of a file was sent, and a call whenever that changes. */
export const shareOf = (file: File): number => known.get(file)?.share() ?? 0;
export const watch = (file: File, look: () => void): (() => void) => upload(file).watch(look);
