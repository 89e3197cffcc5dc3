// Draw areas and flows on the map; compute the profile of a zone.
import { type Colors, colors, LABEL_FONT, type Painter, type View } from "./mapview";
import { starts, summed } from "./sums";

/** A way to color areas: the class of each over all time steps, and the least value of each class. */
export interface Shade { name: string; title: string; labels: string[]; least: number[]; classes: number[] }

/** Classes of areas, -1 where there is none, with a label for each class. */
export interface Classes { classes: ArrayLike<number>; labels: string[] }

export interface FlowData {
  areas: string[]; sizes: number[]; x: number[]; y: number[]; rings: number[]; corners: number[]; cx: number[];
  cy: number[]; steps: string[]; rows: number[]; origin: number[]; destination: number[]; volume: number[];
  tiles?: number[]; shades: Shade[];
}

export interface Rows { origin: Int32Array; destination: Int32Array; volume: Float64Array }

const MOST_LINES = 10_000;
const MOST_HEADS = 200;
const MOST_NAMES = 40;
const CHUNK = 150;
const ZOOMED = 1.5;
const FLOW_CLASSES = 5;
const SHADES = 7;

/** Return the share of the widest line for a flow: it grows with the square root of the volume. */
const strength = (volume: number, top: number): number => Math.sqrt(Math.max(volume, 0) / top);
const flowWidth = (volume: number, top: number): number => 0.5 + 6.5 * strength(volume, top);
const flowClass = (volume: number, top: number): number =>
  Math.min(Math.floor(FLOW_CLASSES * strength(volume, top)), FLOW_CLASSES - 1);

/** Return the volume at a position of the slider, from 0 for all flows to 100 for the largest: equal steps are equal factors. */
export const threshold = (slider: number, low: number, top: number): number =>
  slider === 0 ? 0 : Math.round(low * Math.pow(top / low, slider / 100));

export const LINES_NOTE = "Lines bend to the right of their direction; circles are trips inside an area.";

/** Return volumes for a legend with the width and class of their lines; none is below the smallest that is drawn. */
export function flowLegend(top: number, low: number): { volume: number; width: number; level: number }[] {
  const round = (value: number) => (value < 1 ? 0 : Number(value.toPrecision(1)));
  const volumes = [round(0.02 * top), round(0.15 * top), round(0.45 * top), top].filter((v) => v >= low && v > 0);
  if (low > 0 && low < 0.7 * volumes[0]) volumes.unshift(low);
  return [...new Set(volumes)].map((volume) =>
    ({ volume, width: flowWidth(volume, top), level: flowClass(volume, top) }));
}

/** An unpacked layer of areas and flows. */
export class FlowLayer {
  readonly x: Int32Array;
  readonly y: Int32Array;
  /** Areas, the largest first. */
  readonly order: number[];
  /** Areas by their trips over all time steps, the busiest first. */
  readonly busiest: number[];
  /** Outlines of areas; null where one has none. */
  readonly paths: (Path2D | null)[];
  /** Left, top, right and bottom of each area. */
  private readonly boxes: [number, number, number, number][];
  private readonly rowStart: Int32Array;
  private readonly rows: Rows;
  private readonly tileStart: Int32Array;
  private readonly tiles: Int32Array | null;

  constructor(readonly data: FlowData) {
    this.x = summed(data.x);
    this.y = summed(data.y);
    this.rowStart = starts(data.rows);
    this.rows = {
      origin: summed(data.origin), destination: summed(data.destination), volume: Float64Array.from(data.volume),
    };
    this.tileStart = starts(data.sizes);
    this.tiles = data.tiles === undefined ? null : summed(data.tiles);
    this.boxes = data.areas.map((_, area) => [this.x[area], this.y[area], this.x[area], this.y[area]]);
    this.paths = this.outlines();
    const areas = [...data.areas.keys()], trips = this.trips(0, this.rows.volume.length);
    this.order = [...areas].sort((a, b) => this.data.sizes[b] - this.data.sizes[a] || a - b);
    this.busiest = [...areas].sort((a, b) => trips[b] - trips[a] || a - b);
  }

