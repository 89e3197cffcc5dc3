// Two results side by side: what was lost, with the better one marked, linked maps, and the parameters.
import { useEffect, useState } from "preact/hooks";
import { type Job, json, type Manifest, said } from "./api";
import { LinkedMaps } from "./linked";
import { Alert, Title } from "./parts";
import { type Found, found, verdict } from "./result";
import { FlowSide, type Picture, picture, sideOf } from "./sides";
import { attackTitle, label, moment, shown, spoken } from "./words";

interface Loaded { job: Job; found: Found; picture: Picture | null }
const loaded = async (id: string): Promise<Loaded> => ({ job: await json<Job>(`/jobs/${id}`), found: await found(id), picture: await picture(id).catch(() => null) });

/** A measure: its value, and whether a larger one is better (1), a smaller one (-1), or neither (0). */
interface Measure { name: string; value: number | string | null; unit: string; better: -1 | 0 | 1; says: string }
const LARGER = /^published_/, SMALLER = /_percent$/;
const SAYS: Record<string, string> = {
  published_flows: "Rows between two areas in a time step: more rows are more detail.", published_volume: "Trips in the published rows.", suppressed_volume_percent: "Trips that are in no published row.",
  published_time_steps: "Time steps with at least one published flow.", published_trajectories: "Trajectories, or segments of them, in the release.", published_points: "Points of these trajectories.",
  suppressed_trajectories_percent: "Trajectories that are not in the release.",
};

function measures({ found: { manifest }, picture: map }: Loaded): Measure[] {
  const costs = Object.entries(manifest.cost).map(([name, value]): Measure => ({
    name: spoken(name.replace(SMALLER, "")), value: typeof value === "number" ? value : shown(value), unit: SMALLER.test(name) ? " %" : "", better: LARGER.test(name) ? 1 : SMALLER.test(name) ? -1 : 0, says: SAYS[name] ?? "",
  }));
  const side = map && sideOf(map);
  if (side instanceof FlowSide) costs.push({ name: "Mean tiles of an area", value: Math.round(100 * side.meanTiles()) / 100, unit: "", better: -1, says: "Over the origins and destinations of all published trips: fewer tiles are more detail." });
  return [...costs, ...risks(manifest)];
}

const risks = (manifest: Manifest): Measure[] => (manifest.risk ?? []).map((risk) => ({
  name: `Risk: ${attackTitle(shown(risk.attack))}`, value: typeof risk.risk_percent === "number" ? risk.risk_percent : null, unit: " %", better: -1, says: risk.knowledge ? `Share at risk, if the adversary knows ${shown(risk.knowledge)}.` : "Share at risk.",
}));

function MeasureTable({ sides }: { sides: [Loaded, Loaded] }) {
  const [a, b] = sides.map(measures), names = [...new Set([...a, ...b].map((m) => m.name))];
  const cell = (mine: Measure | undefined, other: Measure | undefined) => {
    if (!mine || mine.value === null) return <td>–</td>;
    const wins = typeof mine.value === "number" && typeof other?.value === "number" ? Math.sign(mine.value - other.value) * mine.better : 0;
    return <td class={wins > 0 ? "better" : wins < 0 ? "worse" : ""}>{shown(mine.value)}{mine.unit} {wins !== 0 && <span class="wins">{wins > 0 ? "▲ better" : "▽ worse"}</span>}</td>;
  };
  return <div class="wide" role="region" aria-label="What was published and lost" tabIndex={0}><table class="two"><caption>What was published, what was lost, and what is at risk</caption>
    <thead><tr><td /><Head side={sides[0]} letter="A" /><Head side={sides[1]} letter="B" /></tr></thead>
    <tbody>
      <tr><th scope="row">Guarantees</th>{sides.map(({ job, found: { manifest } }, n) => <td key={`${job.id}${n}`}>{verdict(manifest).words}</td>)}</tr>
      {names.map((name) => { const [one, other] = [a.find((m) => m.name === name), b.find((m) => m.name === name)]; return <tr key={name}><th scope="row">{name}<small>{(one ?? other)!.says}</small></th>{cell(one, other)}{cell(other, one)}</tr>; })}
    </tbody></table></div>;
}

const parameters = ({ found: { manifest } }: Loaded): [string, string][] =>
  [["Method", manifest.method.name], ["Its guarantee is", manifest.method.status], ...Object.entries(manifest.method.parameters).map(([n, v]): [string, string] => [label({ name: n }), n === "suppress" && typeof v === "number" ? `${shown(100 * v)} %` : shown(v)]), ["Seed given", shown(manifest.method.seed_given === true)]];

function ParameterTable({ sides }: { sides: [Loaded, Loaded] }) {
  const [a, b] = sides.map((side) => new Map(parameters(side)));
  return <div class="wide" role="region" aria-label="Parameters" tabIndex={0}><table class="two"><caption>Parameters; what differs is bold</caption>
    <thead><tr><td /><Head side={sides[0]} letter="A" /><Head side={sides[1]} letter="B" /></tr></thead>
    <tbody>{[...new Set([...a.keys(), ...b.keys()])].map((name) => <tr key={name} class={a.get(name) !== b.get(name) ? "differs" : ""}><th scope="row">{name}</th><td>{a.get(name) ?? "–"}</td><td>{b.get(name) ?? "–"}</td></tr>)}</tbody></table></div>;
}

export function Compare({ ids }: { ids: [string, string] }) {
  const [sides, setSides] = useState<[Loaded, Loaded] | null>(null), [error, setError] = useState("");
  useEffect(() => { Promise.all([loaded(ids[0]), loaded(ids[1])]).then(setSides, (problem) => setError(said(problem))); }, [ids.join()]);
  if (error) return <><Title>Compare two results</Title><Alert>{error}</Alert><p><a href="#/jobs">To your jobs</a></p></>;
  if (!sides) return <><Title>Compare two results</Title><p role="status">Loading both results…</p></>;
  const maps = sides.map((side) => side.picture), both = maps[0] && maps[1] && maps[0].kind === maps[1].kind;
  return <>
    <Title>Compare two results</Title>
    {sides[0].job.files.data !== sides[1].job.files.data && <p class="warn">The two results are of different files, so better and worse may not mean the methods.</p>}
    <MeasureTable sides={sides} />
    <h2>Maps</h2>
    {both ? <LinkedMaps pictures={maps as [Picture, Picture]} names={[nameOf(sides[0]), nameOf(sides[1])]} /> : <p>There are no two maps of the same kind to compare: {maps.some((map) => map === null) ? "a release has no report, or its zones have no positions" : "one is of flows, the other of trajectories"}.</p>}
    <ParameterTable sides={sides} />
  </>;
}

const nameOf = ({ job, found: { manifest } }: Loaded): string => `${job.name}${manifest.method.parameters.k === undefined ? "" : `, k = ${shown(manifest.method.parameters.k)}`}`;

function Head({ side: { job }, letter }: { side: Loaded; letter: string }) {
  return <th scope="col">{letter}: <a href={`#/jobs/${job.id}`}>{job.name}</a><small>{job.files.data} · {moment(job.created_at)}</small></th>;
}
