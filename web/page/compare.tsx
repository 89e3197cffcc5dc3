// Two results side by side.
import { useEffect, useState } from "preact/hooks";
import { type Job, json, said } from "./api";
import { Alert, ReportFrame, Title } from "./parts";
import { costs, type Found, found, verdict } from "./result";
import { label, moment, shown } from "./words";

interface Side { job: Job; found: Found }
const side = async (id: string): Promise<Side> => ({ job: await json<Job>(`/jobs/${id}`), found: await found(id) });

/** Rows of two lists of names and values, in their order. */
function together(one: [string, string][], other: [string, string][]): [string, string, string][] {
  const [a, b] = [new Map(one), new Map(other)];
  return [...new Set([...a.keys(), ...b.keys()])].map((name) => [name, a.get(name) ?? "–", b.get(name) ?? "–"]);
}

const parameters = ({ found: { manifest } }: Side): [string, string][] =>
  [["Method", manifest.method.name], ["Its guarantee is", manifest.method.status], ...Object.entries(manifest.method.parameters).map(([n, v]): [string, string] => [label({ name: n }), shown(v)]), ["Seed given", shown(manifest.method.seed_given === true)]];

export function Compare({ ids }: { ids: [string, string] }) {
  const [sides, setSides] = useState<[Side, Side] | null>(null), [error, setError] = useState("");
  useEffect(() => { Promise.all([side(ids[0]), side(ids[1])]).then(setSides, (problem) => setError(said(problem))); }, [ids.join()]);
  if (error) return <><Title>Two results side by side</Title><Alert>{error}</Alert><p><a href="#/jobs">To your jobs</a></p></>;
  if (!sides) return <><Title>Two results side by side</Title><p role="status">Asking for both…</p></>;
  const [a, b] = sides;
  const table = (caption: string, rows: [string, string, string][]) => <div class="wide" role="region" aria-label={caption} tabIndex={0}><table class="two"><caption>{caption}</caption>
    <thead><tr><td /><Head side={a} /><Head side={b} /></tr></thead>
    <tbody>{rows.map(([name, one, other]) => <tr key={name} class={one !== other ? "differs" : ""}><th scope="row">{name}</th><td>{one}</td><td>{other}</td></tr>)}</tbody></table></div>;
  return <>
    <Title>Two results side by side</Title>
    <p class="hint">What differs is set in bold.</p>
    {table("What was published, and what was lost", together([["Guarantees", verdict(a.found.manifest).words], ...costs(a.found.manifest)], [["Guarantees", verdict(b.found.manifest).words], ...costs(b.found.manifest)]))}
    {table("Parameters", together(parameters(a), parameters(b)))}
    <h2>Reports</h2>
    <div class="pair">{sides.map(({ job }) => <ReportFrame key={job.id} path={`/jobs/${job.id}/report`} title={`Report of ${job.name}, ${moment(job.created_at)}`} at="#map" />)}</div>
  </>;
}

function Head({ side: { job } }: { side: Side }) {
  return <th scope="col"><a href={`#/jobs/${job.id}`}>{job.name}</a><small>{job.files.data} · {moment(job.created_at)}</small></th>;
}