  /** Return the outline of each area, and extend its box by it. */
  private outlines(): (Path2D | null)[] {
    const ringStart = starts(this.data.rings), cornerStart = starts(this.data.corners);
    const cx = summed(this.data.cx), cy = summed(this.data.cy);
    return this.boxes.map((box, area) => {
      if (ringStart[area] === ringStart[area + 1]) return null;
      const path = new Path2D();
      for (let ring = ringStart[area]; ring < ringStart[area + 1]; ring++) {
        for (let i = cornerStart[ring]; i < cornerStart[ring + 1]; i++) {
          if (i === cornerStart[ring]) path.moveTo(cx[i], cy[i]);
          else path.lineTo(cx[i], cy[i]);
          box[0] = Math.min(box[0], cx[i]);
          box[1] = Math.min(box[1], cy[i]);
          box[2] = Math.max(box[2], cx[i]);
          box[3] = Math.max(box[3], cy[i]);
        }
        path.closePath();
      }
      return path;
    });
  }

  /** Return the smallest area at a position, -1 if there is none. */
  at(x: number, y: number, view: View, context: CanvasRenderingContext2D): number {
    const near = 7 / view.scale;
    const hit = (area: number) => {
      const [left, top, right, low] = this.boxes[area], path = this.paths[area];
      if (x < left - near || y < top - near || x > right + near || y > low + near) return false;
      if (path) return context.isPointInPath(path, x, y, "evenodd");
      return Math.hypot(x - this.x[area], y - this.y[area]) < near;
    };
    return [...this.order].reverse().find(hit) ?? -1;
  }

  /** Return the rows of a step, or sums over all steps (-1), the largest first. */
  rowsAt(step: number): Rows {
    const { origin, destination, volume } = step < 0 ? this.sums() : this.stepRows(step);
    const order = Int32Array.from(volume.keys()).sort((a, b) => volume[b] - volume[a] || a - b);
    const sorted = (values: Int32Array) => Int32Array.from(order, (i) => values[i]);
    return {
      origin: sorted(origin), destination: sorted(destination), volume: Float64Array.from(order, (i) => volume[i]),
    };
  }

  private stepRows(step: number): Rows {
    const [first, end] = [this.rowStart[step] ?? 0, this.rowStart[step + 1] ?? 0], { rows } = this;
    return {
      origin: rows.origin.slice(first, end), destination: rows.destination.slice(first, end),
      volume: rows.volume.slice(first, end),
    };
  }

  private sums(): Rows {
    const sums = new Map<number, number>(), count = this.data.areas.length;
    const { origin, destination, volume } = this.rows;
    for (let i = 0; i < volume.length; i++) {
      const key = origin[i] * count + destination[i];
      sums.set(key, (sums.get(key) ?? 0) + volume[i]);
    }
    const keys = [...sums.keys()].sort((a, b) => a - b);
    return {
      origin: Int32Array.from(keys, (key) => Math.floor(key / count)),
      destination: Int32Array.from(keys, (key) => key % count),
      volume: Float64Array.from(keys, (key) => sums.get(key)!),
    };
  }

  /** Return the mean number of tiles of an area, over the origins and destinations of all trips. */
  meanTiles(): number {
    const trips = this.trips(0, this.rows.volume.length), total = trips.reduce((a, b) => a + b, 0);
    return trips.reduce((sum, volume, area) => sum + volume * this.data.sizes[area], 0) / total;
  }

  /** Return trips that leave and reach a zone by step, NaN where no published flow touches it; the volumes of larger
   *  areas are spread evenly over their tiles. */
  profile(zone: number): { leave: Float64Array; reach: Float64Array } {
    const share = this.shares(zone), steps = this.rowStart.length - 1;
    const leave = new Float64Array(steps).fill(NaN), reach = new Float64Array(steps).fill(NaN);
    const add = (sums: Float64Array, step: number, part: number, volume: number) => {
      if (part > 0) sums[step] = (Number.isNaN(sums[step]) ? 0 : sums[step]) + part * volume;
    };
    for (let step = 0; step < steps; step++)
      for (let i = this.rowStart[step]; i < this.rowStart[step + 1]; i++) {
        add(leave, step, share[this.rows.origin[i]], this.rows.volume[i]);
        add(reach, step, share[this.rows.destination[i]], this.rows.volume[i]);
      }
    return { leave, reach };
  }

