// The service as the page sees it. The token lives in the session storage of this tab and nowhere else.
import type { ErrorView, JobView, ReviewView } from "./views";
import { sentence } from "./words";

export interface Field {
  name: string; title: string; default: unknown; required: boolean; choices: string[]; bounds: string; unit: string;
  kind: "int" | "float" | "bool" | "text" | "choice" | "share" | "file"; help: string; least?: number; most?: number;
}
export type Takes = "flows" | "trajectories";
export interface Method { name: string; summary: string; status: string; takes: Takes; fields: Field[] }
export interface Preset { name: string; k: number; source: string }
export interface Form {
  methods: Method[]; reading: Record<Takes, Field[]>; run: Field[]; audit: Field[]; sources: string[];
  files: Record<string, string[]>; presets: Preset[];
}
export interface Session { name: string; keep_hours: number; upload_hours: number; scopes: string[] }

/** A result of another user that awaits review, or was reviewed. */
export interface Reviewed {
  id: string; kind: string; name: string; submitter: string; ended_at: string; review: ReviewView;
  result: JobView["result"]; summary?: JobView["summary"];
}

/** The preview of a file. */
export interface Preview {
  columns: { name: string; type: string }[]; rows: (string | null)[][]; looks_like: Takes | null; takes: Takes;
  roles: Record<string, string>; counts: Record<string, number>; crowd_of?: string; notes: ErrorView[];
  problems: { message: string; rows: number }[]; error: ErrorView | null;
  /** Whether only the beginning of the file was read. */
  part: boolean;
  /** The error that the chosen method would fail with. */
  unfit: ErrorView | null;
  /** The first times as text, and as they are read. */
  times: { text: string; read: string | null }[];
  /** Time zones near the data, the nearest first. */
  near: string[];
}

export interface Manifest {
  method: { name: string; status: string; parameters: Record<string, unknown> };
  cost: Record<string, unknown>; risk?: Record<string, unknown>[] | null; files: Record<string, { name: string }>;
  guarantees: {
    name: string; kind: string; statement: string; outcome: "holds" | "violated" | "not checked"; checked: string;
  }[];
}

/** An error that the service answered with; its message names the fields of this page. */
export class ServiceError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) { super(message); }
}

const KEY = "crowdveil-token";
let refused: () => void = () => undefined;

export const token = (): string | null => sessionStorage.getItem(KEY);
export const remember = (value: string): void => sessionStorage.setItem(KEY, value);
export const forgetToken = (): void => sessionStorage.removeItem(KEY);
/** Call a function when the service rejects the token. */
export const whenRefused = (then: () => void): void => { refused = then; };

function headers(): Record<string, string> {
  const known = token();
  return known === null ? {} : { Authorization: `Bearer ${known}` };
}

function failure(status: number, text: string): ServiceError {
  let error: Pick<ErrorView, "code" | "parts"> = {
    code: "fault", parts: [`The service answered with ${status} and no reason; try again.`],
  };
  try { error = JSON.parse(text).error ?? error; } catch { /* a proxy answered, without JSON */ }
  if (status === 401 && token() !== null) refused();
  return new ServiceError(status, error.code, sentence(error));
}

const away = (): ServiceError =>
  new ServiceError(0, "away", "The service does not answer; see whether it still runs, and try again.");

async function request(path: string, how: RequestInit = {}): Promise<Response> {
  const type: Record<string, string> = typeof how.body === "string" ? { "Content-Type": "application/json" } : {};
  const answer = await fetch(path, { ...how, headers: { ...headers(), ...type }, cache: "no-store" })
    .catch((error) => { throw stopped(error) ? error : away(); });
  if (!answer.ok) throw failure(answer.status, await answer.text());
  return answer;
}

export const json = async <T>(path: string, how?: RequestInit): Promise<T> =>
  (await request(path, how)).json() as Promise<T>;
export const blob = async (path: string): Promise<Blob> => (await request(path)).blob();
export const post = <T>(path: string, body: FormData, signal: AbortSignal): Promise<T> =>
  json<T>(path, { method: "POST", body, signal });
export const remove = (id: string): Promise<JobView> => json<JobView>(`/jobs/${id}`, { method: "DELETE" });

/** Send a file. The browser reads it from the disk in pieces. */
export function upload<T>(
  path: string, file: File, progress: (bytes: number) => void, signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest(); // fetch does not report the progress of a request
    sending.open("POST", path);
    for (const [name, value] of Object.entries(headers())) sending.setRequestHeader(name, value);
    sending.setRequestHeader("Content-Type", "application/octet-stream");
    sending.upload.onprogress = (event) => progress(event.loaded);
    sending.onload = () => {
      if (sending.status < 300) resolve(JSON.parse(sending.responseText) as T);
      else reject(failure(sending.status, sending.responseText));
    };
    sending.onerror = () => reject(away());
    sending.onabort = () => reject(new DOMException("stopped", "AbortError"));
    signal.addEventListener("abort", () => sending.abort());
    sending.send(file);
  });
}

/** Remove an upload without waiting for the answer, even while the user leaves the page. */
export const removeUpload = (id: string): void =>
  void fetch(`/uploads/${id}`, { method: "DELETE", headers: headers(), keepalive: true }).catch(() => undefined);

/** Save a file in the folder of downloads. */
export async function download(path: string, name: string): Promise<void> {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await blob(path));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export const said = (error: unknown): string => (error instanceof Error ? error.message : String(error));
export const stopped = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";
