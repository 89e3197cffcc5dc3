// The maps of two releases next to each other: they move together and have one scale.
import { useEffect, useRef, useState } from "preact/hooks";
import { FlowLayer, flowLegend, FlowPainter, type FlowData, LINES_NOTE, threshold } from "../src/flows";
import { MapView, type Frame } from "../src/mapview";
import { STYLES, TrajectoryLayer, TrajectoryPainter, type TrajectoryData } from "../src/trajectories";
import { blob } from "./api";
import { number } from "./words";

/** The map in a report. */
export type ReportMap = { frame: Frame } & (
  { kind: "flows"; layers: FlowData[] } | { kind: "trajectories"; layers: TrajectoryData[]; bins: string[] });
interface Choice { step: string; slider: number; look: string }
/** The result of a choice: volumes of the widest and of the thinnest line, and a count for each map. */
interface Shown { top: number; low: number; counts: string[] }

/** Return the map in the report of a job; null where there is none. */
export async function reportMap(id: string): Promise<ReportMap | null> {
  const page = new DOMParser().parseFromString(await (await blob(`/jobs/${id}/report`)).text(), "text/html");
  const map = JSON.parse(page.getElementById("data")?.textContent ?? "null") as ReportMap | null;
  return map?.frame && map.layers.length ? map : null;
}

const stepsOf = (map: ReportMap): string[] => (map.kind === "flows" ? map.layers[0].steps : map.bins);

/** Return the index of a time step; -1 for all of them, and one without rows where the release lacks it. */
const indexOf = (steps: string[], step: string): number =>
  step === "" ? -1 : steps.includes(step) ? steps.indexOf(step) : steps.length;

/** Show one choice on both maps, on the scale of the larger one. */
function show(painters: (FlowPainter | TrajectoryPainter)[], steps: string[][], choice: Choice): Shown {
  const flows = painters.filter((painter) => painter instanceof FlowPainter);
  const tracks = painters.filter((painter) => painter instanceof TrajectoryPainter);
  flows.forEach((painter, n) => painter.show(indexOf(steps[n], choice.step)));
  tracks.forEach((painter, n) => Object.assign(painter, { step: indexOf(steps[n], choice.step), look: choice.look }));
  const volumes = flows.flatMap(({ rows }) => Array.from(rows.volume)), cells = tracks.map((each) => each.most());
  const top = [...volumes, ...cells].reduce((a, b) => Math.max(a, b), 2);
  const shown = { top, low: volumes.reduce((a, b) => Math.min(a, b), top), counts: [] as string[] };
  for (const painter of painters) Object.assign(painter, { top, least: threshold(choice.slider, shown.low, top) });
  shown.counts = [...flows.map((each) => `${number(each.counts().drawn)} of ${number(each.rows.volume.length)} flows`),
    ...tracks.map((each) => each.counts())
      .map(({ points, trajectories }) => `${number(points)} points of ${number(trajectories)} trajectories`)];
  return shown;
}

/** Move the other map as one is moved: places are compared on the globe. */
function link(views: MapView[], frames: Frame[]): void {
  views.forEach((view, from) => {
    const to = 1 - from, [here, there] = [frames[from], frames[to]];
    view.moved = (x, y, scale) => {
      const lon = here.west + (x * here.unit) / here.squeeze, lat = here.north - y * here.unit;
      const [across, down] = [((lon - there.west) * there.squeeze) / there.unit, (there.north - lat) / there.unit];
      views[to].lookAt(across, down, (scale * there.unit) / here.unit);
    };
  });
}

export function LinkedMaps({ maps, names }: { maps: ReportMap[]; names: string[] }) {
  const canvases = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)];
  const drawn = useRef<{ views: MapView[]; painters: (FlowPainter | TrajectoryPainter)[] }>(null);
  const [choice, setChoice] = useState<Choice>({ step: "", slider: 0, look: STYLES[0][0] });
  const [shown, setShown] = useState<Shown>({ top: 1, low: 1, counts: ["", ""] });
  const steps = [...new Set(maps.flatMap(stepsOf))].filter((step) => !step.startsWith("none published")).sort();
  useEffect(() => {
    const painters = maps.map((map) => (map.kind === "flows" ? new FlowPainter(new FlowLayer(map.layers[0]))
      : new TrajectoryPainter(new TrajectoryLayer(map.layers[0]), map.frame)));
    const views = maps.map(({ frame }, n) => new MapView(canvases[n].current!, frame, painters[n]));
    link(views, maps.map(({ frame }) => frame));
    drawn.current = { views, painters };
    views[0].showAll();
  }, []);
  useEffect(() => {
    setShown(show(drawn.current!.painters, maps.map(stepsOf), choice));
    for (const view of drawn.current!.views) view.repaint();
  }, [choice]);
  const first = () => drawn.current!.views[0];
  const volume = threshold(choice.slider, shown.low, shown.top), flows = maps[0].kind === "flows";
  const slider = (title: string, most: number, value: number, text: string, use: (value: number) => Partial<Choice>) =>
    <label>{title} <input type="range" min={0} max={most} value={value} aria-valuetext={text}
      onInput={(event) => setChoice({ ...choice, ...use(event.currentTarget.valueAsNumber) })} />
      {" "}<output>{text}</output></label>;
  return <section class="linked" aria-label="Maps of both releases">
    <div class="tools">
      {steps.length > 1 && slider("Time", steps.length, steps.indexOf(choice.step) + 1, choice.step || "all times",
        (value) => ({ step: steps[value - 1] ?? "" }))}
      {flows ? slider("Show flows of at least", 100, choice.slider, volume ? `${number(volume)} trips` : "all flows",
        (value) => ({ slider: value }))
        : <label>Show <select value={choice.look}
          onChange={(event) => setChoice({ ...choice, look: event.currentTarget.value })}>
          {STYLES.map(([value, title]) => <option key={value} value={value}>{title}</option>)}</select></label>}
      <span class="zoom" role="group" aria-label="Zoom both maps">
        <button type="button" onClick={() => first().zoom(1.5)} aria-label="Zoom in">+</button>
        <button type="button" onClick={() => first().zoom(1 / 1.5)} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => first().showAll()}>Show all</button></span>
    </div>
    <div class="pair">{names.map((name, n) => <figure key={n}><figcaption><b>{"AB"[n]}</b> {name}</figcaption>
      <div class="stage"><canvas ref={canvases[n]} tabIndex={0} role="img"
        aria-label={`Map of release ${"AB"[n]}: ${name}`} /></div>
      <p class="hint">{shown.counts[n]}, drawn to the same scale as the other map.</p></figure>)}</div>
    {flows && <ul class="legend" aria-label="Trips of a line">
      {flowLegend(shown.top, shown.low).map(({ volume: trips, width, level }) => <li key={trips}>
        <svg class="line" viewBox="0 0 32 14" aria-hidden="true">
          <path class={`f${level}`} d="M3 7H29" stroke-width={width.toFixed(1)} /></svg>{number(trips)} trips</li>)}
      <li>{LINES_NOTE}</li>
      <li>“Zone + 3” is an area of four zones around that zone.</li></ul>}
  </section>;
}
