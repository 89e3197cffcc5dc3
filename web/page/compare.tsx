// Two results side by side: what was lost, with the better one marked, linked maps, and the parameters.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Job, json, type Manifest, said } from "./api";
import { LinkedMaps, meanTiles, type ReportMap, reportMap } from "./maps";
import { Alert, Title } from "./parts";
import { type Found, found, verdict } from "./result";
import { attackTitle, label, moment, shown, spoken } from "./words";

interface Side { job: Job; found: Found; map: ReportMap | null }
type Sides = [Side, Side];
const loaded = async (id: string): Promise<Side> =>
  ({ job: await json<Job>(`/jobs/${id}`), found: await found(id), map: await reportMap(id).catch(() => null) });

/** A measure: its value, and whether a larger one is better (1), a smaller one (-1), or neither (0). */
interface Measure { name: string; value: number | string | null; unit: string; better: -1 | 0 | 1 }
const LARGER = /^published_/, SMALLER = /_percent$/;

function measures({ found: { manifest }, map }: Side): Measure[] {
  const costs = Object.entries(manifest.cost).map(([name, value]): Measure => ({
    name: spoken(name.replace(SMALLER, "")), value: typeof value === "number" ? value : shown(value),
    unit: SMALLER.test(name) ? " %" : "", better: LARGER.test(name) ? 1 : SMALLER.test(name) ? -1 : 0,
  }));
  const tiles: Measure[] = map?.kind === "flows"
    ? [{ name: "Mean tiles of an area", value: Math.round(100 * meanTiles(map)) / 100, unit: "", better: -1 }] : [];
  return [...costs, ...tiles, ...risks(manifest)];
}

const risks = (manifest: Manifest): Measure[] => (manifest.risk ?? []).map((risk) => ({
  name: `Risk: ${attackTitle(shown(risk.attack))}`, unit: " %", better: -1,
  value: typeof risk.risk_percent === "number" ? risk.risk_percent : null,
}));

/** Return 1 if the first of two values is better, -1 if it is worse. */
const wins = (one: Measure, other: Measure | undefined): number =>
  typeof one.value === "number" && typeof other?.value === "number"
    ? Math.sign(one.value - other.value) * one.better : 0;

function Value({ one, other }: { one: Measure | undefined; other: Measure | undefined }) {
  if (!one || one.value === null) return <td>–</td>;
  const won = wins(one, other), mark = won > 0 ? "▲ better" : won < 0 ? "▽ worse" : "";
  return <td class={mark.slice(2)}>{shown(one.value)}{one.unit} {mark && <span class="wins">{mark}</span>}</td>;
}

function MeasureTable({ sides }: { sides: Sides }) {
  const [a, b] = sides.map((side) => new Map(measures(side).map((measure) => [measure.name, measure])));
  return <Two caption="What was published, what was lost, and what is at risk" sides={sides}>
    <tr><th scope="row">Guarantees</th>
      {sides.map(({ found: { manifest } }, n) => <td key={n}>{verdict(manifest).words}</td>)}</tr>
    {[...new Set([...a.keys(), ...b.keys()])].map((name) => <tr key={name}><th scope="row">{name}</th>
      <Value one={a.get(name)} other={b.get(name)} /><Value one={b.get(name)} other={a.get(name)} /></tr>)}
  </Two>;
}

function parameters({ found: { manifest: { method } } }: Side): Map<string, string> {
  const given = Object.entries(method.parameters).map(([name, value]): [string, string] =>
    [label({ name }), name === "suppress" && typeof value === "number" ? `${shown(100 * value)} %` : shown(value)]);
  return new Map([["Method", method.name], ["Its guarantee is", method.status], ...given]);
}

function ParameterTable({ sides }: { sides: Sides }) {
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

/** A table with a column for each result. */
function Two({ caption, sides, children }: { caption: string; sides: Sides; children: ComponentChildren }) {
  return <div class="wide" role="region" aria-label={caption} tabIndex={0}><table class="two">
    <caption>{caption}</caption>
    <thead><tr><td />{sides.map(({ job }, n) => <th key={n} scope="col">{"AB"[n]}:{" "}
      <a href={`#/jobs/${job.id}`}>{job.name}</a><small>{job.files.data} · {moment(job.created_at)}</small></th>)}</tr>
    </thead><tbody>{children}</tbody></table></div>;
}

const nameOf = ({ job, found: { manifest: { method } } }: Side): string =>
  job.name + (method.parameters.k === undefined ? "" : `, k = ${shown(method.parameters.k)}`);

export function Compare({ ids }: { ids: [string, string] }) {
  const [sides, setSides] = useState<Sides | null>(null), [error, setError] = useState("");
  useEffect(() => {
    Promise.all([loaded(ids[0]), loaded(ids[1])]).then(setSides, (problem) => setError(said(problem)));
  }, [ids.join()]);
  if (error) return <><Title>Compare two results</Title><Alert>{error}</Alert><p><a href="#/jobs">To your jobs</a></p></>;
  if (!sides) return <p class="waiting" role="status">Fetching both results…</p>;
  const [one, other] = sides.map(({ map }) => map);
  return <>
    <Title>Compare two results</Title>
    {sides[0].job.files.data !== sides[1].job.files.data
      && <p class="warn">The results are of different files, so better and worse may not mean the methods.</p>}
    <MeasureTable sides={sides} />
    <h2>Maps</h2>
    {one && other && one.kind === other.kind
      ? <LinkedMaps maps={[one, other]} names={[nameOf(sides[0]), nameOf(sides[1])]} />
      : <p>There are no two maps of the same kind to compare: {one && other
        ? "one is of flows, the other of trajectories" : "a release has no report, or its zones have no positions"}.</p>}
    <ParameterTable sides={sides} />
  </>;
}
