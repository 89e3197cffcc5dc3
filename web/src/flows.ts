// Draw areas and flows on the map; compute the profile of a zone.
import { colors, LABEL_FONT, type Painter, type View } from "./mapview";
import { starts, unpacked } from "./unpack";

export interface Shade { name: string; title: string; labels: string[]; least: number[]; classes: string }

/** Classes of areas with a label for each class. */
export interface Classes { classes: Float64Array; labels: string[] }

export interface FlowData {
  areas: string[]; sizes: string; x: string; y: string; rings: string; corners: string; cx: string; cy: string;
  steps: string[]; rows: string; origin: string; destination: string; volume: string; tiles?: string; shades: Shade[];
}

interface Rows { origin: Int32Array; destination: Int32Array; volume: Float64Array }

const MAX_LINES = 10_000;
const CHUNK = 150;
const MOST_LABELED = 40;
const ZOOMED = 1.5;
const FLOW_CLASSES = 5;

/** Width in pixels, and class of color, of a flow, where the largest has `top` trips: both grow with the square root of the volume. */
export const flowWidth = (volume: number, top: number): number => 0.5 + 6.5 * Math.sqrt(Math.max(volume, 0) / top);
const flowClass = (volume: number, top: number): number => Math.min(Math.floor(FLOW_CLASSES * Math.sqrt(Math.max(volume, 0) / top)), FLOW_CLASSES - 1);

/** Volumes for a legend, the smallest first and none below the smallest one that is drawn, each with the width and the class of its line. */
export function flowLegend(top: number, low: number): { volume: number; width: number; level: number }[] {
  const round = (value: number) => (value < 1 ? 0 : Number(value.toPrecision(1)));
  const volumes = [0.02, 0.15, 0.45, 1].map((share) => (share === 1 ? top : round(share * top))).filter((volume) => volume >= low && volume > 0);
  const first = low > 0 && low < 0.7 * volumes[0] ? [low] : [];
  return [...new Set([...first, ...volumes])].map((volume) => ({ volume, width: flowWidth(volume, top), level: flowClass(volume, top) }));
}

/** An unpacked layer of areas and flows. */
export class FlowLayer {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly sizes: Float64Array;
  readonly order: number[];
  readonly classes: Map<string, Float64Array>;
  private readonly rowStart: Int32Array;
  private readonly rows: Rows;
  private readonly ringStart: Int32Array;
  private readonly cornerStart: Int32Array;
  private readonly cx: Float64Array;
  private readonly cy: Float64Array;
  private readonly tileStart: Int32Array;
  private readonly tiles: Float64Array | null;
  private readonly paths: (Path2D | null | undefined)[];
  /** Left, top, right and bottom of each area. */
  readonly boxes: Float64Array;
  private allSteps: Rows | null = null;
  private byTrips: number[] | null = null;
  private bounds: { left: number; top: number; right: number; low: number } | null = null;
  private stepScale: { least: number[]; labels: string[] } | null = null;

  constructor(readonly data: FlowData) {
    this.x = unpacked(data.x, true);
    this.y = unpacked(data.y, true);
    this.sizes = unpacked(data.sizes);
    this.rowStart = starts(unpacked(data.rows));
    this.rows = {
      origin: Int32Array.from(unpacked(data.origin, true)), destination: Int32Array.from(unpacked(data.destination, true)), volume: unpacked(data.volume),
    };
    this.ringStart = starts(unpacked(data.rings));
    this.cornerStart = starts(unpacked(data.corners));
    this.cx = unpacked(data.cx, true);
    this.cy = unpacked(data.cy, true);
    this.tileStart = starts(this.sizes);
    this.tiles = data.tiles === undefined ? null : unpacked(data.tiles, true);
    this.paths = new Array(data.areas.length);
    this.boxes = this.boundingBoxes();
    this.order = data.areas.map((_, i) => i).sort((a, b) => this.sizes[b] - this.sizes[a] || a - b);
    this.classes = new Map(data.shades.map((shade) => [shade.name, unpacked(shade.classes)]));
  }

  get count(): number { return this.data.areas.length; }

  /** Return the outline of an area, built when it is first drawn; null if it has none. */
  path(area: number): Path2D | null {
    let path = this.paths[area];
    if (path === undefined) {
      path = this.ringStart[area] === this.ringStart[area + 1] ? null : new Path2D();
      for (let ring = this.ringStart[area]; path && ring < this.ringStart[area + 1]; ring++) {
        const [low, high] = [this.cornerStart[ring], this.cornerStart[ring + 1]];
        path.moveTo(this.cx[low], this.cy[low]);
        for (let i = low + 1; i < high - 1; i++) path.lineTo(this.cx[i], this.cy[i]);
        path.closePath();
      }
      this.paths[area] = path;
    }
    return path;
  }