  /** Return the share of each area that is in a zone. */
  private shares(zone: number): number[] {
    const wanted = new Set(this.tilesOf(zone));
    return this.data.areas.map((_, area) => {
      const tiles = this.tilesOf(area);
      return tiles.filter((tile) => wanted.has(tile)).length / Math.max(tiles.length, 1);
    });
  }

  /** Return the tiles of an area; an area is one tile if its tiles are not known. */
  private tilesOf(area: number): number[] {
    if (!this.tiles) return [area];
    return Array.from(this.tiles.subarray(this.tileStart[area], this.tileStart[area + 1]));
  }

  /** Return the trips that leave or reach each area in a range of rows. */
  private trips(first: number, end: number): Float64Array {
    const trips = new Float64Array(this.data.areas.length), { origin, destination, volume } = this.rows;
    for (let i = first; i < end; i++) {
      trips[origin[i]] += volume[i];
      trips[destination[i]] += volume[i];
    }
    return trips;
  }

  /** Return the reason why a shade cannot be shown for a single time step; empty if it can. */
  whyAllSteps(shade: string): string {
    if (shade === "unpublished") return "all time steps: the share is of all of them";
    const known = this.tiles || this.data.sizes.every((size) => size === 1);
    return known ? "" : "all time steps: there are too many tiles for single ones";
  }

  /** Return the classes of a shade in a time step, or in all of them (-1). */
  classesAt(name: string, step: number): Classes | null {
    const shade = this.data.shades.find((each) => each.name === name);
    if (!shade) return null;
    if (step < 0 || this.whyAllSteps(name)) return { classes: shade.classes, labels: shade.labels };
    const { least, labels } = name === "trips" ? this.scaleOfSteps() : shade;
    const level = (value: number) => Math.max(0, least.filter((low) => low <= value).length - 1);
    return { classes: this.valuesAt(name, step).map((value) => (Number.isNaN(value) ? -1 : level(value))), labels };
  }

  /** Return classes of the trips of a single step: one scale for all steps, from a dozen of them, with about equally
   *  many areas in each class. */
  private scaleOfSteps(): { least: number[]; labels: string[] } {
    const steps = this.rowStart.length - 1, apart = Math.max(1, Math.floor(steps / 12)), known: number[] = [];
    for (let step = 0; step < steps; step += apart)
      known.push(...this.valuesAt("trips", step).filter((value) => !Number.isNaN(value)));
    known.sort((a, b) => a - b);
    const smallest = this.rows.volume.reduce((a, b) => Math.min(a, b), Infinity);
    const cut = (i: number) => Number((known[Math.floor((i * known.length) / SHADES)] ?? 0).toPrecision(2));
    const least = [0, ...new Set([1, 2, 3, 4, 5, 6].map(cut).filter((value) => value >= smallest))];
    const last = least.length - 1;
    const text = (value: number) => value.toLocaleString("en", { maximumFractionDigits: 1 });
    const label = (from: number, i: number) => {
      if (i === last) return i ? `${text(from)} and more` : "any number of trips";
      return i ? `${text(from)}–${text(least[i + 1])}` : `below ${text(least[1])}`;
    };
    return { least, labels: least.map(label) };
  }

