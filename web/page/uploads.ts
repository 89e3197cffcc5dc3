// Files that are sent once, in chunks: previews and jobs name them by id. A broken connection costs one chunk.
import { json, leaveBehind, send, ServiceError } from "./api";
import type { UploadView } from "./views";

const CHUNK = 4 << 20;
const [TRIES, WAIT_MS, WAIT_MOST_MS] = [7, 500, 8000];

class Upload {
  private id = "";
  private received = 0;
  private under = 0;
  private pump: Promise<void> | null = null;
  private readonly control = new AbortController();
  private watchers = new Set<() => void>();

  constructor(private readonly file: File) {}

  /** Wait until this many bytes arrived, and return the id. */
  async until(bytes: number, progress: (share: number) => void, signal: AbortSignal): Promise<string> {
    const wanted = Math.min(bytes, this.file.size);
    this.pump ??= this.run().finally(() => { this.pump = null; });
    const failed = this.pump;
    await new Promise<void>((resolve, reject) => {
      const look = () => {
        progress(Math.min((this.received + this.under) / wanted, 1));
        if (this.id && this.received >= wanted) done();
      };
      const end = (then: () => void) => () => { this.watchers.delete(look); signal.removeEventListener("abort", stop); then(); };
      const done = end(resolve), stop = end(() => reject(new DOMException("ended", "AbortError")));
      this.watchers.add(look);
      if (signal.aborted) return stop();
      signal.addEventListener("abort", stop);
      failed.then(look, (problem) => end(() => reject(problem))());
      look();
    });
    return this.id;
  }

  share(): number { return (this.received + this.under) / Math.max(this.file.size, 1); }

  /** Begin again: the service knows it no longer. */
  expire(): void { this.id = ""; this.received = 0; }

  remove(): void {
    this.control.abort();
    if (this.id) leaveBehind(`/uploads/${this.id}`, "DELETE");
  }

  watch(look: () => void): () => void {
    this.watchers.add(look);
    return () => this.watchers.delete(look);
  }

  private changed(): void { for (const look of [...this.watchers]) look(); }

  private async run(): Promise<void> {
    for (let failures = 0; !this.id || this.received < this.file.size; ) {
      try {
        await this.step();
        failures = 0;
      } catch (problem) {
        if (!(problem instanceof ServiceError) || this.control.signal.aborted) throw problem;
        const passing = problem.status === 0 || problem.status === 409 || problem.status === 503;
        if (problem.status === 404 && failures === 0) this.expire();
        else if (!passing || failures >= TRIES) throw problem;
        await new Promise((then) => setTimeout(then, Math.min(WAIT_MS * 2 ** failures++, WAIT_MOST_MS)));
        if (this.id) await json<UploadView>(`/uploads/${this.id}`).then(({ received }) => { this.received = received; }, () => undefined);
      }
    }
  }

  private async step(): Promise<void> {
    if (!this.id) {
      const { id, received } = await json<UploadView>("/uploads", { method: "POST", body: JSON.stringify({ name: this.file.name, bytes: this.file.size }) });
      [this.id, this.received] = [id, received];
      if (this.control.signal.aborted) return this.remove();
    }
    const chunk = this.file.slice(this.received, this.received + CHUNK);
    try {
      const state = await send<UploadView>("PATCH", `/uploads/${this.id}`, chunk, { "Upload-Offset": String(this.received), "Content-Type": "application/octet-stream" },
        (bytes) => { this.under = Math.min(bytes, chunk.size); this.changed(); }, this.control.signal);
      this.received = state.received;
    } finally { this.under = 0; }
    this.changed();
  }
}

const known = new Map<File, Upload>();

function upload(file: File): Upload {
  const found = known.get(file) ?? new Upload(file);
  known.set(file, found);
  return found;
}

/** Send files, each up to the bytes that are needed, and use their ids; once more where the service removed one of them. */
export async function withUploads<T>(files: Record<string, File>, needed: (name: string) => number, use: (ids: Record<string, string>) => Promise<T>,
  progress: (share: number) => void, signal: AbortSignal): Promise<T> {
  const full = Object.entries(files).filter(([, file]) => file.size > 0);
  const shares = full.map(() => 0), total = full.reduce((sum, [, file]) => sum + file.size, 0);
  for (let turn = 0; ; turn++) {
    const ids = await Promise.all(full.map(async ([name, file], n) => [name, await upload(file).until(needed(name), (share) => {
      shares[n] = share;
      progress(full.reduce((sum, [, one], i) => sum + (shares[i] * one.size) / total, 0));
    }, signal)]));
    try { return await use(Object.fromEntries(ids)); } catch (problem) {
      if (!(problem instanceof ServiceError) || problem.status !== 404 || turn > 0) throw problem;
      for (const [, file] of full) upload(file).expire();
    }
  }
}

/** Remove files from the service that are no longer needed. */
export function forget(...files: (File | null | undefined)[]): void {
  for (const file of files) if (file) { known.get(file)?.remove(); known.delete(file); }
}

export const forgetAll = (): void => forget(...known.keys());

/** How much of a file was sent, and a call whenever that changes. */
export const shareOf = (file: File): number => known.get(file)?.share() ?? 0;
export const watch = (file: File, look: () => void): (() => void) => upload(file).watch(look);
