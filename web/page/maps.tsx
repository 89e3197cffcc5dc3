// The maps of two releases next to each other: they move together and have one scale.
import { useEffect, useRef, useState } from "preact/hooks";
import { FlowLayer, flowLegend, FlowPainter, type FlowData } from "../src/flows";
import { MapView, type Frame } from "../src/mapview";
import { STYLES, TrajectoryLayer, TrajectoryPainter, type TrajectoryData } from "../src/trajectories";
import { blob } from "./api";
import { number } from "./words";

interface FlowMap { kind: "flows"; frame: Frame | null; layers: FlowData[] }
interface TrajectoryMap { kind: "trajectories"; frame: Frame | null; layers: TrajectoryData[]; bins: string[] }
/** The data of the map in a report. */
export type ReportMap = FlowMap | TrajectoryMap;
/** How the label of a gap between time steps begins. */
const GAP = "none published";
const LISTED = 5;

/** Return the map in the report of a job; null where there is none. */
export async function reportMap(id: string): Promise<ReportMap | null> {
  const page = new DOMParser().parseFromString(await (await blob(`/jobs/${id}/report`)).text(), "text/html");
  const found = JSON.parse(page.getElementById("data")?.textContent ?? "null") as ReportMap | null;
  return found?.frame && found.layers.length ? found : null;
}

/** Return the mean number of tiles of an area, over the origins and destinations of all trips. */
export function meanTiles(map: FlowMap): number {
  const layer = new FlowLayer(map.layers[0]), { origin, destination, volume } = layer.rowsAt(-1);
  let tiles = 0, trips = 0;
  for (let i = 0; i < volume.length; i++) {
    tiles += (volume[i] * (layer.sizes[origin[i]] + layer.sizes[destination[i]])) / 2;
    trips += volume[i];
  }
  return trips ? tiles / trips : NaN;
}

const stepsOf = (map: ReportMap): string[] => (map.kind === "flows" ? map.layers[0].steps : map.bins);
/** Return the index of a time step; -1 for all of them, and one without rows where the release lacks it. */
function indexOf(steps: string[], step: string): number {
  const found = steps.indexOf(step);
  return step === "" ? -1 : found < 0 ? steps.length : found;
}

interface Choice { step: string; slider: number; look: string }
interface Legend { top: number; low: number; counts: string[]; largest: string[][] }
const NOTHING: Legend = { top: 1, low: 1, counts: ["", ""], largest: [[], []] };
const threshold = (slider: number, low: number, top: number): number =>
  slider === 0 ? 0 : Math.round(low * Math.pow(top / low, slider / 100));

/** Show flows of one time step on both maps, on the scale of the larger one. */
function showFlows(painters: FlowPainter[], { step, slider }: Choice): Legend {
  for (const painter of painters) painter.step = indexOf(painter.layer.data.steps, step);
  const rows = painters.map((painter) => painter.layer.rowsAt(painter.step)); // the largest first
  const top = Math.max(2, ...rows.map(({ volume }) => volume[0] ?? 0));
  const low = Math.max(1, Math.min(top, ...rows.flatMap(({ volume }) => volume[volume.length - 1] ?? [])));
  for (const painter of painters) Object.assign(painter, { top, least: threshold(slider, low, top) });
  return {
    top, low,
    counts: painters.map((painter, n) => `${number(painter.counts().drawn)} of ${number(rows[n].volume.length)} flows`),
    largest: painters.map(({ layer: { data } }, n) => Array.from(rows[n].volume.subarray(0, LISTED), (trips, i) =>
      `${data.areas[rows[n].origin[i]]} → ${data.areas[rows[n].destination[i]]}: ${number(trips)} trips`)),
  };
}

function showTrajectories(painters: TrajectoryPainter[], bins: string[][], { step, look }: Choice): Legend {
  painters.forEach((painter, n) => Object.assign(painter, { step: indexOf(bins[n], step), look }));
  const top = Math.max(...painters.map((painter) => painter.cells().count.reduce((a, b) => Math.max(a, b), 0)));
  for (const painter of painters) painter.top = top;
  const counts = painters.map((painter) => painter.counts())
    .map(({ points, trajectories }) => `${number(points)} points of ${number(trajectories)} trajectories`);
  return { ...NOTHING, top, counts };
}

