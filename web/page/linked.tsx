// Maps of two releases that move together, and a map of their difference.
import { useEffect, useRef, useState } from "preact/hooks";
import { MapView } from "../src/mapview";
import { flowLegend } from "../src/flows";
import { STYLES } from "../src/trajectories";
import { across, DifferencePainter, type End, Grid, type Picture, scaleAcross, type Side, sideOf } from "./sides";
import { number } from "./words";

/** How the label of a gap between time steps begins. */
const NO_STEP = "none published";

interface Linked { sides: [Side, Side]; maps: MapView[]; difference: DifferencePainter }

/** The frame that shows more ground: the other release may reach beyond it. */
const ground = ({ width, height, meters }: Side["frame"]): number => width * height * meters * meters;
const widest = (one: Side["frame"], other: Side["frame"]): Side["frame"] => (ground(other) > ground(one) ? other : one);

/** Move the other maps as one is moved. */
function link(frames: Side["frame"][], maps: MapView[]): void {
  maps.forEach((map, from) => {
    map.moved = (x, y, scale) => maps.forEach((other, to) => {
      if (to !== from) other.lookAt(...across(frames[from], frames[to], [x, y]), scaleAcross(frames[from], frames[to], scale));
    });
  });
}

export function LinkedMaps({ pictures, names }: { pictures: [Picture, Picture]; names: [string, string] }) {
  const canvases = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)], linked = useRef<Linked | null>(null);
  const [step, setStep] = useState(0), [least, setLeast] = useState(0), [end, setEnd] = useState<End>("origin"), [look, setLook] = useState(STYLES[0][0]), [counts, setCounts] = useState(["", ""]), [lists, setLists] = useState<string[][]>([[], []]), [largest, setLargest] = useState(0);
  const flows = pictures[0].kind === "flows", steps = [...new Set(pictures.flatMap((p) => (p.kind === "flows" ? (p.layers[0] as { steps: string[] }).steps : (p.bins ?? []))))].filter((one) => !one.startsWith(NO_STEP)).sort();
  const label = step === 0 ? "" : steps[step - 1], [top, setTop] = useState(1), [low, setLow] = useState(0), volume = least === 0 ? 0 : Math.round(top ** (least / 100));
  useEffect(() => {
    const sides = pictures.map(sideOf) as [Side, Side], wide = widest(sides[0].frame, sides[1].frame), grid = new Grid(wide);
    const difference = new DifferencePainter(grid, sides, flows ? "trips" : "trajectories");
    const painters = [sides[0].painter, sides[1].painter, difference], frames = [sides[0].frame, sides[1].frame, wide];
    const maps = canvases.map((canvas, n) => new MapView(canvas.current!, frames[n], painters[n]));
    link(frames, maps);
    maps.forEach((map, n) => { map.painted = () => { canvases[n].current!.dataset.painted = String(Number(canvases[n].current!.dataset.painted ?? 0) + 1); }; });
    maps[0].showAll();
    linked.current = { sides, maps, difference };
  }, []);
  useEffect(() => {
    const { sides, maps, difference } = linked.current!, most = Math.max(2, ...sides.map((side) => side.top(label)));
    setTop(most);
    setCounts(sides.map((side) => side.show(label, least === 0 ? 0 : Math.round(most ** (least / 100)), most, look)));
    setLow(Math.min(...sides.map((side) => side.low())));
    setLists(sides.map((side) => side.largest(label)));
    Object.assign(difference, { step: label, end });
    difference.update();
    setLargest(difference.largest);
    for (const map of maps) map.repaint();
  }, [label, least, end, look]);
  const zoom = (factor: number) => () => linked.current!.maps[0].zoom(factor);
  const stage = (n: number, words: string) => <div class="stage"><canvas ref={canvases[n]} tabIndex={0} role="img" aria-label={words} /></div>;
  return <section class="linked" aria-label="Maps of both releases">
    <div class="tools">
      {steps.length > 1 && <label>Time <input type="range" min={0} max={steps.length} value={step} aria-valuetext={label || "all times"} onInput={(event) => setStep(event.currentTarget.valueAsNumber)} /> <output>{label || "all times"}</output></label>}
      {flows ? <label>Show flows of at least <input type="range" min={0} max={100} value={least} aria-valuetext={`${volume} trips`} onInput={(event) => setLeast(event.currentTarget.valueAsNumber)} /> <output>{volume ? `${number(volume)} trips` : "any number of trips"}</output></label>
        : <label>Show <select value={look} onChange={(event) => setLook(event.currentTarget.value)}>{STYLES.map(([value, title]) => <option key={value} value={value}>{title}</option>)}</select></label>}
      <span class="zoom" role="group" aria-label="Zoom both maps"><button type="button" onClick={zoom(1.5)} aria-label="Zoom in">+</button><button type="button" onClick={zoom(1 / 1.5)} aria-label="Zoom out">−</button><button type="button" onClick={() => linked.current!.maps[0].showAll()}>Show all</button></span>
    </div>
    <div class="pair">{names.map((name, n) => <figure key={n}><figcaption><b>{"AB"[n]}</b> {name}</figcaption>{stage(n, `Map of release ${"AB"[n]}: ${name}`)}<p class="hint">{counts[n]}, drawn to the same scale as the other map.</p>{lists[n].length > 0 && <><p class="hint">Largest flows:</p><ol>{lists[n].map((line) => <li key={line}>{line}</li>)}</ol></>}</figure>)}</div>
    {flows && <ul class="legend" aria-label="Trips of a line">{flowLegend(top, low).map(({ volume, width, level }) => <li key={volume}><svg class="line" viewBox="0 0 32 14" aria-hidden="true"><path class={`f${level}`} d="M3 7H29" stroke-width={width.toFixed(1)} /></svg>{number(volume)} trips</li>)}<li>Lines bend to the right of their direction; circles are trips inside an area.</li></ul>}
    <h3>Difference: B minus A</h3>
    {flows && <div class="tools"><label>Count trips that <select value={end} onChange={(event) => setEnd(event.currentTarget.value as End)}><option value="origin">begin in a cell</option><option value="destination">end in a cell</option></select></label></div>}
    {stage(2, "Map of the difference between the releases")}
    <ul class="legend"><li><span class="swatch up" /> more in B (up to {number(Math.round(largest))} {flows ? "trips" : "trajectories"} a cell)</li><li><span class="swatch down" /> less in B, or suppressed there</li><li><span class="swatch same" /> the same</li></ul>
    <p class="hint">Cells are squares of 1/64 of the map. {flows ? "Trips of an area are spread evenly over it, so that differences inside an area are not known." : "A trajectory counts once in each cell that it visits."} Both releases show published data only.</p>
  </section>;
}
