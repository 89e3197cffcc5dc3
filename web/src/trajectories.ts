// Draw trajectories on the map as a heat map, lines or points, of all times or of one.
import { colors, type Frame, type Painter, type View } from "./mapview";
import { starts, summed } from "./sums";

export interface TrajectoryData { points: number[]; x: number[]; y: number[]; bin: number[] }

export const STYLES: [string, string][] = [["heat", "Heat map"], ["lines", "Lines"], ["points", "Points"]];
const CELLS = 72;
const CHUNK = 300;

/** Return the class of color of a cell: it grows with the square root of its trajectories. */
const heatClass = (count: number, top: number): number => Math.min(Math.floor(7 * Math.sqrt(count / top)), 6);

export class TrajectoryLayer {
  readonly x: Int32Array;
  readonly y: Int32Array;
  readonly bin: Int32Array;
  readonly start: Int32Array;

  constructor(readonly data: TrajectoryData) {
    this.x = summed(data.x);
    this.y = summed(data.y);
    this.bin = summed(data.bin);
    this.start = starts(data.points);
  }

  get count(): number { return this.start.length - 1; }
}

export class TrajectoryPainter implements Painter {
  step = -1;
  look = "heat";
  /** Trajectories in the darkest cell; 0 for the most of the layer. */
  top = 0;

  constructor(public layer: TrajectoryLayer, private frame: Frame) {}

  /** Count the trajectories and points at the chosen time. */
  counts(): { trajectories: number; points: number } {
    let trajectories = 0, points = 0;
    for (let i = 0; i < this.layer.count; i++) {
      let here = 0;
      for (let j = this.layer.start[i]; j < this.layer.start[i + 1]; j++) if (this.seen(j)) here++;
      points += here;
      trajectories += here > 0 ? 1 : 0;
    }
    return { trajectories, points };
  }

  private seen(point: number): boolean { return this.step < 0 || this.layer.bin[point] === this.step; }

  *paint(context: CanvasRenderingContext2D, view: View): Generator<void> {
    if (this.look === "heat") yield* this.heat(context);
    else if (this.look === "lines") yield* this.lines(context, view);
    else yield* this.dots(context, view);
  }

  private *heat(context: CanvasRenderingContext2D): Generator<void> {
    const { cell, count } = this.cells();
    yield;
    const top = this.top || this.most(), look = colors();
    for (let at = 0; at < count.length; at++) {
      if (!count[at]) continue;
      context.fillStyle = look.classes[heatClass(count[at], top)];
      context.fillRect((at % CELLS) * cell, Math.floor(at / CELLS) * cell, 0.96 * cell, 0.96 * cell);
    }
  }

  /** Return the classes that occur in the heat map, each with its numbers of trajectories as a label. */
  labels(): [number, string][] {
    const top = this.top || this.most(), ranges = new Map<number, [number, number]>();
    for (const count of [...this.cells().count].filter((each) => each > 0).sort((a, b) => a - b)) {
      const level = heatClass(count, top);
      ranges.set(level, [ranges.get(level)?.[0] ?? count, count]);
    }
    const text = (value: number) => value.toLocaleString("en");
    return [...ranges].map(([level, [low, high]]) => [level, low === high ? text(low) : `${text(low)}–${text(high)}`]);
  }

  /** Return the trajectories in the cell that has most. */
  most(): number { return this.cells().count.reduce((a, b) => Math.max(a, b), 1); }

  /** Count the trajectories in each cell of the heat map at the chosen time. */
  cells(): { cell: number; count: Int32Array } {
    const cell = Math.max(this.frame.width, this.frame.height) / CELLS;
    const count = new Int32Array(CELLS * CELLS), last = new Int32Array(CELLS * CELLS).fill(-1);
    const { x, y, start } = this.layer;
    for (let i = 0; i < this.layer.count; i++)
      for (let j = start[i]; j < start[i + 1]; j++) {
        if (!this.seen(j)) continue;
        const at = Math.min(Math.floor(y[j] / cell), CELLS - 1) * CELLS + Math.min(Math.floor(x[j] / cell), CELLS - 1);
        if (last[at] !== i) { last[at] = i; count[at]++; }
      }
    return { cell, count };
  }

  private *lines(context: CanvasRenderingContext2D, view: View): Generator<void> {
    const { x, y, start } = this.layer;
    context.strokeStyle = colors().flow;
    context.lineWidth = 1 / view.scale;
    context.globalAlpha = this.layer.count > 3000 ? 0.18 : 0.4;
    for (let i = 0; i < this.layer.count; i += 20) {
      context.beginPath();
      for (let one = i; one < Math.min(i + 20, this.layer.count); one++) {
        let down = false;
        for (let j = start[one]; j < start[one + 1]; j++) {
          if (!this.seen(j)) { down = false; continue; }
          if (down) context.lineTo(x[j], y[j]);
          else context.moveTo(x[j], y[j]);
          down = true;
        }
      }
      context.stroke();
      yield;
    }
  }

  private *dots(context: CanvasRenderingContext2D, view: View): Generator<void> {
    const { x, y } = this.layer;
    context.fillStyle = colors().flow;
    context.globalAlpha = x.length > 20_000 ? 0.3 : 0.6;
    const size = 2.2 / view.scale;
    for (let j = 0; j < x.length; j++) {
      if (this.seen(j)) context.fillRect(x[j] - size / 2, y[j] - size / 2, size, size);
      if (j % CHUNK === 0) yield;
    }
  }
}
