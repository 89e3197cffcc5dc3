// One job: its progress, its error if it failed, and its result.
import { useEffect, useState } from "preact/hooks";
import { json, remove, said, ServiceError } from "./api";
import { Action, Alert, Asked, Badge, Missing, Title } from "./parts";
import { Result } from "./result";
import type { JobView } from "./views";
import { capital, duration, moment, sentence, spoken, STAGES, STATES } from "./words";

const [SOON_MS, LATER_MS, AWAY_MS] = [400, 2000, 4000];
const isOpen = (job: JobView): boolean => job.state === "queued" || job.state === "running";

/** Ask for a job until it has ended; a service that was restarted comes back. */
function useJob(id: string): { job: JobView | null; error: string; away: boolean; again: () => void } {
  const [job, setJob] = useState<JobView | null>(null), [error, setError] = useState("");
  const [away, setAway] = useState(false), [turn, setTurn] = useState(0);
  useEffect(() => {
    let timer = 0, left = false, wait = SOON_MS;
    const ask = async () => {
      const seen = await json<JobView>(`/jobs/${id}`).catch((problem: unknown) => problem as Error);
      if (left) return;
      const isAway = seen instanceof ServiceError && (seen.status === 0 || seen.status >= 500);
      setAway(isAway);
      if (isAway) timer = window.setTimeout(ask, AWAY_MS);
      else if (seen instanceof Error) setError(said(seen));
      else {
        setJob(seen);
        if (isOpen(seen)) timer = window.setTimeout(ask, (wait = Math.min(wait * 1.1, LATER_MS)));
      }
    };
    void ask();
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [id, turn]);
  return { job, error, away, again: () => setTurn(turn + 1) };
}

export function JobPage({ id, reuse }: { id: string; reuse: (job: JobView) => void }) {
  const { job, error, away, again } = useJob(id);
  if (error) return <Missing title="No such job" error={error} link="#/jobs">To your jobs</Missing>;
  if (!job) return <p role="status">Loading the job…</p>;
  const done = job.state === "done", isForm = job.kind === "anonymize";
  const cancel = async () => {
    await remove(id);
    again();
  };
  const back = (kind: string) =>
    <p><button type="button" class={kind} onClick={() => reuse(job)}>Back to the form</button></p>;
  return <>
    <Title above={<>{job.files.data === undefined ? spoken(job.kind) : job.name} · {moment(job.created_at)}</>}>
      {job.files.data ?? job.name}</Title>
    <p class="state" role="status"><Badge state={job.state} />
      {job.seconds !== null && <span>took {duration(job.seconds)}</span>}
      {done && job.review && <Badge state={job.review.state} />}
      {done && <span>kept until {moment(job.expires_at)}</span>}</p>
    {done && <ReviewNote job={job} />}
    {away && <Alert>The service does not answer just now; the job goes on, and this page asks again.</Alert>}
    {isOpen(job) && <><Progress job={job} /><Action act={cancel} busy="Cancelling…">Cancel</Action></>}
    {job.state === "failed" && <>
      <Alert>{job.error ? sentence(job.error) : "The job failed."}</Alert>
      {isForm && back("main")}
      <Asked job={job} /></>}
    {(job.state === "cancelled" || job.state === "expired") && <>
      <p>Its files were removed.</p>{isForm && back("")}</>}
    {done && <Result job={job} removed={again} reuse={reuse} />}
  </>;
}

function ReviewNote({ job: { review } }: { job: JobView }) {
  if (!review) return null;
  if (review.state === "awaiting")
    return <p class="hint">Another person must approve the report before the data can be downloaded.</p>;
  return <p class="hint">{STATES[review.state]} by {review.by ?? "a reviewer"}, {moment(review.at)}
    {review.comment ? `: ${review.comment}` : "."}</p>;
}

/** The progress of a job; the stages of a release are known before. */
function Progress({ job: { kind, state, progress: { stage, done, total } } }: { job: JobView }) {
  const at = stage ? STAGES.indexOf(stage) : -1;
  const now = stage ? capital(stage) : "Beginning", words = state === "queued" ? "Waiting for its turn" : now;
  return <div class="progress">
    {kind === "anonymize" && <ol class="stages">{STAGES.map((name, n) =>
      <li key={name} class={n < at ? "past" : n === at ? "now" : ""} aria-current={n === at ? "step" : undefined}>
        {capital(name)}</li>)}</ol>}
    <label for="bar">{words}
      {total > 0 && <span aria-hidden="true">: {Math.round((100 * done) / total)} %</span>}</label>
    <progress id="bar" value={total > 0 ? done : undefined} max={total > 0 ? total : undefined} />
    <p class="hide" role="status">{words}</p>
    <p class="hint">You can leave this page. The job goes on, and you find it under Jobs.</p>
  </div>;
}
