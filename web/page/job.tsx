// One job: how far it is while it runs, what went wrong if it failed, and its result.
import { useEffect, useState } from "preact/hooks";
import { type Job, json, remove, type Review, said, ServiceError } from "./api";
import { Action, Alert, Asked, Badge, Title } from "./parts";
import { Result } from "./result";
import { duration, moment, REVIEW_WORDS, spoken, STAGE_WORDS, STATE_WORDS, sentence } from "./words";

const [SOON_MS, LATER_MS, AWAY_MS] = [400, 2000, 4000];
const under = (job: Job): boolean => job.state === "queued" || job.state === "running";

function useJob(id: string): { job: Job | null; error: string; away: boolean; again: () => void } {
  const [job, setJob] = useState<Job | null>(null), [error, setError] = useState(""), [away, setAway] = useState(false), [turn, setTurn] = useState(0);
  useEffect(() => {
    let timer = 0, gone = false, wait = SOON_MS;
    const ask = async () => {
      try {
        const seen = await json<Job>(`/jobs/${id}`);
        if (gone) return;
        setJob(seen);
        setAway(false);
        if (under(seen)) timer = window.setTimeout(ask, (wait = Math.min(wait * 1.1, LATER_MS)));
      } catch (problem) {
        if (gone) return;
        // A service that is started again comes back; a job that is not ours does not.
        if (problem instanceof ServiceError && (problem.status === 0 || problem.status >= 500)) { setAway(true); timer = window.setTimeout(ask, AWAY_MS); }
        else setError(said(problem));
      }
    };
    void ask();
    return () => { gone = true; clearTimeout(timer); };
  }, [id, turn]);
  return { job, error, away, again: () => setTurn(turn + 1) };
}

export function JobPage({ id, reuse }: { id: string; reuse: (job: Job) => void }) {
  const { job, error, away, again } = useJob(id);
  if (error) return <><Title>No such job</Title><Alert>{error}</Alert><p><a href="#/jobs">To your jobs</a></p></>;
  if (!job) return <p role="status">Loading the job…</p>;
  const cancel = async () => { await remove(id); again(); };
  return <>
    <Title above={<>{job.files.data === undefined ? spoken(job.kind) : job.name} · {moment(job.created_at)}</>}>{job.files.data ?? job.name}</Title>
    <p class="state" role="status"><Badge state={job.state}>{STATE_WORDS[job.state]}</Badge>
      {job.seconds !== null && <span>took {duration(job.seconds)}</span>}
      {job.state === "done" && job.review && <Badge state={job.review.state}>{REVIEW_WORDS[job.review.state]}</Badge>}
      {job.state === "done" && <span>kept until {moment(job.expires_at)}</span>}</p>
    {job.state === "done" && job.review && <ReviewNote review={job.review} />}
    {away && <Alert>The service does not answer just now; the job goes on, and this page asks again.</Alert>}
    {under(job) && <><Progress job={job} /><Action act={cancel} busy="Cancelling…">Cancel</Action></>}
    {job.state === "failed" && <>
      <Alert>{job.error ? sentence(job.error) : "The job failed."}</Alert>
      <p><button type="button" class="main" onClick={() => reuse(job)}>Back to the form</button></p>
      <Asked job={job} /></>}
    {(job.state === "cancelled" || job.state === "expired") && <><p>Its files were removed.</p>{job.kind === "anonymize" && <p><button type="button" onClick={() => reuse(job)}>Back to the form</button></p>}</>}
    {job.state === "done" && <Result job={job} removed={again} reuse={reuse} />}
  </>;
}

function ReviewNote({ review }: { review: Review }) {
  if (review.state === "awaiting") return <p class="hint">Another person must approve the report before the data can be downloaded.</p>;
  return <p class="hint">{REVIEW_WORDS[review.state]} by {review.by ?? "a reviewer"}, {moment(review.at)}{review.comment ? `: ${review.comment}` : "."}</p>;
}

function Progress({ job }: { job: Job }) {
  const { stage, done, total } = job.progress;
  if (job.kind !== "anonymize") return <PlainProgress job={job} />;
  const asked = STAGE_WORDS;
  const at = asked.findIndex(([name]) => name === stage);
  const words = job.state === "queued" ? "Waiting for its turn" : (asked[at]?.[1] ?? "Beginning");
  return <div class="progress">
    <ol class="stages">{asked.map(([name, word], n) => <li key={name} class={n < at ? "past" : n === at ? "now" : ""} aria-current={n === at ? "step" : undefined}>{word}</li>)}</ol>
    <label for="bar">{words}{total > 0 && <span aria-hidden="true">: {Math.round((100 * done) / total)} %</span>}</label>
    {total > 0 ? <progress id="bar" value={done} max={total} /> : <progress id="bar" />}
    <p class="hide" role="status">{words}</p>
    <p class="hint">You may leave this page; the job goes on, and is found again under Jobs.</p>
  </div>;
}

/** The progress of a job whose stages are not known ahead: each says what is done now. */
function PlainProgress({ job: { state, progress: { stage, done, total } } }: { job: Job }) {
  const words = state === "queued" ? "Waiting for its turn" : stage ? `In progress: ${stage}` : "Beginning";
  return <div class="progress">
    <label for="bar">{words}{total > 0 && <span aria-hidden="true">: {Math.round((100 * done) / total)} %</span>}</label>
    {total > 0 ? <progress id="bar" value={done} max={total} /> : <progress id="bar" />}
    <p class="hint">You may leave this page; the job goes on, and is found again under Jobs.</p>
  </div>;
}