/** Move the other map as one is moved: places are compared on the globe. */
function link(maps: MapView[], frames: Frame[]): void {
  maps.forEach((map, from) => {
    const to = 1 - from, [here, there] = [frames[from], frames[to]];
    map.moved = (x, y, scale) => {
      const lon = here.west + (x * here.unit) / here.squeeze, lat = here.north - y * here.unit;
      const [across, down] = [((lon - there.west) * there.squeeze) / there.unit, (there.north - lat) / there.unit];
      maps[to].lookAt(across, down, (scale * there.unit) / here.unit);
    };
  });
}

type Show = (choice: Choice) => Legend;
export function LinkedMaps({ maps, names }: { maps: [ReportMap, ReportMap]; names: [string, string] }) {
  const canvases = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)];
  const drawn = useRef<{ views: MapView[]; show: Show }>(null);
  const [choice, setChoice] = useState<Choice>({ step: "", slider: 0, look: STYLES[0][0] });
  const [legend, setLegend] = useState(NOTHING);
  const steps = [...new Set(maps.flatMap(stepsOf))].filter((step) => !step.startsWith(GAP)).sort();
  const flows = maps[0].kind === "flows", volume = threshold(choice.slider, legend.low, legend.top);
  useEffect(() => {
    const painters = maps.map((map) => (map.kind === "flows" ? new FlowPainter(new FlowLayer(map.layers[0]))
      : new TrajectoryPainter(new TrajectoryLayer(map.layers[0]), map.frame!)));
    const views = maps.map((map, n) => new MapView(canvases[n].current!, map.frame!, painters[n]));
    link(views, maps.map((map) => map.frame!));
    views.forEach((view, n) => {
      const { dataset } = canvases[n].current!;
      view.painted = () => { dataset.painted = String(Number(dataset.painted ?? 0) + 1); };
    });
    const show: Show = (next) => flows ? showFlows(painters as FlowPainter[], next)
      : showTrajectories(painters as TrajectoryPainter[], maps.map(stepsOf), next);
    drawn.current = { views, show };
    views[0].showAll();
  }, []);
  useEffect(() => {
    setLegend(drawn.current!.show(choice));
    for (const view of drawn.current!.views) view.repaint();
  }, [choice]);
  const zoom = (factor: number) => () => drawn.current!.views[0].zoom(factor);
  const step = steps.indexOf(choice.step) + 1, when = choice.step || "all times";
  return <section class="linked" aria-label="Maps of both releases">
    <div class="tools">
      {steps.length > 1 && <label>Time <input type="range" min={0} max={steps.length} value={step} aria-valuetext={when}
        onInput={(event) => setChoice({ ...choice, step: steps[event.currentTarget.valueAsNumber - 1] ?? "" })} />
        {" "}<output>{when}</output></label>}
      {flows
        ? <label>Show flows of at least <input type="range" min={0} max={100} value={choice.slider}
          aria-valuetext={`${volume} trips`}
          onInput={(event) => setChoice({ ...choice, slider: event.currentTarget.valueAsNumber })} />
          {" "}<output>{volume ? `${number(volume)} trips` : "all flows"}</output></label>
        : <label>Show <select value={choice.look}
          onChange={(event) => setChoice({ ...choice, look: event.currentTarget.value })}>
          {STYLES.map(([value, title]) => <option key={value} value={value}>{title}</option>)}</select></label>}
      <span class="zoom" role="group" aria-label="Zoom both maps">
        <button type="button" onClick={zoom(1.5)} aria-label="Zoom in">+</button>
        <button type="button" onClick={zoom(1 / 1.5)} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => drawn.current!.views[0].showAll()}>Show all</button></span>
    </div>
    <div class="pair">{names.map((name, n) => <figure key={n}><figcaption><b>{"AB"[n]}</b> {name}</figcaption>
      <div class="stage"><canvas ref={canvases[n]} tabIndex={0} role="img"
        aria-label={`Map of release ${"AB"[n]}: ${name}`} /></div>
      <p class="hint">{legend.counts[n]}, drawn to the same scale as the other map.</p>
      {legend.largest[n].length > 0 && <><p class="hint">Largest flows:</p>
        <ol>{legend.largest[n].map((line) => <li key={line}>{line}</li>)}</ol></>}</figure>)}</div>
    {flows && <ul class="legend" aria-label="Trips of a line">
      {flowLegend(legend.top, legend.low).map(({ volume: trips, width, level }) => <li key={trips}>
        <svg class="line" viewBox="0 0 32 14" aria-hidden="true">
          <path class={`f${level}`} d="M3 7H29" stroke-width={width.toFixed(1)} /></svg>{number(trips)} trips</li>)}
      <li>Lines bend to the right of their direction; circles are trips inside an area.</li>
      <li>“Zone + 3” is an area of four zones around that zone.</li></ul>}
  </section>;
}
