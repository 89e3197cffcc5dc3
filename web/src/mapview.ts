// A map on a canvas that is moved and zoomed. It is painted in chunks on a second canvas; until that is done, the last
// picture is moved and scaled. The map does not know what the painter draws.

/** The section in view; `zoom` is 1 where all of the map just fits. */
export interface View {
  x: number; y: number; scale: number; zoom: number; width: number; height: number; ratio: number;
}

/** The size of the map in its units; `west`, `north` and degrees per unit place it on the globe. */
export interface Frame {
  width: number; height: number; meters: number; west: number; north: number; unit: number; squeeze: number;
}

export interface Painter {
  /** Paint in chunks, yielding between them. Coordinates are those of the frame; the transform is set. */
  paint(context: CanvasRenderingContext2D, view: View): Generator<void>;
  /** Handle a click at a position. */
  clicked?(x: number, y: number, view: View): void;
  /** Describe the area at a position. */
  describe?(x: number, y: number, view: View): string;
}

type Point = { x: number; y: number };
const BUDGET_MS = 9;
const MARGIN_PX = 16;
const SCALE_BAR_PX = 130;
const KEY_PX = 60;
export const LABEL_FONT = "12px system-ui, sans-serif";

export class MapView {
  private view: View = { x: 0, y: 0, scale: 1, zoom: 1, width: 1, height: 1, ratio: 1 };
  private picture: { view: View; canvas: HTMLCanvasElement } | null = null;
  private painting: Generator<void> | null = null;
  private tip = document.createElement("div");
  private pointers = new Map<number, Point>();
  private travel = 0;
  private fitted = true;
  /** Called when the user moved or zoomed, with the position in the middle, and pixels per unit. */
  moved: (x: number, y: number, scale: number) => void = () => {};

  constructor(private canvas: HTMLCanvasElement, private frame: Frame, private painter: Painter) {
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.tip.setAttribute("aria-hidden", "true");
    canvas.parentElement!.append(this.tip);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    this.resize();
  }

  /** Pixels per unit at which all of the map just fits. */
  private get whole(): number {
    return Math.max(Math.min(this.view.width / this.frame.width, this.view.height / this.frame.height), 1e-6);
  }

  private get middle(): Point {
    const { x, y, scale, width, height } = this.view;
    return { x: x + width / 2 / scale, y: y + height / 2 / scale };
  }

  showAll(): void {
    const share = 1 - (2 * MARGIN_PX) / Math.min(this.view.width, this.view.height);
    this.lookAt(this.frame.width / 2, this.frame.height / 2, this.whole * Math.max(share, 0.1));
    this.fitted = true;
    this.tell();
  }

  /** Show a position in the middle, at this many pixels per unit, without calling `moved`. */
  lookAt(x: number, y: number, scale: number): void {
    const { width, height } = this.view;
    const place = { x: x - width / 2 / scale, y: y - height / 2 / scale };
    Object.assign(this.view, { ...place, scale, zoom: scale / this.whole });
    this.fitted = false;
    this.repaint();
  }

  /** Zoom around a position in pixels. */
  zoom(factor: number, x = this.view.width / 2, y = this.view.height / 2): void {
    const before = this.view.scale;
    const scale = Math.min(Math.max(before * factor, this.whole / 4), this.whole * 400);
    const { middle } = this, by = 1 / before - 1 / scale;
    this.lookAt(middle.x + (x - this.view.width / 2) * by, middle.y + (y - this.view.height / 2) * by, scale);
    this.tell();
  }

  /** Move the section in view by pixels. */
  move(dx: number, dy: number): void {
    const { middle, view: { scale } } = this;
    this.lookAt(middle.x - dx / scale, middle.y - dy / scale, scale);
    this.tell();
  }

  private tell(): void { this.moved(this.middle.x, this.middle.y, this.view.scale); }

