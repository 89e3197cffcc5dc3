// Trajectories on the map: a heat map, paths or points, of all times or of one.
import { colors, type Frame, type Painter, type View } from "./mapview";
import { starts, unpacked } from "./unpack";

export interface TrackData { name: string; title: string; points: string; x: string; y: string; bin: string }

export const LOOKS: [string, string][] = [["heat", "Heat map"], ["paths", "Paths"], ["points", "Points"]];
const CELLS = 72;
const CHUNK = 300;

export class TrackLayer {
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly bin: Float64Array;
  readonly start: Int32Array;

  constructor(readonly data: TrackData) {
    this.x = unpacked(data.x, true);
    this.y = unpacked(data.y, true);
    this.bin = unpacked(data.bin, true);
    this.start = starts(unpacked(data.points));
  }

  get count(): number { return this.start.length - 1; }
}

export class TrackPainter implements Painter {
  step = -1;
  look = "heat";

  constructor(public layer: TrackLayer, private frame: Frame) {}

  /** How many trajectories and points there are at the chosen time. */
  counts(): { tracks: number; points: number } {
    let tracks = 0, points = 0;
    for (let i = 0; i < this.layer.count; i++) {
      let here = 0;
      for (let j = this.layer.start[i]; j < this.layer.start[i + 1]; j++) if (this.seen(j)) here++;
      points += here;
      tracks += here > 0 ? 1 : 0;
    }
    return { tracks, points };
  }

  private seen(point: number): boolean { return this.step < 0 || this.layer.bin[point] === this.step; }

  *paint(context: CanvasRenderingContext2D, view: View): Generator<void> {
    if (this.look === "heat") yield* this.heat(context);
    else if (this.look === "paths") yield* this.paths(context, view);
    else yield* this.dots(context, view);
  }

  private *heat(context: CanvasRenderingContext2D): Generator<void> {
    const cell = Math.max(this.frame.width, this.frame.height) / CELLS;
    const count = new Int32Array(CELLS * CELLS), last = new Int32Array(CELLS * CELLS).fill(-1);
    const { x, y, start } = this.layer;
    for (let i = 0; i < this.layer.count; i++)
      for (let j = start[i]; j < start[i + 1]; j++) {
        if (!this.seen(j)) continue;
        const at = Math.min(Math.floor(y[j] / cell), CELLS - 1) * CELLS + Math.min(Math.floor(x[j] / cell), CELLS - 1);
        if (last[at] !== i) { last[at] = i; count[at]++; }
      }
    yield;
    const top = count.reduce((a, b) => Math.max(a, b), 1), look = colors();
    for (let at = 0; at < count.length; at++) {
      if (!count[at]) continue;
      context.fillStyle = look.classes[Math.min(Math.floor(7 * Math.sqrt(count[at] / top)), 6)];
      context.fillRect((at % CELLS) * cell, Math.floor(at / CELLS) * cell, 0.96 * cell, 0.96 * cell);
    }
  }

  private *paths(context: CanvasRenderingContext2D, view: View): Generator<void> {
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