  /** Return for each area the mean over its visible tiles of their trips, or of the number of tiles that these are
   *  spread over; NaN without published trips. */
  private valuesAt(name: string, step: number): Float64Array {
    const trips = this.trips(this.rowStart[step], this.rowStart[step + 1]);
    const spread = new Map<number, number>(), whole = new Map<number, number>(), visible = new Map<number, number>();
    for (const area of this.order)
      for (const tile of this.tilesOf(area)) {
        const volume = Math.max(trips[area], 0);
        spread.set(tile, (spread.get(tile) ?? 0) + volume / Math.max(this.data.sizes[area], 1));
        whole.set(tile, (whole.get(tile) ?? 0) + volume);
        visible.set(tile, area); // the smallest area is drawn last
      }
    const value = (tile: number) => (name === "trips" ? spread.get(tile)! : whole.get(tile)! / spread.get(tile)!);
    return Float64Array.from(this.data.areas, (_, area) => {
      const traveled = this.tilesOf(area).filter((tile) => spread.get(tile)! > 0);
      const seen = traveled.filter((tile) => visible.get(tile) === area), tiles = seen.length ? seen : traveled;
      return tiles.length ? tiles.reduce((sum, tile) => sum + value(tile), 0) / tiles.length : NaN;
    });
  }
}

/** Painter of a layer with the chosen step, threshold, shade and area. */
export class FlowPainter implements Painter {
  step = -1;
  shade = "";
  least = 0;
  chosen = -1;
  /** Volume of the widest line; 0 for the largest of the layer. */
  top = 0;
  rows: Rows;
  /** Classes of the chosen shade; null where flows are shown. */
  classes: Classes | null = null;
  select: (area: number) => void = () => {};
  private probe = document.createElement("canvas").getContext("2d")!;

  constructor(readonly layer: FlowLayer) { this.rows = layer.rowsAt(-1); }

  /** Show a time step, -1 for all of them, with areas in a shade, or with flows (""). */
  show(step: number, shade = ""): void {
    this.step = step;
    this.shade = shade;
    this.rows = this.layer.rowsAt(step);
    this.classes = shade ? this.layer.classesAt(shade, step) : null;
  }

  /** Return the trips of the widest line. */
  get widest(): number { return this.top || Math.max(this.rows.volume[0] ?? 1, 1); }

  /** Return the trips of the thinnest line that is drawn; 0 where there is none. */
  get thinnest(): number { return this.rows.volume[this.counts().drawn - 1] ?? 0; }

  /** Return how many flows reach the threshold, and how many of them are drawn. */
  counts(): { above: number; drawn: number } {
    const above = this.rows.volume.filter((volume) => volume >= this.least).length;
    return { above, drawn: this.classes ? 0 : Math.min(above, MOST_LINES) };
  }

  *paint(context: CanvasRenderingContext2D, view: View): Generator<void> {
    const look = colors(), one = this.chosen >= 0;
    yield* this.paintAreas(context, view, look);
    if (one) this.outline(context, view, look.ink);
    // The flows of a chosen zone are stronger than all others.
    if (!this.classes) yield* this.paintFlows(context, view, look, one ? 0.2 : 1);
    if (!this.classes && one) yield* this.paintFlows(context, view, look, 1, this.chosen);
    this.paintNames(context, view, look);
  }

  /** Write the names of the busiest areas in view where the map is zoomed, or has few areas; names do not overlap. */
  private paintNames(context: CanvasRenderingContext2D, view: View, look: Colors): void {
    const { data, x, y, busiest } = this.layer, taken: [number, number, number, number][] = [];
    if (view.zoom < ZOOMED && data.areas.length > MOST_NAMES) return;
    const places = busiest.map((area) => ({
      name: data.areas[area], x: (x[area] - view.x) * view.scale, y: (y[area] - view.y) * view.scale,
    })).filter((at) => at.x > 0 && at.y > 0 && at.x < view.width && at.y < view.height).slice(0, MOST_NAMES);
    context.save();
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    Object.assign(context, { font: LABEL_FONT, textAlign: "center", textBaseline: "middle" });
    Object.assign(context, { lineWidth: 3, lineJoin: "round", strokeStyle: look.paper, fillStyle: look.ink });
    for (const at of places) {
      const half = context.measureText(at.name).width / 2 + 3;
      const [left, top, right, low] = [at.x - half, at.y - 9, at.x + half, at.y + 9];
      const overlaps = taken.some(([l, t, r, b]) => left < r && right > l && top < b && low > t);
      if (left < 0 || right > view.width || overlaps) continue;
      taken.push([left, top, right, low]);
      context.strokeText(at.name, at.x, at.y);
      context.fillText(at.name, at.x, at.y);
    }
    context.restore();
  }