  private resize(): void {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), { clientWidth: width, clientHeight: height } = this.canvas;
    const same = width === this.view.width && height === this.view.height && ratio === this.view.ratio;
    if (!width || !height || same) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    // The same position stays in the middle: linked maps are resized one after the other.
    const { middle, view: { scale } } = this;
    Object.assign(this.view, { width, height, ratio });
    if (this.fitted) this.showAll();
    else this.lookAt(middle.x, middle.y, scale);
  }

  /** Paint again; a running painting is abandoned. */
  repaint(): void {
    this.showPicture();
    const canvas = document.createElement("canvas"), view = { ...this.view }, zoom = view.scale * view.ratio;
    canvas.width = this.canvas.width;
    canvas.height = this.canvas.height;
    const context = canvas.getContext("2d")!;
    context.setTransform(zoom, 0, 0, zoom, -view.x * zoom, -view.y * zoom);
    const painting = this.painter.paint(context, view);
    this.painting = painting;
    const step = () => {
      if (this.painting !== painting) return;
      const until = performance.now() + BUDGET_MS;
      let done = false;
      while (!done && performance.now() < until) done = painting.next().done === true;
      if (!done) return void requestAnimationFrame(step);
      this.picture = { view, canvas };
      this.showPicture();
      this.canvas.dataset.painted = String(Number(this.canvas.dataset.painted ?? 0) + 1);
    };
    requestAnimationFrame(step);
  }

  /** Draw the last picture at its current position and scale. */
  private showPicture(): void {
    const context = this.canvas.getContext("2d")!;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (!this.picture) return;
    const { view: was, canvas } = this.picture, { x, y, scale, ratio } = this.view;
    const factor = scale / was.scale, [left, top] = [(was.x - x) * scale * ratio, (was.y - y) * scale * ratio];
    context.drawImage(canvas, left, top, canvas.width * factor, canvas.height * factor);
    this.scaleBar(context);
  }

  /** Draw a bar of a round length, which belongs to the section in view. */
  private scaleBar(context: CanvasRenderingContext2D): void {
    const { scale, ratio, height } = this.view, longest = (SCALE_BAR_PX * this.frame.meters) / scale;
    const power = 10 ** Math.floor(Math.log10(longest));
    const meters = power * (longest >= 5 * power ? 5 : longest >= 2 * power ? 2 : 1);
    const length = (meters / this.frame.meters) * scale, [left, low] = [12, height - 12];
    if (!Number.isFinite(length)) return;
    context.save();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { ink } = colors();
    Object.assign(context, { font: LABEL_FONT, fillStyle: ink, strokeStyle: ink, lineWidth: 1.5 });
    context.beginPath();
    context.moveTo(left, low - 5);
    context.lineTo(left, low);
    context.lineTo(left + length, low);
    context.lineTo(left + length, low - 5);
    context.stroke();
    context.fillText(meters >= 1000 ? `${meters / 1000} km` : `${meters} m`, left + 5, low - 5);
    context.restore();
  }

  /** Return the position at a place in pixels. */
  private at({ offsetX, offsetY }: { offsetX: number; offsetY: number }): [number, number] {
    return [this.view.x + offsetX / this.view.scale, this.view.y + offsetY / this.view.scale];
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      this.travel = 0;
      this.tip.hidden = true;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = this.pointers.get(event.pointerId);
      if (before) this.drag(event, before);
      else this.point(event);
    });
    const up = (event: PointerEvent) => {
      const clicked = this.pointers.delete(event.pointerId) && this.travel < 4 && event.type === "pointerup";
      if (clicked) this.painter.clicked?.(...this.at(event), this.view);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 200), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** Move the map with one pointer, or zoom it with two. */
  private drag(event: PointerEvent, before: Point): void {
    const now = { x: event.offsetX, y: event.offsetY };
    this.travel += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    if (!other) return this.move(now.x - before.x, now.y - before.y);
    const apart = (point: Point) => Math.max(Math.hypot(point.x - other.x, point.y - other.y), 1);
    this.zoom(apart(now) / apart(before), other.x, other.y);
  }

  private key(event: KeyboardEvent): void {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => this.move(KEY_PX, 0), ArrowRight: () => this.move(-KEY_PX, 0),
      ArrowUp: () => this.move(0, KEY_PX), ArrowDown: () => this.move(0, -KEY_PX),
      "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), "0": () => this.showAll(),
      Enter: () => this.painter.clicked?.(this.middle.x, this.middle.y, this.view),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  }

  /** Show a tip on the area under the pointer. */
  private point(event: PointerEvent): void {
    const text = this.painter.describe?.(...this.at(event), this.view) ?? "";
    this.tip.hidden = !text;
    this.tip.textContent = text;
    const right = event.offsetX > this.view.width / 2;
    this.tip.style.left = right ? "" : `${event.offsetX + 12}px`;
    this.tip.style.right = right ? `${this.view.width - event.offsetX + 12}px` : "";
    this.tip.style.top = `${event.offsetY + 12}px`;
  }
}

export interface Colors {
  area: string; border: string; flow: string; ink: string; paper: string; flows: string[]; classes: string[];
}

/** Return the colors of the page's style, which follow light and dark mode. */
export function colors(): Colors {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    area: color("area"), border: color("border"), flow: color("flow"), ink: color("ink"), paper: color("paper"),
    flows: [0, 1, 2, 3, 4].map((i) => color(`f${i}`)), classes: [0, 1, 2, 3, 4, 5, 6].map((i) => color(`q${i}`)),
  };
}
