// Previews: the service reads the file as a job would, again whenever something changes how it is read.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Form, post, type Preview, said, ServiceError, stopped, type Takes } from "./api";
import { type Draft, empty, filesOf, isPart, previewForm, previewKey } from "./draft";
import { withUploads } from "./uploads";
import type { ErrorView } from "./views";
import { sentence } from "./words";

/** The work of the user, which survives a visit to another page. `seenFor` is the key of the last preview. */
export interface Work {
  draft: Draft; seen: Preview | null; seenFor: string;
  /** The error of the last job, until another is sent. */
  failed: ErrorView | null;
}
export const newWork = (): Work => ({ draft: empty(), seen: null, seenFor: "", failed: null });
const WAIT_MS = 500;

const unread = (takes: Takes): Preview => ({
  columns: [], rows: [], looks_like: null, takes, roles: {}, counts: {}, notes: [], problems: [], error: null,
  part: false, unfit: null, times: [], near: [],
});

const clock = (zone: string, month: number): string =>
  new Date(Date.UTC(2026, month, 1)).toLocaleString("en", { timeZone: zone });
const sameClock = (one: string, other: string): boolean =>
  [0, 6].every((month) => clock(one, month) === clock(other, month));

/** Set a time zone for data with times: that of the browser if it is near the data, else the nearest. */
function withTimeZone(draft: Draft, seen: Preview): Draft {
  const failed = seen.error !== null && seen.problems.length === 0; // unusable rows say nothing about the others
  const chosen = draft.values.tz !== undefined && draft.zoneFrom === null;
  if (!seen.roles.time || failed || chosen) return draft;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone, nearest = seen.near[0];
  const isNear = nearest === undefined || seen.near.includes(own) || sameClock(own, nearest);
  const tz = isNear ? own : nearest;
  return { ...draft, values: { ...draft.values, tz }, zoneFrom: nearest === undefined ? "browser" : "map" };
}

export interface PreviewState {
  /** The share of the files that was sent; null where no preview runs. */
  share: number | null;
  error: string;
  /** Whether the form has changed since the preview. */
  pending: boolean;
}

export function usePreview(form: Form, work: Work, change: (work: Work) => void): PreviewState {
  const [share, setShare] = useState<number | null>(null), [error, setError] = useState("");
  const { draft, seen } = work, latest = useRef(work);
  latest.current = work;
  const keyFor = (one: Draft, of: Preview | null) =>
    previewKey(form, one, of?.part ? undefined : of?.counts.crowd, Boolean(of?.unfit));
  const key = keyFor(draft, seen), pending = key !== work.seenFor;
  const read = async (signal: AbortSignal) => {
    setShare(0);
    setError("");
    const { data, ...others } = filesOf(form, draft), files = isPart(data) ? others : { data, ...others };
    const ask = (ids: Record<string, string>) => post<Preview>("/preview", previewForm(form, draft, ids), signal);
    try {
      const found = await withUploads(files, ask, setShare, signal), now = latest.current;
      const next = withTimeZone({ ...now.draft, takes: now.draft.takes ?? found.takes }, found);
      change({ ...now, draft: next, seen: found, seenFor: draft.takes === null ? "" : keyFor(draft, found) });
    } catch (problem) {
      if (stopped(problem)) return;
      setError(said(problem));
      // A job can run even if its preview takes too long.
      const now = latest.current, takes = now.draft.takes ?? "flows";
      const isLong = problem instanceof ServiceError && problem.code === "too_long";
      const next = isLong ? { ...now.draft, takes } : now.draft, found = isLong ? unread(takes) : null;
      change({ ...now, draft: next, seen: found, seenFor: keyFor(next, found) });
    }
    setShare(null);
  };
  useEffect(() => {
    if (!draft.data || !pending) return;
    const control = new AbortController();
    const timer = setTimeout(() => void read(control.signal), seen ? WAIT_MS : 0);
    return () => {
      clearTimeout(timer);
      control.abort();
      setShare(null);
    };
  }, [key]);
  return { share, error, pending };
}

/** The only temporary reason: a job that is started meanwhile is sent afterwards. */
export const READING = "The file is being read again…";

/** Return whether rows that cannot be used are left out. */
export const leavesOut = (draft: Draft): boolean => draft.values.drop_invalid === true;

/** Return why the job cannot be sent yet, in a sentence; empty where it can. */
export function blocked({ seen, draft }: Work, { pending }: PreviewState): string {
  if (!seen) return "The preview of the file is not ready.";
  const rows = seen.problems.length > 0, wrong = seen.error !== null && !(rows && leavesOut(draft));
  if (pending) return READING;
  if (wrong && rows) return "Some rows cannot be used. Leave them out in step 1, or change how they are read.";
  if (wrong) return `${sentence(seen.error!)} See step 1.`;
  return seen.unfit ? sentence(seen.unfit) : "";
}
