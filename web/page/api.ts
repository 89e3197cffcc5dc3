// The service as the page sees it; the types of jobs are generated from its models. The token lives in this tab's session storage and in no other place.

import type { ErrorView, JobView as Job, ReviewView as Review } from "./views";
import { sentence } from "./words";

export interface Field {
  name: string; title: string; kind: "int" | "float" | "bool" | "text" | "choice" | "share" | "file"; default: unknown; required: boolean; choices: string[];
  bounds: string; unit: string; help: string; least?: number; most?: number;
}
export type Takes = "flows" | "trajectories";
export interface Method { name: string; summary: string; status: string; takes: Takes; fields: Field[] }
export interface Preset { name: string; k: number; source: string }
export interface Form {
  methods: Method[]; reading: Record<Takes, Field[]>; run: Field[]; audit: Field[]; sources: string[]; files: Record<string, string[]>; presets: Preset[];
}
export interface Session {
  name: string; keep_hours: number; upload_hours: number; limits: { max_upload_mib: number }; scopes: string[]; four_eyes: boolean;
}
export type { ReviewView as Review } from "./views";
/** A result of another that is to be reviewed. */
export interface Reviewed {
  id: string; kind: string; name: string; submitter: string; ended_at: string; expires_at: string; review: Review;
  result: { name: string; bytes: number; sha256: string } | null; summary?: { notes: string[]; lines: string[] } | null;
}
export interface Seen {
  columns: { name: string; type: string }[]; rows: (string | null)[][]; looks_like: Takes | null; takes: Takes;
  roles: Record<string, string>; counts: Record<string, number>; crowd_of?: string; notes: ErrorView[];
  problems: { message: string; rows: number }[]; error: ErrorView | null; part: boolean;
  /** Error that the chosen method would end with. */
  unfit: ErrorView | null;
  /** The first times as text, and as they are read. */
  times: { text: string; read: string | null }[];
  /** Time zones near the data, the nearest first. */
  near: string[];
}
export type { JobView as Job } from "./views";
export interface Manifest {
  method: { name: string; status: string; seed_given?: boolean; parameters: Record<string, unknown>; facts?: Record<string, unknown> };
  k_unit: string; cost: Record<string, unknown>; guarantees: { name: string; kind: string; statement: string; outcome: "holds" | "violated" | "not checked"; checked: string }[];
  risk?: Record<string, unknown>[]; files: Record<string, { name: string; sha256: string }>;
}

/** An error that the service answered with; its message names the fields of this page. */
export class ServiceError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly parts: ErrorView["parts"] = []) { super(message); }
}

const KEY = "crowdveil-token";
const AWAY = "The service does not answer; see whether it still runs, and try again.";
let refused: () => void = () => undefined;

export const token = (): string | null => sessionStorage.getItem(KEY);
export const remember = (value: string | null): void => (value === null ? sessionStorage.removeItem(KEY) : sessionStorage.setItem(KEY, value));
/** Called where a token is no longer known. */
export const whenRefused = (then: () => void): void => { refused = then; };

function headers(): Record<string, string> {
  const known = token();
  return known === null ? {} : { Authorization: `Bearer ${known}` };
}

async function wrong(status: number, text: string): Promise<ServiceError> {
  let error: Pick<ErrorView, "code" | "parts"> = { code: "fault", parts: [`The service answered with ${status} and no reason; try again.`] };
  try { error = JSON.parse(text).error ?? error; } catch { /* no JSON: something between us and the service answered */ }
  if (status === 401 && token() !== null) refused();
  return new ServiceError(status, error.code, sentence(error), error.parts);
}

async function asked(path: string, how: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try { answer = await fetch(path, { ...how, headers: { ...headers(), ...(typeof how.body === "string" ? { "Content-Type": "application/json" } : {}) }, cache: "no-store" }); } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ServiceError(0, "away", AWAY);
  }
  if (!answer.ok) throw await wrong(answer.status, await answer.text());
  return answer;
}

export const json = async <T>(path: string, how?: RequestInit): Promise<T> => (await asked(path, how)).json() as Promise<T>;
export const blob = async (path: string): Promise<Blob> => (await asked(path)).blob();
export const decide = (id: string, decision: "approve" | "reject", comment: string): Promise<Reviewed> =>
  json<Reviewed>(`/reviews/${id}`, { method: "POST", body: JSON.stringify({ decision, comment }) });
export const remove = (id: string): Promise<Job> => json<Job>(`/jobs/${id}`, { method: "DELETE" });

/** Send a form or a file; it is read from the disk as it is sent, never whole into memory. */
export function send<T>(path: string, body: FormData | Blob, more: Record<string, string> = {}, progress: (bytes: number) => void = () => undefined, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries({ ...headers(), ...more })) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => progress(event.loaded);
    request.onload = async () => {
      if (request.status < 300) resolve(JSON.parse(request.responseText) as T);
      else reject(await wrong(request.status, request.responseText));
    };
    request.onerror = () => reject(new ServiceError(0, "away", AWAY));
    request.onabort = () => reject(new DOMException("ended", "AbortError"));
    if (signal?.aborted) return reject(new DOMException("ended", "AbortError"));
    signal?.addEventListener("abort", () => request.abort());
    request.send(body);
  });
}

/** Ask for something without waiting for the answer, also while the page is left. */
export const leaveBehind = (path: string, method: string): void => void fetch(path, { method, headers: headers(), keepalive: true }).catch(() => undefined);

/** Put a file into the reader's folder of downloads. */
export async function download(path: string, name: string): Promise<void> {
  const address = URL.createObjectURL(await blob(path));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

export const said = (error: unknown): string => (error instanceof Error ? error.message : String(error));
export const stopped = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";