  private *paintAreas(context: CanvasRenderingContext2D, view: View, look: Colors): Generator<void> {
    const { order, paths, x, y } = this.layer;
    context.lineWidth = 0.6 / view.scale;
    context.strokeStyle = look.border;
    for (const [n, area] of order.entries()) {
      const level = this.classes ? this.classes.classes[area] : -1, path = paths[area];
      context.fillStyle = level >= 0 ? look.classes[Math.min(level, SHADES - 1)] : look.area;
      if (path) {
        context.fill(path, "evenodd");
        context.stroke(path);
      } else {
        context.beginPath();
        context.arc(x[area], y[area], 3.5 / view.scale, 0, 7);
        context.fill();
      }
      if (n % CHUNK === CHUNK - 1) yield;
    }
  }

  private outline(context: CanvasRenderingContext2D, view: View, ink: string): void {
    const path = this.layer.paths[this.chosen];
    context.lineWidth = 2.5 / view.scale;
    context.strokeStyle = ink;
    if (path) return context.stroke(path);
    context.beginPath();
    context.arc(this.layer.x[this.chosen], this.layer.y[this.chosen], 7 / view.scale, 0, 7);
    context.stroke();
  }

  /** Paint flows, or those of one area: small ones first, paler and less solid. */
  private *paintFlows(
    context: CanvasRenderingContext2D, view: View, look: Colors, solid: number, area = -1,
  ): Generator<void> {
    const { x, y } = this.layer, { origin, destination, volume } = this.rows, { drawn } = this.counts();
    const { widest } = this, crowd = area >= 0 ? 0.9 : drawn > 5000 ? 0.4 : drawn > 800 ? 0.6 : 0.8;
    context.lineCap = "round";
    for (let i = drawn - 1; i >= 0; i--) {
      if (i % CHUNK === 0) yield;
      const [from, to] = [origin[i], destination[i]], level = flowClass(volume[i], widest);
      if (area >= 0 && from !== area && to !== area) continue;
      context.strokeStyle = context.fillStyle = look.flows[level];
      context.globalAlpha = solid * crowd * (0.5 + (0.5 * level) / (FLOW_CLASSES - 1));
      context.lineWidth = flowWidth(volume[i], widest) / view.scale;
      context.beginPath();
      if (x[from] === x[to] && y[from] === y[to]) {
        context.arc(x[from], y[from], 3 / view.scale + context.lineWidth, 0, 7);
        context.stroke();
        continue;
      }
      // Bent to its right, so that both directions are visible.
      const bend = [(x[from] + x[to]) / 2 - 0.15 * (y[to] - y[from]), (y[from] + y[to]) / 2 + 0.15 * (x[to] - x[from])];
      context.moveTo(x[from], y[from]);
      context.quadraticCurveTo(bend[0], bend[1], x[to], y[to]);
      context.stroke();
      if (i < MOST_HEADS) this.paintHead(context, view, Math.atan2(y[to] - bend[1], x[to] - bend[0]), x[to], y[to]);
    }
    context.globalAlpha = 1;
  }

  private paintHead(context: CanvasRenderingContext2D, view: View, angle: number, x: number, y: number): void {
    const size = 5 / view.scale + 1.2 * context.lineWidth;
    context.beginPath();
    context.moveTo(x, y);
    for (const side of [angle - 0.42, angle + 0.42])
      context.lineTo(x - size * Math.cos(side), y - size * Math.sin(side));
    context.fill();
  }

  clicked(x: number, y: number, view: View): void {
    const area = this.layer.at(x, y, view, this.probe);
    if (area >= 0) this.select(area);
  }

  describe(x: number, y: number, view: View): string {
    const area = this.layer.at(x, y, view, this.probe);
    if (area < 0) return "";
    const size = this.layer.data.sizes[area];
    const name = `${this.layer.data.areas[area]} (${size} ${size === 1 ? "tile" : "tiles"})`;
    if (!this.classes) return name;
    return `${name}: ${this.classes.labels[this.classes.classes[area]] ?? "no published trips"}`;
  }
}
