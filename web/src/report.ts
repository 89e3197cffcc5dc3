// The page of a report: draws its data on the map and handles its controls.
import { chart, rounded } from "./chart";
import { FlowLayer, flowLegend, FlowPainter, type FlowData, LINES_NOTE, threshold } from "./flows";
import { MapView, type Frame } from "./mapview";
import { STYLES, TrajectoryLayer, TrajectoryPainter, type TrajectoryData } from "./trajectories";

type Data = { frame: Frame | null } & (
  { kind: "flows"; layers: FlowData[] } | { kind: "trajectories"; layers: TrajectoryData[]; bins: string[] });

const ZONES_LISTED = 400;
const LINES_AT_FIRST = 400;

const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const number = (value: number): string => value.toLocaleString("en");

function setOptions(select: HTMLSelectElement, choices: [string, string][]): void {
  select.replaceChildren(...choices.map(([value, title]) => new Option(title, value)));
}

/** Show the value of a slider next to it. */
function showValue(slider: HTMLInputElement, text: string): void {
  byId(`${slider.id}-out`).textContent = text;
  slider.setAttribute("aria-valuetext", text);
}

/** Show a legend: pairs of a drawing and its label. */
function showLegend(items: [string, string][]): void {
  byId("legend").replaceChildren(...items.map(([drawing, label]) => {
    const item = document.createElement("li");
    item.innerHTML = drawing;
    item.append(label);
    return item;
  }));
}

const square = (level: number): string =>
  `<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="q${level}" width="10" height="10"></rect></svg>`;
const line = (width: number, level: number): string =>
  `<svg class="line" viewBox="0 0 32 14" aria-hidden="true"><path class="f${level}" d="M3 7H29" `
  + `stroke-width="${width.toFixed(1)}"></path></svg>`;

function flowItems(painter: FlowPainter): [string, string][] {
  if (painter.classes) return painter.classes.labels.map((label, level) => [square(level), label]);
  const lines = flowLegend(painter.widest, painter.thinnest)
    .map(({ volume, width, level }): [string, string] => [line(width, level), `${number(volume)} trips`]);
  return [...lines, ["", LINES_NOTE]];
}

function showFlows(layer: FlowLayer, frame: Frame): MapView {
  const painter = new FlowPainter(layer), { areas, steps, shades } = layer.data;
  const map = new MapView(byId("canvas"), frame, painter);
  const shade = byId<HTMLSelectElement>("shade"), step = byId<HTMLInputElement>("step");
  const least = byId<HTMLInputElement>("least");
  /** The smallest and the largest volume of the shown flows. */
  const range = () => {
    const { volume } = painter.rows, low = Math.max(volume[volume.length - 1] ?? 1, 1);
    return { low, top: Math.max(volume[0] ?? 1, low + 1) };
  };
  const show = () => {
    const why = shade.value && layer.whyAllSteps(shade.value);
    painter.show(step.valueAsNumber - 1, shade.value);
    const volume = painter.least = threshold(least.valueAsNumber, range().low, range().top);
    showValue(least, volume ? `${number(volume)} trips or more` : "all flows");
    showValue(step, why || (steps[painter.step] ?? "all time steps"));
    step.disabled = Boolean(why);
    byId("least-label").hidden = Boolean(painter.classes);
    const { above, drawn } = painter.counts(), all = number(painter.rows.volume.length);
    byId("status").textContent = painter.classes
      ? `${number(areas.length)} areas. Choose “none: show flows” to see flows.`
      : `${number(drawn)} of ${all} flows${drawn < above ? " (the largest above the threshold)" : ""}.`;
    showLegend(flowItems(painter));
    map.repaint();
  };
  step.max = String(steps.length);
  step.addEventListener("input", show);
  least.addEventListener("input", show);
  shade.addEventListener("change", show);
  setOptions(shade, [["", "none: show flows"], ...shades.map(({ name, title }): [string, string] => [name, title])]);
  if (steps.length < 2) step.closest("label")!.hidden = true;
  const { volume } = painter.rows, { low, top } = range();
  if (volume.length > LINES_AT_FIRST) {
    const wanted = Math.max(volume[LINES_AT_FIRST], 1);
    least.value = String(Math.ceil((100 * Math.log(wanted / low)) / Math.log(top / low)));
  }
  showProfiles(painter, map);
  show();
  return map;
}