  /** Return whether an area may be visible. */
  inside(area: number, view: View): boolean {
    const b = 4 * area;
    return this.boxes[b] <= view.x + view.width / view.scale && this.boxes[b + 2] >= view.x
      && this.boxes[b + 1] <= view.y + view.height / view.scale && this.boxes[b + 3] >= view.y;
  }

  /** Return the smallest area at a position, -1 if there is none. */
  at(x: number, y: number, view: View, context: CanvasRenderingContext2D): number {
    const near = 7 / view.scale;
    for (let i = this.order.length - 1; i >= 0; i--) {
      const area = this.order[i], b = 4 * area;
      if (x < this.boxes[b] - near || y < this.boxes[b + 1] - near || x > this.boxes[b + 2] + near || y > this.boxes[b + 3] + near) continue;
      const path = this.path(area);
      if (path ? context.isPointInPath(path, x, y, "evenodd") : Math.hypot(x - this.x[area], y - this.y[area]) < near) return area;
    }
    return -1;
  }

  /** Return the rows of a step, or sums over all steps (-1), the largest first. */
  rowsAt(step: number): Rows {
    if (step < 0) return (this.allSteps ??= this.sumSteps());
    const order = [];
    for (let i = this.rowStart[step]; i < this.rowStart[step + 1]; i++) order.push(i);
    return this.picked(order);
  }

