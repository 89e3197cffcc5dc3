// Files are sent once: previews and jobs name them by id.
import { removeUpload, ServiceError, stopped, upload } from "./api";
import type { UploadView } from "./views";

/** An upload; `sentId` is its id once all of it was sent. */
interface Upload { id: Promise<string>; sentId: string | null; sent: number; control: AbortController }
const uploads = new Map<File, Upload>();
const PROGRESS_MS = 200;

/** Send a file unless that was done. */
function uploaded(file: File): Upload {
  const known = uploads.get(file);
  if (known) return known;
  const control = new AbortController(), path = `/uploads?name=${encodeURIComponent(file.name)}`;
  const progress = (bytes: number) => { made.sent = Math.min(bytes, file.size); };
  const id = upload<UploadView>(path, file, progress, control.signal).then((view) => {
    made.sentId = view.id;
    return view.id;
  }, (problem) => {
    uploads.delete(file);
    throw problem;
  });
  const made: Upload = { id, sentId: null, sent: 0, control };
  uploads.set(file, made);
  return made;
}

/** Send files, and use their ids; once more where the service has removed one of them. */
export async function withUploads<T>(
  files: Record<string, File>, use: (ids: Record<string, string>) => Promise<T>, progress: (share: number) => void,
  signal: AbortSignal,
): Promise<T> {
  const full = Object.entries(files).filter(([, file]) => file.size > 0);
  const total = full.reduce((sum, [, file]) => sum + file.size, 0);
  const sent = () => full.reduce((sum, [, file]) => sum + uploaded(file).sent, 0) / Math.max(total, 1);
  const attempt = async () => {
    const ids = await Promise.all(full.map(async ([name, file]) => [name, await uploaded(file).id]));
    progress(1);
    if (signal.aborted) throw new DOMException("stopped", "AbortError");
    return use(Object.fromEntries(ids));
  };
  const timer = setInterval(() => { if (!signal.aborted) progress(sent()); }, PROGRESS_MS);
  try {
    return await attempt();
  } catch (problem) {
    if (stopped(problem) || !(problem instanceof ServiceError) || problem.status !== 404) throw problem;
    for (const [, file] of full) uploads.delete(file);
    return await attempt();
  } finally { clearInterval(timer); }
}

/** Remove files from the service that are no longer needed. */
export function forget(...files: (File | null | undefined)[]): void {
  for (const file of files) {
    const known = file && uploads.get(file);
    if (!known) continue;
    uploads.delete(file);
    known.control.abort();
    if (known.sentId !== null) removeUpload(known.sentId); // at once: the token may be gone soon
  }
}

export const forgetAll = (): void => forget(...uploads.keys());
