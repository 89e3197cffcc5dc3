// The page of a report: draws its data on the map and handles its controls.
import { chart, rounded } from "./chart";
import { FlowLayer, flowLegend, FlowPainter, type FlowData } from "./flows";
import { MapView, type Frame } from "./mapview";
import { STYLES, TrajectoryLayer, TrajectoryPainter, type TrajectoryData } from "./trajectories";

interface Data { kind: "flows" | "trajectories"; frame: Frame | null; layers: (FlowData | TrajectoryData)[]; bins?: string[] }

const ZONES_LISTED = 400;
const LINES_AT_FIRST = 400;

const found = <T extends HTMLElement>(id: string): T | null => document.getElementById(id) as T | null;

function options(select: HTMLSelectElement, choices: [string, string][]): void {
  select.replaceChildren(...choices.map(([value, title]) => new Option(title, value)));
}

function slider(id: string, most: number, format: (value: number) => string, use: (value: number) => void): HTMLInputElement {
  const input = found<HTMLInputElement>(id)!, output = found<HTMLOutputElement>(`${id}-out`)!;
  const show = () => {
    output.textContent = format(input.valueAsNumber);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.max = String(most);
  input.addEventListener("input", () => { show(); use(input.valueAsNumber); });
  input.addEventListener("relabel", show);
  show();
  return input;
}

function buttons(map: MapView): void {
  found("zoom-in")!.addEventListener("click", () => map.zoom(1.5));
  found("zoom-out")!.addEventListener("click", () => map.zoom(1 / 1.5));
  found("zoom-all")!.addEventListener("click", () => map.showAll());
}

/** Show a legend: pairs of a drawing and its label. */
function legend(items: [string, string][]): void {
  found("legend")!.replaceChildren(...items.map(([drawing, label]) => {
    const item = document.createElement("li");
    item.innerHTML = drawing;
    item.append(label);
    return item;
  }));
}

const square = (level: number) => `<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="q${level}" width="10" height="10"></rect></svg>`;
const lines = (top: number, low: number): [string, string][] => flowLegend(top, low).map(({ volume, width, level }) =>
  [`<svg class="line" viewBox="0 0 32 14" aria-hidden="true"><path class="f${level}" d="M3 7H29" stroke-width="${width.toFixed(1)}"></path></svg>`, `${volume.toLocaleString("en")} trips`]);
const DIRECTION: [string, string] = ["", "Lines bend to the right of their direction; circles are trips inside an area."];

function showFlows(data: Data): MapView {
  const painter = new FlowPainter(new FlowLayer(data.layers[0] as FlowData));
  const map = new MapView(found<HTMLCanvasElement>("canvas")!, data.frame!, painter);
  const status = found("status")!, shade = found<HTMLSelectElement>("shade")!;
  let low = 1, top = 1;
  const volumeOf = (value: number) => (value === 0 ? 0 : Math.round(low * Math.pow(top / low, value / 100)));
  const showStatus = () => {
    const { above, drawn } = painter.counts();
    const all = painter.layer.rowsAt(painter.step).volume.length;
    status.textContent = painter.shade
      ? `${painter.layer.count.toLocaleString("en")} areas. Choose “none: show flows” to see flows.`
      : `${drawn.toLocaleString("en")} of ${all.toLocaleString("en")} flows${drawn < above ? " (the largest above the threshold)" : ""}.`;
  };
  const least = slider("least", 100, (value) => (value === 0 ? "all flows" : `${volumeOf(value).toLocaleString("en")} trips or more`), (value) => {
    painter.least = volumeOf(value);
    refresh();
  });
  const step = slider("step", Math.max(painter.layer.data.steps.length, 0), (value) => (value === 0 ? "all time steps" : painter.layer.data.steps[value - 1] ?? ""), (value) => {
    painter.step = value - 1;
    rescale();
    refresh();
  });
  const range = () => {
    const { volume } = painter.layer.rowsAt(painter.step);
    low = Math.max(volume.length ? volume[volume.length - 1] : 1, 1);
    top = Math.max(volume.length ? volume[0] : 1, low + 1);
  };
  const rescale = () => {
    range();
    painter.least = volumeOf(least.valueAsNumber);
    least.dispatchEvent(new Event("relabel"));
  };
  const fewAtFirst = () => {
    const { volume } = painter.layer.rowsAt(painter.step);
    range();
    const wanted = volume.length > LINES_AT_FIRST ? Math.max(volume[LINES_AT_FIRST], 1) : 0;
    least.value = String(wanted ? Math.ceil((100 * Math.log(wanted / low)) / Math.log(top / low)) : 0);
    rescale();
  };
  const relabel = () => {
    options(shade, [["", "none: show flows"], ...painter.layer.data.shades.map(({ name, title }): [string, string] => [name, title])]);
    shade.value = painter.shade;
    const trips = painter.layer.trips();
    const busiest = Array.from(trips.keys()).sort((a, b) => trips[b] - trips[a] || a - b).slice(0, ZONES_LISTED);
    options(found<HTMLSelectElement>("zone-choice")!, [["", "choose one, or click on the map"], ...busiest.map((i): [string, string] => [String(i), painter.layer.data.areas[i]])]);
  };
  const refresh = () => {
    const now = painter.shown();
    legend(now ? now.labels.map((label, i): [string, string] => [square(i), label]) : [...lines(painter.widest, painter.thinnest), DIRECTION]);
    found("least-label")!.hidden = Boolean(now);
    const reason = painter.shade ? painter.layer.whyAllSteps(painter.shade) : "";
    if (step.disabled !== Boolean(reason) || reason) {
      step.disabled = Boolean(reason);
      step.dispatchEvent(new Event("relabel"));
      if (reason) found("step-out")!.textContent = reason;
    }
    showStatus();
    map.repaint();
  };
  shade.addEventListener("change", () => { painter.shade = shade.value; refresh(); });
  const choice = found<HTMLSelectElement>("zone-choice")!;
  const profile = (area: number) => {
    painter.chosen = area;
    const here = found("profile")!;
    here.replaceChildren();
    if (area >= 0) {
      if (![...choice.options].some((o) => o.value === String(area))) choice.add(new Option(painter.layer.data.areas[area], String(area)));
      choice.value = String(area);
      const { leave, reach } = painter.layer.profile(area);
      const name = painter.layer.data.areas[area], sum = (values: Float64Array) => rounded(values.reduce((a, b) => a + (Number.isNaN(b) ? 0 : b), 0));
      const text = document.createElement("p");
      text.textContent = `${name}: about ${sum(leave)} trips leave and ${sum(reach)} reach it; trips of larger areas are spread evenly over their tiles.`;
      here.append(text);
      if (leave.length > 1) here.append(chart(`Trips that leave and reach ${name} by time step`, [{ title: "leaving", values: leave }, { title: "reaching", values: reach, second: true }], painter.layer.data.steps));
    }
    map.repaint();
  };
  choice.addEventListener("change", () => profile(choice.value === "" ? -1 : Number(choice.value)));
  painter.select = profile;
  found("zone")!.hidden = false;
  if (painter.layer.data.steps.length < 2) step.closest("label")!.hidden = true;
  relabel();
  fewAtFirst();
  refresh();
  return map;
}

function showTrajectories(data: Data): MapView {
  const bins = data.bins ?? [];
  const painter = new TrajectoryPainter(new TrajectoryLayer(data.layers[0] as TrajectoryData), data.frame!);
  const map = new MapView(found<HTMLCanvasElement>("canvas")!, data.frame!, painter);
  const look = found<HTMLSelectElement>("shade")!;
  const refresh = () => {
    const { trajectories, points } = painter.counts();
    found("status")!.textContent = `${points.toLocaleString("en")} points of ${trajectories.toLocaleString("en")} trajectories.`;
    legend(painter.look === "heat" ? [...painter.labels().map(([level, label]): [string, string] => [square(level), label]), ["", "trajectories with a point in a cell"]] : []);
    map.repaint();
  };
  look.parentElement!.firstChild!.textContent = "Show ";
  options(look, STYLES);
  look.addEventListener("change", () => { painter.look = look.value; refresh(); });
  found("least-label")!.hidden = true;
  const step = slider("step", bins.length, (value) => (value === 0 ? "all times" : `from ${bins[value - 1]}`), (value) => { painter.step = value - 1; refresh(); });
  if (bins.length < 2) step.closest("label")!.hidden = true;
  refresh();
  return map;
}

function begin(): void {
  const data = JSON.parse(document.getElementById("data")!.textContent!) as Data;
  const live = found("live");
  if (!live || !data.frame || !data.layers.length) return;
  live.hidden = false;
  const map = data.kind === "flows" ? showFlows(data) : showTrajectories(data);
  buttons(map);
  map.painted = () => { document.documentElement.dataset.painted = String(Number(document.documentElement.dataset.painted ?? 0) + 1); };
}

begin();
