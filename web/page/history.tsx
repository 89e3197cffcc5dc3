// All jobs of the user, and choosing two of them.
import { useEffect, useState } from "preact/hooks";
import { type Job, json, said } from "./api";
import { Action, Alert, Badge, Title } from "./parts";
import { go } from "./router";
import { duration, moment, REVIEW_WORDS, shown, STATE_WORDS } from "./words";

const MANY = 50;

export function History() {
  const [jobs, setJobs] = useState<Job[] | null>(null), [more, setMore] = useState(false), [error, setError] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const fetched = async (before?: string) => {
    const { jobs: next } = await json<{ jobs: Job[] }>(`/jobs?limit=${MANY}${before ? `&before=${before}` : ""}`);
    setJobs((known) => (before ? [...(known ?? []), ...next] : next));
    setMore(next.length === MANY);
  };
  useEffect(() => { fetched().catch((problem) => setError(said(problem))); }, []);
  const choose = (id: string, on: boolean) => setChosen((now) => (on ? [...now, id].slice(-2) : now.filter((c) => c !== id)));
  return <>
    <Title>Your jobs</Title>
    {error && <Alert>{error}</Alert>}
    {jobs?.length === 0 && <p>There are none yet. <a href="#/new">Begin with a file</a>.</p>}
    {jobs && jobs.length > 0 && <>
      <p class="compare-bar"><button type="button" class="main" disabled={chosen.length !== 2} onClick={() => go(`/compare/${chosen.join("/")}`)}>Compare two results</button>
        <span role="status">{chosen.length === 0 ? "Tick two results to see them side by side." : chosen.length === 1 ? "One is ticked; tick another." : "Two are ticked."}</span></p>
      <ul class="jobs">{jobs.map((job) => <li key={job.id}>
        <span class="pick">{job.state === "done" && job.kind === "anonymize" && <input type="checkbox" aria-label={`Compare ${job.name} of ${moment(job.created_at)}`} checked={chosen.includes(job.id)} onChange={(event) => choose(job.id, event.currentTarget.checked)} />}</span>
        <div class="what"><a href={`#/jobs/${job.id}`}>{job.name}</a><small>{job.files.data ?? job.files.original ?? job.kind}{about(job)}</small></div>
        {job.state === "done" && job.review ? <Badge state={job.review.state}>{REVIEW_WORDS[job.review.state]}</Badge> : <Badge state={job.state}>{STATE_WORDS[job.state]}</Badge>}
        <span class="when">{moment(job.created_at)}<small>{job.seconds !== null && `took ${duration(job.seconds)}`}</small></span>
      </li>)}</ul>
      {more && <Action act={() => fetched(jobs[jobs.length - 1].id)}>Show older ones</Action>}
    </>}
  </>;
}

function about(job: Job): string {
  const k = job.parameters.k;
  return k === undefined ? "" : ` · k = ${shown(k)}`;
}
