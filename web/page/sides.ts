// Two releases on one grid: where each has its trips or trajectories, and where they differ.
import { FlowLayer, FlowPainter, type FlowData } from "../src/flows";
import { colors, type Frame, type Painter, type View } from "../src/mapview";
import { TrajectoryLayer, TrajectoryPainter, type TrajectoryData } from "../src/trajectories";
import { blob } from "./api";

export interface Picture { kind: "flows" | "trajectories"; frame: Frame | null; layers: (FlowData | TrajectoryData)[]; bins?: string[] }
export type End = "origin" | "destination";

/** The data of the map in a report; null where there is none. */
export async function picture(id: string): Promise<Picture | null> {
  const page = new DOMParser().parseFromString(await (await blob(`/jobs/${id}/report`)).text(), "text/html");
  const data = page.getElementById("data")?.textContent;
  const found = data ? (JSON.parse(data) as Picture) : null;
  return found?.frame && found.layers.length && found.frame.unit ? found : null;
}

type Place = [x: number, y: number];
const toGlobe = (frame: Frame, [x, y]: Place): Place => [frame.west + (x * frame.unit) / frame.squeeze, frame.north - y * frame.unit];
const toFrame = (frame: Frame, [lon, lat]: Place): Place => [((lon - frame.west) * frame.squeeze) / frame.unit, (frame.north - lat) / frame.unit];
/** A place of one map on another. */
export const across = (from: Frame, to: Frame, place: Place): Place => toFrame(to, toGlobe(from, place));
export const scaleAcross = (from: Frame, to: Frame, scale: number): number => (scale * to.unit) / from.unit;

const CELLS = 64;

/** Square cells over a frame. */
export class Grid {
  readonly side: number;
  readonly columns: number;
  readonly rows: number;

  constructor(readonly frame: Frame) {
    this.side = Math.max(frame.width, frame.height) / CELLS;
    this.columns = Math.max(Math.ceil(frame.width / this.side), 1);
    this.rows = Math.max(Math.ceil(frame.height / this.side), 1);
  }

  get length(): number { return this.columns * this.rows; }
  private holds(x: number, y: number): boolean { return x >= 0 && y >= 0 && x <= this.frame.width && y <= this.frame.height; }
  column(x: number): number { return Math.min(Math.max(Math.floor(x / this.side), 0), this.columns - 1); }
  row(y: number): number { return Math.min(Math.max(Math.floor(y / this.side), 0), this.rows - 1); }
  /** The cell of a place; −1 outside of the grid, where arrays hold nothing. */
  cell([x, y]: Place): number { return this.holds(x, y) ? this.row(y) * this.columns + this.column(x) : -1; }
  middle(cell: number): Place { return [((cell % this.columns) + 0.5) * this.side, (Math.floor(cell / this.columns) + 0.5) * this.side]; }
}

/** One release: how it is painted, and how much it has in each cell of a grid. */
export interface Side {
  readonly frame: Frame;
  readonly steps: string[];
  readonly painter: Painter;
  /** The largest volume, or number of trajectories in a cell, at a time; "" for all times. */
  top(step: string): number;
  /** The least that is drawn, once it is shown; 0 where that has no meaning. */
  low(): number;
  show(step: string, least: number, top: number, look: string): string;
  /** The largest flows at a time, by the readable names of their areas. */
  largest(step: string): string[];
  density(grid: Grid, step: string, end: End): Float64Array;
}

const LISTED = 5;

export class FlowSide implements Side {
  readonly painter: FlowPainter;
  private readonly layer: FlowLayer;
  private readonly cells = new Map<number, Int32Array>();
  private readonly probe = document.createElement("canvas").getContext("2d")!;

  constructor(readonly frame: Frame, data: FlowData) {
    this.layer = new FlowLayer(data);
    this.painter = new FlowPainter(this.layer);
  }

  get steps(): string[] { return this.layer.data.steps; }

  /** A time step by its name; one that the release lacks has no rows. */
  private at(step: string): number {
    const found = this.steps.indexOf(step);
    return step === "" ? -1 : found < 0 ? this.steps.length : found;
  }

  top(step: string): number { return this.layer.rowsAt(this.at(step)).volume[0] ?? 0; }
  low(): number { return this.painter.thinnest; }

  show(step: string, least: number, top: number): string {
    Object.assign(this.painter, { step: this.at(step), least, top });
    const { drawn } = this.painter.counts();
    return `${drawn.toLocaleString("en")} of ${this.layer.rowsAt(this.painter.step).volume.length.toLocaleString("en")} flows`;
  }

  largest(step: string): string[] {
    const { origin, destination, volume } = this.layer.rowsAt(this.at(step)), { areas } = this.layer.data; // sorted by volume
    return Array.from(volume.subarray(0, LISTED), (trips, i) => `${areas[origin[i]]} → ${areas[destination[i]]}: ${trips.toLocaleString("en")} trips`);
  }

  /** Mean number of tiles of an area, over the origins and destinations of all trips. */
  meanTiles(): number {
    const { origin, destination, volume } = this.layer.rowsAt(-1);
    let tiles = 0, trips = 0;
    for (let i = 0; i < volume.length; i++) {
      tiles += (volume[i] * (this.layer.sizes[origin[i]] + this.layer.sizes[destination[i]])) / 2;
      trips += volume[i];
    }
    return trips ? tiles / trips : NaN;
  }

