// Previews: the service reads the file as a job would, again whenever something changes how it is read.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Form, said, type Seen, send, ServiceError, stopped, type Takes } from "./api";
import { bare, type Draft, empty, filesOf, isPart, light, methodKey, previewForm, reading } from "./draft";
import { withUploads } from "./uploads";
import type { ErrorView } from "./views";
import { sentence } from "./words";

export interface Work {
  draft: Draft; seen: Seen | null; seenFor: string;
  /** The error of the last job, until another is sent. */
  failed: ErrorView | null;
}
export const newWork = (): Work => ({ draft: empty(), seen: null, seenFor: "", failed: null });
const WAIT_MS = 500;

/** What a preview depends on: as long as this is the same, none is needed. */
function previewKey(form: Form, draft: Draft, seen: Seen | null): string {
  if (!draft.data) return "";
  const { drop_invalid: _, ...options } = draft.takes ? reading(form, draft, draft.takes) : {};
  const files = Object.values(filesOf(form, draft, draft.takes)).map((f) => [f.name, f.size, f.lastModified]);
  return JSON.stringify([files, draft.takes, options, draft.takes && methodKey(form, draft, draft.takes, seen?.part ? undefined : seen?.counts.crowd, Boolean(seen?.unfit))]);
}

const unseen = (takes: Takes): Seen => ({
  columns: [], rows: [], looks_like: null, takes, roles: {}, counts: {}, notes: [], problems: [], error: null, part: false, unfit: null, times: [], near: [],
});

const clock = (zone: string, month: number): string => new Date(Date.UTC(2026, month, 1)).toLocaleString("en", { timeZone: zone });
const sameClock = (one: string, other: string): boolean => [0, 6].every((month) => clock(one, month) === clock(other, month));

/** A time zone for data with times: the browser's if it is near the data, else the nearest; none where one was chosen. */
function guessed(draft: Draft, seen: Seen): Draft {
  const unread = seen.error !== null && seen.problems.length === 0; // rows that can be left out say nothing about the others
  if (!seen.roles.time || unread || (draft.values.tz !== undefined && draft.zoneFrom === null)) return draft;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone, [nearest] = seen.near;
  const tz = nearest === undefined || seen.near.includes(own) || sameClock(own, nearest) ? own : nearest;
  return { ...draft, values: { ...draft.values, tz }, zoneFrom: nearest === undefined ? "browser" : "map" };
}

export function usePreview(form: Form, work: Work, change: (work: Work) => void) {
  const [share, setShare] = useState<number | null>(null), [error, setError] = useState(""), [again, setAgain] = useState(0);
  const key = previewKey(form, work.draft, work.seen), latest = useRef(work);
  latest.current = work;
  const heavy = work.seen !== null && !light(work.draft);
  useEffect(() => {
    if (!work.draft.data || key === work.seenFor || (heavy && again === 0)) return;
    const control = new AbortController();
    const timer = setTimeout(async () => {
      setShare(0);
      setError("");
      const { draft } = work, part = isPart(draft.data!);
      try {
        const { data, ...others } = filesOf(form, draft, draft.takes), needed = part ? others : { data, ...others };
        const seen = await withUploads(needed, (ids) => send<Seen>("/preview", previewForm(form, draft, ids), {}, undefined, control.signal),
          setShare, control.signal);
        const now = latest.current.draft, takes = now.takes ?? seen.takes;
        const plain = draft.takes !== null ? draft : { ...bare(draft), method: draft.method, values: draft.values }; // what this preview was of
        change({ ...latest.current, draft: guessed({ ...now, takes }, seen), seen, seenFor: draft.takes === null ? "" : previewKey(form, { ...plain, takes }, seen) });
      } catch (problem) {
        if (stopped(problem)) return;
        setError(said(problem));
        // A file whose preview takes too long can be run all the same.
        const now = latest.current, takes = now.draft.takes ?? "flows", long = problem instanceof ServiceError && problem.code === "too_long";
        const seen = long ? unseen(takes) : null, next = long ? { ...now.draft, takes } : now.draft;
        change({ ...now, draft: next, seen, seenFor: previewKey(form, next, seen) });
      }
      setAgain(0);
      setShare(null);
    }, work.seen ? WAIT_MS : 0);
    return () => { clearTimeout(timer); control.abort(); setShare(null); };
  }, [key, again]);
  return { share, error, stale: heavy && key !== work.seenFor, pending: key !== work.seenFor, readAgain: () => setAgain(again + 1) };
}

/** The reason that passes by itself: a job that is asked for meanwhile is sent afterwards. */
export const READING = "The file is being read again…";

/** Why the job cannot be sent yet, in a sentence; empty where it can. */
export function blocked({ seen, draft }: Work, { pending, stale }: { pending: boolean; stale: boolean }): string {
  if (!seen) return "The preview of the file is not ready.";
  const rows = seen.problems.length > 0, wrong = seen.error !== null && !(rows && draft.values.drop_invalid === true);
  if (pending && (!stale || wrong || seen.unfit)) return stale ? "The file must be read again, in step 1." : READING;
  if (wrong && rows) return "Some rows cannot be used. Leave them out in step 1, or change how they are read.";
  if (wrong) return `${sentence(seen.error!)} See step 1.`;
  return seen.unfit ? sentence(seen.unfit) : "";
}

