// A responsive map on a canvas: it is painted in chunks on a second canvas, and the last image is moved and scaled until that is
// done. It is independent of what is painted, so that other pages can use it.

export interface View { x: number; y: number; scale: number; width: number; height: number; ratio: number }

/** A section of the map; `west`, `north` and degrees per unit place it on the globe. */
export interface Frame { width: number; height: number; meters: number; west: number; north: number; unit: number; squeeze: number }

export interface Painter {
  /** Paint in chunks, yielding between them. Coordinates are those of the frame; the transform is set. */
  paint(context: CanvasRenderingContext2D, view: View): Generator<void>;
  /** Handle a click at a position. */
  clicked?(x: number, y: number, view: View): void;
  /** Describe what is at a position. */
  describe?(x: number, y: number, view: View): string;
}

const BUDGET_MS = 9;
const MOST_BAR_PX = 130;
export const LABEL_FONT = "12px system-ui, sans-serif";

export class MapView {
  private view: View = { x: 0, y: 0, scale: 1, width: 1, height: 1, ratio: 1 };
  private shown: { view: View; canvas: HTMLCanvasElement } | null = null;
  private job: Generator<void> | null = null;
  private stale = false;
  private tip = document.createElement("div");
  private pointers = new Map<number, { x: number; y: number }>();
  private travel = 0;
  private fitted = true;
  /** Called after each finished painting. */
  painted: () => void = () => {};
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

  use(painter: Painter): void {
    this.painter = painter;
    this.repaint();
  }

  showAll(): void {
    const { width, height } = this.view;
    const margin = 16;
    const scale = Math.min((width - 2 * margin) / this.frame.width, (height - 2 * margin) / this.frame.height);
    this.view.scale = Math.max(scale, 1e-6);
    this.view.x = this.frame.width / 2 - width / 2 / this.view.scale;
    this.view.y = this.frame.height / 2 - height / 2 / this.view.scale;
    this.fitted = true;
    this.went();
  }

  /** Show a position in the middle, at this many pixels per unit, without calling `moved`. */
  lookAt(x: number, y: number, scale: number): void {
    Object.assign(this.view, { scale, x: x - this.view.width / 2 / scale, y: y - this.view.height / 2 / scale });
    this.fitted = false;
    this.changed();
  }

  zoom(factor: number, x = this.view.width / 2, y = this.view.height / 2): void {
    const all = Math.min(this.view.width / this.frame.width, this.view.height / this.frame.height);
    const scale = Math.min(Math.max(this.view.scale * factor, all / 4), all * 400);
    this.view.x += x / this.view.scale - x / scale;
    this.view.y += y / this.view.scale - y / scale;
    this.view.scale = scale;
    this.fitted = false;
    this.went();
  }

  move(dx: number, dy: number): void {
    this.view.x -= dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.fitted = false;
    this.went();
  }

  /** Paint changed content. A running painting is abandoned. */
  repaint(): void {
    this.job = null;
    this.changed();
  }

  private went(): void {
    const { x, y, width, height, scale } = this.view;
    this.moved(x + width / 2 / scale, y + height / 2 / scale, scale);
    this.changed();
  }

  private changed(): void {
    this.blit();
    if (this.job) this.stale = true;
    else this.start();
  }