  density(grid: Grid, step: string, end: End): Float64Array {
    const sums = new Float64Array(grid.length), trips = new Float64Array(this.layer.count), rows = this.layer.rowsAt(this.at(step));
    for (let i = 0; i < rows.volume.length; i++) trips[rows[end][i]] += rows.volume[i];
    for (let area = 0; area < trips.length; area++) {
      if (!trips[area]) continue;
      const cells = this.cellsOf(grid, area);
      for (const cell of cells) sums[cell] += trips[area] / cells.length; // spread evenly over the area
    }
    return sums;
  }

  private cellsOf(grid: Grid, area: number): Int32Array {
    let found = this.cells.get(area);
    if (!found) {
      const [left, top, right, low] = this.layer.boxes.subarray(4 * area, 4 * area + 4), path = this.layer.path(area), inside: number[] = [];
      const [first, last] = [across(this.frame, grid.frame, [left, top]), across(this.frame, grid.frame, [right, low])];
      for (let row = grid.row(first[1]); path && row <= grid.row(last[1]); row++)
        for (let column = grid.column(first[0]); column <= grid.column(last[0]); column++) {
          const cell = row * grid.columns + column;
          if (this.probe.isPointInPath(path, ...across(grid.frame, this.frame, grid.middle(cell)), "evenodd")) inside.push(cell);
        }
      // An area smaller than a cell is in the cell of its center.
      found = Int32Array.from(inside.length ? inside : [grid.cell(across(this.frame, grid.frame, [this.layer.x[area], this.layer.y[area]]))]);
      this.cells.set(area, found);
    }
    return found;
  }
}

export class TrajectorySide implements Side {
  readonly painter: TrajectoryPainter;
  private readonly layer: TrajectoryLayer;

  constructor(readonly frame: Frame, data: TrajectoryData, readonly steps: string[]) {
    this.layer = new TrajectoryLayer(data);
    this.painter = new TrajectoryPainter(this.layer, frame);
  }

  private at(step: string): number {
    const found = this.steps.indexOf(step);
    return step === "" ? -1 : found < 0 ? this.steps.length : found;
  }

  low(): number { return 0; }

  top(step: string): number {
    this.painter.step = this.at(step);
    return this.painter.cells().count.reduce((a, b) => Math.max(a, b), 0);
  }

  show(step: string, _least: number, top: number, look: string): string {
    Object.assign(this.painter, { step: this.at(step), top, look });
    const { trajectories, points } = this.painter.counts();
    return `${points.toLocaleString("en")} points of ${trajectories.toLocaleString("en")} trajectories`;
  }

  largest(): string[] { return []; }

  density(grid: Grid, step: string): Float64Array {
    const sums = new Float64Array(grid.length), last = new Int32Array(grid.length).fill(-1), at = this.at(step);
    const { x, y, bin, start, count } = this.layer;
    for (let i = 0; i < count; i++)
      for (let j = start[i]; j < start[i + 1]; j++) {
        if (at >= 0 && bin[j] !== at) continue;
        const cell = grid.cell(across(this.frame, grid.frame, [x[j], y[j]]));
        if (last[cell] !== i) { last[cell] = i; sums[cell]++; }
      }
    return sums;
  }
}

export function sideOf({ kind, frame, layers, bins = [] }: Picture): Side {
  return kind === "flows" ? new FlowSide(frame!, layers[0] as FlowData) : new TrajectorySide(frame!, layers[0] as TrajectoryData, bins);
}

/** Where the second release has more than the first, and where it has less. */
export class DifferencePainter implements Painter {
  step = "";
  end: End = "origin";
  largest = 0;
  private first: Float64Array = new Float64Array(0);
  private second: Float64Array = new Float64Array(0);
  private made = "";

  constructor(readonly grid: Grid, private readonly sides: [Side, Side], private readonly what: string) {}

  /** Compute the densities of the chosen time, if they are not known yet. */
  update(): void {
    if (this.made === `${this.step} ${this.end}`) return;
    [this.first, this.second] = this.sides.map((side) => side.density(this.grid, this.step, this.end));
    this.largest = this.first.reduce((most, one, cell) => Math.max(most, Math.abs(one - this.second[cell])), 0);
    this.made = `${this.step} ${this.end}`;
  }

  *paint(context: CanvasRenderingContext2D, _view: View): Generator<void> {
    this.update();
    const { grid, first, second } = this, style = getComputedStyle(document.documentElement), look = colors();
    const [more, less] = ["--more", "--less"].map((name) => style.getPropertyValue(name).trim());
    for (let cell = 0; cell < grid.length; cell++) {
      if (!first[cell] && !second[cell]) continue;
      const [x, y] = grid.middle(cell), change = second[cell] - first[cell], box: [number, number, number, number] = [x - grid.side / 2, y - grid.side / 2, 0.96 * grid.side, 0.96 * grid.side];
      context.globalAlpha = 1;
      context.fillStyle = look.areas;
      context.fillRect(...box);
      context.globalAlpha = this.largest ? Math.sqrt(Math.abs(change) / this.largest) : 0;
      context.fillStyle = change > 0 ? more : less;
      context.fillRect(...box);
      if (cell % 500 === 0) yield;
    }
    context.globalAlpha = 1;
  }

  describe(x: number, y: number): string {
    if (x < 0 || y < 0 || x >= this.grid.columns * this.grid.side || y >= this.grid.rows * this.grid.side) return "";
    const cell = this.grid.cell([x, y]), round = (value: number) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
    return this.first[cell] || this.second[cell] ? `about ${round(this.first[cell])} ${this.what} in A, ${round(this.second[cell])} in B` : "";
  }
}
