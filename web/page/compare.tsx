// Two results side by side: measures with the better one marked, linked maps, and the parameters.
import type { ComponentChildren } from "preact";
import { FlowLayer } from "../src/flows";
import { json } from "./api";
import { LinkedMaps, type ReportMap, reportMap } from "./maps";
import { Missing, Table, Title, useLoaded } from "./parts";
import { type Release, release, verdict } from "./result";
import type { JobView } from "./views";
import { attackTitle, label, moment, percent, shown, spoken } from "./words";

interface Side { job: JobView; found: Release; map: ReportMap | null }
const load = async (id: string): Promise<Side> =>
  ({ job: await json<JobView>(`/jobs/${id}`), found: await release(id), map: await reportMap(id).catch(() => null) });

/** A measure: its value, and whether a larger one is better (1), a smaller one (-1), or neither (0). */
interface Measure { value: unknown; unit: string; better: -1 | 0 | 1 }

function measures({ found: { manifest }, map }: Side): Map<string, Measure> {
  const costs = Object.entries(manifest.cost).map(([name, value]): [string, Measure] => {
    const share = name.endsWith("_percent"), better = name.startsWith("published_") ? 1 : share ? -1 : 0;
    return [spoken(name.replace(/_percent$/, "")), { value, unit: share ? " %" : "", better }];
  });
  const risks = (manifest.risk ?? []).map(({ attack, risk_percent: value }): [string, Measure] =>
    [`Risk: ${attackTitle(shown(attack))}`, { value, unit: " %", better: -1 }]);
  const tiles = map?.kind === "flows" ? Math.round(100 * new FlowLayer(map.layers[0]).meanTiles()) / 100 : null;
  return new Map([...costs, ["Mean tiles of an area", { value: tiles, unit: "", better: -1 }], ...risks]);
}

function Value({ one, other }: { one?: Measure; other?: Measure }) {
  if (one?.value === null || one?.value === undefined) return <td>–</td>;
  const known = typeof one.value === "number" && typeof other?.value === "number";
  const won = known ? Math.sign(Number(one.value) - Number(other.value)) * one.better : 0;
  const mark = won > 0 ? "▲ better" : won < 0 ? "▽ worse" : "";
  return <td class={mark.slice(2)}>{shown(one.value)}{one.unit} {mark && <span class="wins">{mark}</span>}</td>;
}

/** A table with a column for each result. */
function Two({ caption, sides, children }: { caption: string; sides: Side[]; children: ComponentChildren }) {
  return <Table caption={caption} kind="two" head={["", ...sides.map(({ job }, n) => <>{"AB"[n]}:{" "}
    <a href={`#/jobs/${job.id}`}>{job.name}</a><small>{job.files.data} · {moment(job.created_at)}</small></>)]}>
    {children}</Table>;
}

function MeasureTable({ sides }: { sides: Side[] }) {
  const [a, b] = sides.map(measures), names = [...new Set([...a.keys(), ...b.keys()])];
  return <Two caption="What was published, what was lost, and what is at risk" sides={sides}>
    <tr><th scope="row">Guarantees</th>
      {sides.map(({ found: { manifest } }, n) => <td key={n}>{verdict(manifest).words}</td>)}</tr>
    {names.map((name) => <tr key={name}><th scope="row">{name}</th>
      <Value one={a.get(name)} other={b.get(name)} /><Value one={b.get(name)} other={a.get(name)} /></tr>)}
  </Two>;
}

function parameters({ found: { manifest: { method } } }: Side): Map<string, string> {
  const given = Object.entries(method.parameters).map(([name, value]): [string, string] =>
    [label(name), name === "suppress" && typeof value === "number" ? percent(value) : shown(value)]);
  return new Map([["Method", method.name], ["Its guarantee is", method.status], ...given]);
}

function ParameterTable({ sides }: { sides: Side[] }) {
  const [a, b] = sides.map(parameters), names = [...new Set([...a.keys(), ...b.keys()])];
  const differing = names.filter((name) => a.get(name) !== b.get(name));
  return <>
    <p>{differing.length ? `What differs: ${differing.join(", ")}.` : "Method and parameters are the same."}</p>
    <Two caption="Parameters; what differs is bold" sides={sides}>
      {names.map((name) => <tr key={name} class={differing.includes(name) ? "differs" : ""}><th scope="row">{name}</th>
        <td>{a.get(name) ?? "–"}</td><td>{b.get(name) ?? "–"}</td></tr>)}
    </Two>
  </>;
}

const nameOf = ({ job, found: { manifest: { method } } }: Side): string =>
  job.name + (method.parameters.k === undefined ? "" : `, k = ${shown(method.parameters.k)}`);

export function Compare({ ids }: { ids: [string, string] }) {
  const { value: sides, error } = useLoaded(() => Promise.all(ids.map(load)), ids.join());
  if (error) return <Missing title="Compare two results" error={error} link="#/jobs">To your jobs</Missing>;
  if (!sides) return <p class="waiting" role="status">Fetching both results…</p>;
  const [a, b] = sides.map(({ job }) => job.files.data), maps = sides.flatMap(({ map }) => map ?? []);
  return <>
    <Title>Compare two results</Title>
    {a !== b && <p class="warn">The results are of different files, so better and worse may not mean the methods.</p>}
    <MeasureTable sides={sides} />
    <h2>Maps</h2>
    {maps.length < 2 ? <p>A release has no report, or its zones have no positions, so there are no maps to compare.</p>
      : maps[0].kind !== maps[1].kind ? <p>One release is of flows, the other of trajectories.</p>
        : <LinkedMaps maps={maps} names={sides.map(nameOf)} />}
    <ParameterTable sides={sides} />
  </>;
}