  private sumSteps(): Rows {
    const sums = new Map<number, number>();
    const { origin, destination, volume } = this.rows;
    for (let i = 0; i < volume.length; i++) {
      const key = origin[i] * this.count + destination[i];
      sums.set(key, (sums.get(key) ?? 0) + volume[i]);
    }
    const pairs = [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    return {
      origin: Int32Array.from(pairs, ([key]) => Math.floor(key / this.count)), destination: Int32Array.from(pairs, ([key]) => key % this.count),
      volume: Float64Array.from(pairs, ([, sum]) => sum),
    };
  }

  private picked(order: number[]): Rows {
    const { origin, destination, volume } = this.rows;
    order.sort((a, b) => volume[b] - volume[a] || a - b);
    return {
      origin: Int32Array.from(order, (i) => origin[i]), destination: Int32Array.from(order, (i) => destination[i]),
      volume: Float64Array.from(order, (i) => volume[i]),
    };
  }

  /** Return trips that leave and reach a zone by step, NaN where no published flow touches it; volumes of larger areas are spread evenly over their tiles. */
  profile(zone: number): { leave: Float64Array; reach: Float64Array } {
    const share = this.shares(zone);
    const steps = this.rowStart.length - 1;
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

  /** Return the trips of each area over all steps. */
  trips(): Float64Array {
    const trips = new Float64Array(this.count);
    const { origin, destination, volume } = this.rows;
    for (let i = 0; i < volume.length; i++) { trips[origin[i]] += volume[i]; trips[destination[i]] += volume[i]; }
    return trips;
  }

  /** Areas by their trips, the busiest first. */
  get busiest(): number[] {
    if (!this.byTrips) {
      const trips = this.trips();
      this.byTrips = [...this.order].sort((a, b) => trips[b] - trips[a] || a - b);
    }
    return this.byTrips;
  }

  /** Bounds of all areas. */
  get extent(): { left: number; top: number; right: number; low: number } {
    if (!this.bounds) {
      const bounds = { left: Infinity, top: Infinity, right: -Infinity, low: -Infinity };
      for (let b = 0; b < this.boxes.length; b += 4) {
        bounds.left = Math.min(bounds.left, this.boxes[b]); bounds.top = Math.min(bounds.top, this.boxes[b + 1]);
        bounds.right = Math.max(bounds.right, this.boxes[b + 2]); bounds.low = Math.max(bounds.low, this.boxes[b + 3]);
      }
      this.bounds = bounds;
    }
    return this.bounds;
  }

  /** Return why a shade cannot be shown for a single time step; empty if it can. */
  whyAllSteps(shade: string): string {
    if (shade === "unpublished") return "all time steps: the share is of all of them";
    return this.tiles || this.sizes.every((size) => size === 1) ? "" : "all time steps: there are too many tiles for single ones";
  }

  /** Return the classes of a shade in a time step, or in all of them (-1). */
  classesAt(name: string, step: number): Classes | null {
    const shade = this.data.shades.find((each) => each.name === name);
    if (!shade) return null;
    if (step < 0 || this.whyAllSteps(name)) return { classes: this.classes.get(name)!, labels: shade.labels };
    const { least, labels } = name === "trips" ? this.scaleOfSteps() : shade;
    const values = this.valuesAt(name, step);
    return { classes: values.map((value) => (Number.isNaN(value) ? -1 : Math.max(0, least.filter((low) => low <= value).length - 1))), labels };
  }

  /** Return classes of the trips of a single step: one scale for all steps, from some of them, with about equally many areas in each class. */
  private scaleOfSteps(): { least: number[]; labels: string[] } {
    if (this.stepScale) return this.stepScale;
    const steps = this.rowStart.length - 1, apart = Math.max(1, Math.floor(steps / 12)), known: number[] = [];
    for (let step = 0; step < steps; step += apart) known.push(...this.valuesAt("trips", step).filter((value) => !Number.isNaN(value)));
    known.sort((a, b) => a - b);
    const cuts = [1, 2, 3, 4, 5, 6].map((i) => Number((known[Math.floor((i * known.length) / 7)] ?? 0).toPrecision(2)));
    const low = this.rows.volume.reduce((a, b) => Math.min(a, b), Infinity);
    const least = [0, ...new Set(cuts.filter((cut) => cut >= low))];
    const text = (value: number) => value.toLocaleString("en", { maximumFractionDigits: 1 });
    const last = least.length - 1;
    const labels = least.map((from, i) =>
      i === last ? (i ? `${text(from)} and more` : "any number of trips")
        : i ? `${text(from)}–${text(least[i + 1])}` : `below ${text(least[1])}`);
    return (this.stepScale = { least, labels });
  }

  /** Return for each area the mean over its visible tiles of their trips, or of the tiles that these are spread over; NaN without published trips. */
  private valuesAt(name: string, step: number): Float64Array {
    const trips = new Float64Array(this.count), tiles = this.tiles ?? Float64Array.from(this.data.areas.keys());
    for (let i = this.rowStart[step]; i < this.rowStart[step + 1]; i++) {
      trips[this.rows.origin[i]] += this.rows.volume[i];
      trips[this.rows.destination[i]] += this.rows.volume[i];
    }
    const count = tiles.reduce((a, b) => Math.max(a, b), -1) + 1;
    const spread = new Float64Array(count), whole = new Float64Array(count), face = new Int32Array(count);
    for (const area of this.order)
      for (let i = this.tileStart[area]; i < this.tileStart[area + 1]; i++) {
        spread[tiles[i]] += Math.max(trips[area], 0) / Math.max(this.sizes[area], 1);
        whole[tiles[i]] += Math.max(trips[area], 0);
        face[tiles[i]] = area;
      }
    const value = (tile: number) => (name === "trips" ? spread[tile] : whole[tile] / spread[tile]);
    return Float64Array.from(this.data.areas, (_, area) => {
      const held = Array.from(tiles.subarray(this.tileStart[area], this.tileStart[area + 1])).filter((tile) => spread[tile] > 0);
      const seen = held.filter((tile) => face[tile] === area), mean = seen.length ? seen : held;
      return mean.length ? mean.reduce((sum, tile) => sum + value(tile), 0) / mean.length : NaN;
    });
  }

  private shares(zone: number): Float64Array {
    const share = new Float64Array(this.count);
    share[zone] = 1;
    if (!this.tiles) return share;
    const wanted = new Set(this.tiles.subarray(this.tileStart[zone], this.tileStart[zone + 1]));
    for (let area = 0; area < this.count; area++) {
      let both = 0;
      for (let i = this.tileStart[area]; i < this.tileStart[area + 1]; i++) if (wanted.has(this.tiles[i])) both++;
      share[area] = both / Math.max(this.sizes[area], 1);
    }
    return share;
  }

  private boundingBoxes(): Float64Array {
    const boxes = new Float64Array(4 * this.data.areas.length);
    for (let area = 0; area < this.data.areas.length; area++) {
      let [left, top, right, low] = [this.x[area], this.y[area], this.x[area], this.y[area]];
      for (let i = this.cornerStart[this.ringStart[area]]; i < this.cornerStart[this.ringStart[area + 1]]; i++) {
        left = Math.min(left, this.cx[i]); right = Math.max(right, this.cx[i]);
        top = Math.min(top, this.cy[i]); low = Math.max(low, this.cy[i]);
      }
      boxes.set([left, top, right, low], 4 * area);
    }
    return boxes;
  }
}

/** Painter of a layer with the chosen step, threshold, shade and area. */
export class FlowPainter implements Painter {
  step = -1;
  least = 0;
  shade = "";
  chosen = -1;
  /** Volume of the widest line; 0 for the largest of the layer. */
  top = 0;
  select: (area: number) => void = () => {};
  private cached: { key: string; found: Classes | null } = { key: "", found: null };
  private probe = document.createElement("canvas").getContext("2d")!;

  constructor(public layer: FlowLayer) {}

  /** Return the trips of the widest line. */
  get widest(): number {
    const { volume } = this.layer.rowsAt(this.step);
    return this.top || Math.max(volume[0] ?? 1, 1);
  }

  /** Return the trips of the thinnest line that is drawn; 0 where there is none. */
  get thinnest(): number { return this.layer.rowsAt(this.step).volume[this.counts().drawn - 1] ?? 0; }

  /** Return how many flows reach the threshold, and how many of them are drawn. */
  counts(): { above: number; drawn: number } {
    const { volume } = this.layer.rowsAt(this.step);
    let [low, high] = [0, volume.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (volume[middle] >= this.least) low = middle + 1;
      else high = middle;
    }
    return { above: low, drawn: this.shade ? 0 : Math.min(low, MAX_LINES) };
  }

  /** Return the classes of the chosen shade and time step, computed once; null if flows are shown. */
  shown(): Classes | null {
    const key = `${this.shade} ${this.step}`;
    if (this.cached.key !== key) this.cached = { key, found: this.shade ? this.layer.classesAt(this.shade, this.step) : null };
    return this.cached.found;
  }

  *paint(context: CanvasRenderingContext2D, view: View): Generator<void> {
    const look = colors();
    yield* this.paintAreas(context, view, look);
    if (this.chosen >= 0) this.outline(context, view, look.ink);
    if (this.shade) return this.labels(context, view, look);
    // The flows of a chosen zone are drawn stronger than all others.
    yield* this.paintFlows(context, view, look, this.chosen >= 0 ? 0.2 : 1, -1);
    if (this.chosen >= 0) yield* this.paintFlows(context, view, look, 1, this.chosen);
    this.labels(context, view, look);
  }

  /** Write the names of the busiest areas in view where the map is zoomed, or has few areas; names do not overlap. */
  private labels(context: CanvasRenderingContext2D, view: View, look: ReturnType<typeof colors>): void {
    const { layer } = this, at = (area: number): [number, number] => [(layer.x[area] - view.x) * view.scale, (layer.y[area] - view.y) * view.scale];
    const { left, top, right, low } = layer.extent, zoomed = (right - left) * view.scale > ZOOMED * view.width || (low - top) * view.scale > ZOOMED * view.height;
    if (!zoomed && layer.count > MOST_LABELED) return;
    const seen = layer.busiest.filter((area) => at(area)[0] > 0 && at(area)[1] > 0 && at(area)[0] < view.width && at(area)[1] < view.height).slice(0, MOST_LABELED);
    const taken: [number, number, number, number][] = [];
    context.save();
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    Object.assign(context, { font: LABEL_FONT, textAlign: "center", textBaseline: "middle", lineWidth: 3, lineJoin: "round", strokeStyle: look.paper, fillStyle: look.ink });
    for (const area of seen) {
      const [x, y] = at(area), name = layer.data.areas[area], half = context.measureText(name).width / 2 + 3;
      if (x - half < 0 || x + half > view.width || taken.some(([l, t, r, b]) => x - half < r && x + half > l && y - 9 < b && y + 9 > t)) continue;
      taken.push([x - half, y - 9, x + half, y + 9]);
      context.strokeText(name, x, y);
      context.fillText(name, x, y);
    }
    context.restore();
  }

  private *paintAreas(context: CanvasRenderingContext2D, view: View, look: ReturnType<typeof colors>): Generator<void> {
    const { layer } = this;
    const classes = this.shown()?.classes;
    context.lineWidth = 0.6 / view.scale;
    context.strokeStyle = look.border;
    let since = 0;
    for (const area of layer.order) {
      if (!layer.inside(area, view)) continue;
      const level = classes ? classes[area] : -1;
      context.fillStyle = level >= 0 ? look.classes[Math.min(level, 6)] : look.areas;
      const path = layer.path(area);
      if (path) {
        context.fill(path, "evenodd");
        context.stroke(path);
      } else {
        context.beginPath();
        context.arc(layer.x[area], layer.y[area], 3.5 / view.scale, 0, 7);
        context.fill();
      }
      if (++since % CHUNK === 0) yield;
    }
  }

  private outline(context: CanvasRenderingContext2D, view: View, ink: string): void {
    const path = this.layer.path(this.chosen);
    context.lineWidth = 2.5 / view.scale;
    context.strokeStyle = ink;
    if (path) return context.stroke(path);
    context.beginPath();
    context.arc(this.layer.x[this.chosen], this.layer.y[this.chosen], 7 / view.scale, 0, 7);
    context.stroke();
  }

  private *paintFlows(context: CanvasRenderingContext2D, view: View, look: ReturnType<typeof colors>, strength: number, of: number): Generator<void> {
    const { x, y } = this.layer;
    const { origin, destination, volume } = this.layer.rowsAt(this.step);
    const { drawn } = this.counts();
    const top = this.widest;
    const heads = Math.min(drawn, 200);
    context.lineCap = "round";
    const [left, upper, right, lower] = [view.x, view.y, view.x + view.width / view.scale, view.y + view.height / view.scale];
    const solid = strength * (of >= 0 ? 0.9 : drawn > 5000 ? 0.4 : drawn > 800 ? 0.6 : 0.8);
    // Small flows are faded: paler, and less solid.
    const color = (trips: number) => {
      const level = flowClass(trips, top);
      context.strokeStyle = context.fillStyle = look.flows[level];
      context.globalAlpha = solid * (0.5 + (0.5 * level) / (FLOW_CLASSES - 1));
    };
    // Small flows first, in chunks of one width: a stroke of few lines is fast, so the canvas stays responsive.
    for (let last = drawn; last > 0; ) {
      const first = Math.max(0, last - CHUNK);
      const width = flowWidth(volume[first], top) / view.scale;
      color(volume[first]);
      const single = first < heads;
      context.lineWidth = width;
      context.beginPath();
      for (let i = last - 1; i >= first; i--) {
        if (of >= 0 && origin[i] !== of && destination[i] !== of) continue;
        const [x0, y0, x1, y1] = [x[origin[i]], y[origin[i]], x[destination[i]], y[destination[i]]];
        if (Math.max(x0, x1) < left || Math.min(x0, x1) > right || Math.max(y0, y1) < upper || Math.min(y0, y1) > lower) continue;
        const own = single ? flowWidth(volume[i], top) / view.scale : width;
        if (single) { context.beginPath(); context.lineWidth = own; color(volume[i]); }
        if (x0 === x1 && y0 === y1) {
          const radius = 3 / view.scale + own;
          context.moveTo(x0 + radius, y0);
          context.arc(x0, y0, radius, 0, 7);
        } else {
          // Bent to its right, so that both directions are visible.
          const [bx, by] = [(x0 + x1) / 2 - 0.15 * (y1 - y0), (y0 + y1) / 2 + 0.15 * (x1 - x0)];
          context.moveTo(x0, y0);
          context.quadraticCurveTo(bx, by, x1, y1);
          if (single) { context.stroke(); this.head(context, view, bx, by, x1, y1, own); context.beginPath(); }
        }
        if (single) context.stroke();
      }
      if (!single) context.stroke();
      last = first;
      yield;
    }
    context.globalAlpha = 1;
  }

  private head(context: CanvasRenderingContext2D, view: View, bx: number, by: number, x: number, y: number, width: number): void {
    const angle = Math.atan2(y - by, x - bx), size = 5 / view.scale + 1.2 * width;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - size * Math.cos(angle - 0.42), y - size * Math.sin(angle - 0.42));
    context.lineTo(x - size * Math.cos(angle + 0.42), y - size * Math.sin(angle + 0.42));
    context.fill();
  }

  clicked(x: number, y: number, view: View): void {
    const area = this.layer.at(x, y, view, this.probe);
    if (area >= 0) this.select(area);
  }

  describe(x: number, y: number, view: View): string {
    const area = this.layer.at(x, y, view, this.probe);
    if (area < 0) return "";
    const shown = this.shown(), level = shown ? shown.classes[area] : -1;
    const size = this.layer.sizes[area];
    return `${this.layer.data.areas[area]} (${size} ${size === 1 ? "tile" : "tiles"})${shown && level >= 0 ? `: ${shown.labels[level]}` : shown ? ": no published trips" : ""}`;
  }
}
