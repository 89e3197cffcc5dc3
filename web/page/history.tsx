// All jobs of the user, and choosing two of them.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { json } from "./api";
import { Action, Alert, Badge, go, Title, useJson } from "./parts";
import type { JobList, JobView } from "./views";
import { duration, moment, shown } from "./words";

const MANY = 50;
const CHOSEN = ["Tick two results to see them side by side.", "One is ticked; tick another.", "Two are ticked."];

/** A row of a list of jobs. */
export function Row({ pick, link, name, about, state, when }: {
  pick?: ComponentChildren; link: string; name: string; about: string; state: string; when: ComponentChildren;
}) {
  return <li><span class="pick">{pick}</span><div class="what"><a href={link}>{name}</a><small>{about}</small></div>
    <Badge state={state} /><span class="when">{when}</span></li>;
}

export function History() {
  const { value, error, set } = useJson<JobList>(`/jobs?limit=${MANY}`), jobs = value?.jobs ?? [];
  const [chosen, setChosen] = useState<string[]>([]), [last, setLast] = useState<number | null>(null);
  const more = async () => {
    const older = await json<JobList>(`/jobs?limit=${MANY}&before=${jobs[jobs.length - 1].id}`);
    setLast(older.jobs.length);
    set({ jobs: [...jobs, ...older.jobs] });
  };
  const choose = (id: string, on: boolean) =>
    setChosen(on ? [...chosen, id].slice(-2) : chosen.filter((one) => one !== id));
  const pick = (job: JobView) => job.state === "done" && job.kind === "anonymize"
    && <input type="checkbox" aria-label={`Compare ${job.name} of ${moment(job.created_at)}`}
      checked={chosen.includes(job.id)} onChange={(event) => choose(job.id, event.currentTarget.checked)} />;
  return <>
    <Title>Your jobs</Title>
    {error && <Alert>{error}</Alert>}
    {value && !jobs.length && <p>There are none yet. <a href="#/new">Begin with a file</a>.</p>}
    {jobs.length > 0 && <>
      <p class="compare-bar"><button type="button" class="main" disabled={chosen.length !== 2}
        onClick={() => go(`/compare/${chosen.join("/")}`)}>Compare two results</button>
        <span role="status">{CHOSEN[chosen.length]}</span></p>
      <ul class="jobs">{jobs.map((job) => <Row key={job.id} pick={pick(job)} link={`#/jobs/${job.id}`} name={job.name}
        about={about(job)} state={job.state === "done" && job.review ? job.review.state : job.state}
        when={<>{moment(job.created_at)}
          <small>{job.seconds !== null && `took ${duration(job.seconds)}`}</small></>} />)}
      </ul>
      {(last ?? jobs.length) === MANY && <Action act={more}>Show older ones</Action>}
    </>}
  </>;
}

function about({ files, kind, parameters: { k } }: JobView): string {
  const file = files.data ?? files.original ?? kind;
  return k === undefined ? file : `${file} · k = ${shown(k)}`;
}