/** Show the profile of a zone that is chosen on the map or in the list. */
function showProfiles(painter: FlowPainter, map: MapView): void {
  const choice = byId<HTMLSelectElement>("zone-choice"), { areas, steps } = painter.layer.data;
  const listed = painter.layer.busiest.slice(0, ZONES_LISTED).map((i): [string, string] => [String(i), areas[i]]);
  setOptions(choice, [["", "choose one, or click on the map"], ...listed]);
  const sum = (values: Float64Array) => rounded(values.reduce((a, b) => a + (Number.isNaN(b) ? 0 : b), 0));
  painter.select = (area) => {
    const name = areas[area], { leave, reach } = painter.layer.profile(area), text = document.createElement("p");
    painter.chosen = area;
    const listed = [...choice.options].some((option) => option.value === String(area));
    if (!listed) choice.add(new Option(name, String(area)));
    choice.value = String(area);
    text.textContent = `${name}: about ${sum(leave)} trips leave and ${sum(reach)} reach it; trips of larger areas are `
      + "spread evenly over their tiles.";
    byId("profile").replaceChildren(text);
    const lines = [{ title: "leaving", values: leave }, { title: "reaching", values: reach, second: true }];
    const title = `Trips that leave and reach ${name} by time step`;
    if (steps.length > 1) byId("profile").append(chart(title, lines, steps));
    map.repaint();
  };
  choice.addEventListener("change", () => {
    if (choice.value !== "") return painter.select(Number(choice.value));
    painter.chosen = -1;
    byId("profile").replaceChildren();
    map.repaint();
  });
  byId("zone").hidden = false;
}

function showTrajectories(layer: TrajectoryLayer, frame: Frame, bins: string[]): MapView {
  const painter = new TrajectoryPainter(layer, frame), map = new MapView(byId("canvas"), frame, painter);
  const look = byId<HTMLSelectElement>("shade"), step = byId<HTMLInputElement>("step");
  const show = () => {
    painter.look = look.value;
    painter.step = step.valueAsNumber - 1;
    showValue(step, painter.step < 0 ? "all times" : `from ${bins[painter.step]}`);
    const { trajectories, points } = painter.counts();
    byId("status").textContent = `${number(points)} points of ${number(trajectories)} trajectories.`;
    const cells = painter.labels().map(([level, label]): [string, string] => [square(level), label]);
    showLegend(look.value === "heat" ? [...cells, ["", "trajectories with a point in a cell"]] : []);
    map.repaint();
  };
  step.max = String(bins.length);
  step.addEventListener("input", show);
  look.parentElement!.firstChild!.textContent = "Show ";
  setOptions(look, STYLES);
  look.addEventListener("change", show);
  byId("least-label").hidden = true;
  if (bins.length < 2) step.closest("label")!.hidden = true;
  show();
  return map;
}

function begin(): void {
  const data = JSON.parse(byId("data").textContent!) as Data, live = document.getElementById("live");
  if (!live || !data.frame || !data.layers.length) return;
  live.hidden = false;
  const map = data.kind === "flows" ? showFlows(new FlowLayer(data.layers[0]), data.frame)
    : showTrajectories(new TrajectoryLayer(data.layers[0]), data.frame, data.bins);
  byId("zoom-in").addEventListener("click", () => map.zoom(1.5));
  byId("zoom-out").addEventListener("click", () => map.zoom(1 / 1.5));
  byId("zoom-all").addEventListener("click", () => map.showAll());
}

begin();