  private resize(): void {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height || (width === this.view.width && height === this.view.height && ratio === this.view.ratio)) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    // The same position stays in the middle: linked maps are resized one after the other.
    const { x, y, scale } = this.view, middle = [x + this.view.width / 2 / scale, y + this.view.height / 2 / scale];
    Object.assign(this.view, { width, height, ratio, x: middle[0] - width / 2 / scale, y: middle[1] - height / 2 / scale });
    if (this.fitted) this.showAll();
    else this.repaint();
  }

  private start(): void {
    const canvas = document.createElement("canvas");
    canvas.width = this.canvas.width;
    canvas.height = this.canvas.height;
    const context = canvas.getContext("2d");
    if (!context) return;
    const view = { ...this.view };
    const zoom = view.scale * view.ratio;
    context.setTransform(zoom, 0, 0, zoom, -view.x * zoom, -view.y * zoom);
    const job = this.painter.paint(context, view);
    this.job = job;
    this.stale = false;
    const first = this.shown === null;
    const step = () => {
      if (this.job !== job) return;
      const until = performance.now() + BUDGET_MS;
      let done = false;
      while (!done && performance.now() < until) done = job.next().done === true;
      if (done) {
        this.shown = { view, canvas };
        this.job = null;
        this.blit();
        this.painted();
        if (this.stale) this.start();
        return;
      }
      if (first) this.blit({ view, canvas });
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  /** Draw the last image at its current position and scale. */
  private blit(picture = this.shown): void {
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (!picture) return;
    const { view: was, canvas } = picture;
    const factor = this.view.scale / was.scale;
    const dx = (was.x - this.view.x) * this.view.scale * this.view.ratio, dy = (was.y - this.view.y) * this.view.scale * this.view.ratio;
    context.drawImage(canvas, dx, dy, canvas.width * factor, canvas.height * factor);
    this.scaleBar(context);
  }

  /** Draw a bar of a round length, which belongs to the section that is shown. */
  private scaleBar(context: CanvasRenderingContext2D): void {
    const { scale, ratio, height } = this.view, most = (MOST_BAR_PX * this.frame.meters) / scale;
    const power = 10 ** Math.floor(Math.log10(most)), meters = power * (most >= 5 * power ? 5 : most >= 2 * power ? 2 : 1);
    const [left, low, length] = [12, height - 12, (meters / this.frame.meters) * scale], text = meters >= 1000 ? `${meters / 1000} km` : `${meters} m`;
    if (!Number.isFinite(length)) return;
    context.save();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    Object.assign(context, { font: LABEL_FONT, fillStyle: colors().ink, strokeStyle: colors().ink, lineWidth: 1.5 });
    context.beginPath();
    context.moveTo(left, low - 5);
    context.lineTo(left, low);
    context.lineTo(left + length, low);
    context.lineTo(left + length, low - 5);
    context.stroke();
    context.fillText(text, left + 5, low - 5);
    context.restore();
  }

  private at(event: { offsetX: number; offsetY: number }): [number, number] {
    return [this.view.x + event.offsetX / this.view.scale, this.view.y + event.offsetY / this.view.scale];
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
      if (!before) return this.point(event);
      const now = { x: event.offsetX, y: event.offsetY };
      this.travel += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)![1];
        const apart = (p: { x: number; y: number }) => Math.max(Math.hypot(p.x - other.x, p.y - other.y), 1);
        this.zoom(apart(now) / apart(before), other.x, other.y);
      } else this.move(now.x - before.x, now.y - before.y);
      this.pointers.set(event.pointerId, now);
    });
    const up = (event: PointerEvent) => {
      if (this.pointers.delete(event.pointerId) && this.travel < 4 && event.type === "pointerup") this.painter.clicked?.(...this.at(event), this.view);
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

  private key(event: KeyboardEvent): void {
    const far = 60;
    const moves: Record<string, () => void> = {
      ArrowLeft: () => this.move(far, 0), ArrowRight: () => this.move(-far, 0), ArrowUp: () => this.move(0, far), ArrowDown: () => this.move(0, -far),
      "+": () => this.zoom(1.5), "=": () => this.zoom(1.5), "-": () => this.zoom(1 / 1.5), "0": () => this.showAll(),
      Enter: () => this.painter.clicked?.(this.view.x + this.view.width / 2 / this.view.scale, this.view.y + this.view.height / 2 / this.view.scale, this.view),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in moves)) return;
    event.preventDefault();
    moves[event.key]();
  }

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

/** Return the colors of the page's style, which follow light and dark mode. */
export function colors(): { areas: string; border: string; flow: string; ink: string; paper: string; flows: string[]; classes: string[] } {
  const style = getComputedStyle(document.documentElement);
  const named = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return { areas: named("area"), border: named("border"), flow: named("flow"), ink: named("ink"), paper: named("paper"), flows: [0, 1, 2, 3, 4].map((i) => named(`f${i}`)), classes: [0, 1, 2, 3, 4, 5, 6].map((i) => named(`q${i}`)) };
}
