// A line chart over time steps as SVG. Missing values are gaps, not zeros.
const NS = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BELOW] = [640, 220, 74, 30];

export interface Line { title: string; values: ArrayLike<number>; second?: boolean }

export function chart(title: string, lines: Line[], labels: string[]): SVGElement {
  const svg = made("svg", { class: "chart", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  svg.append(text("title", {}, title));
  const top = Math.max(1, ...lines.flatMap((line) => Array.from(line.values).filter((v) => !Number.isNaN(v))));
  const [low, high] = [HEIGHT - BELOW, 24];
  for (const part of [0, 0.5, 1]) {
    const y = low - (low - high) * part;
    svg.append(made("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y, y2: y }));
    if (part) svg.append(text("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, rounded(top * part)));
  }
  const count = Math.max(...lines.map((line) => line.values.length)), last = Math.max(count - 1, 1);
  const at = (i: number) => LEFT + ((WIDTH - LEFT - 8) * Math.min(Math.max(i, 0), last)) / last;
  const gaps = runs(count, (i) => lines.every((line) => Number.isNaN(line.values[i])));
  for (const [first, end] of gaps) svg.append(made("rect", { class: "gap", x: at(first - 1), y: high, width: at(end) - at(first - 1), height: low - high }));
  if (gaps.length) {
    const x = LEFT + 125 * lines.length;
    svg.append(made("rect", { class: "gap", x, y: 3, width: 26, height: 13 }), text("text", { x: x + 32, y: 14 }, "suppressed or not observed"));
  }
  lines.forEach((line, n) => {
    const kind = line.second ? "line second" : "line";
    const y = (i: number) => low - ((low - high) * line.values[i]) / top;
    for (const [first, end] of runs(line.values.length, (i) => !Number.isNaN(line.values[i]))) {
      if (end - first === 1) svg.append(made("circle", { class: line.second ? "dot second" : "dot", cx: at(first), cy: y(first), r: 2.5 }));
      else svg.append(made("polyline", { class: kind, points: Array.from({ length: end - first }, (_, j) => `${at(first + j).toFixed(1)},${y(first + j).toFixed(1)}`).join(" ") }));
    }
    const x = LEFT + 125 * n;
    svg.append(made("line", { class: kind, x1: x, x2: x + 26, y1: 10, y2: 10 }), text("text", { x: x + 32, y: 14 }, line.title));
  });
  [0, labels.length >> 1, labels.length - 1].forEach((i, n) => {
    if (!labels[i] || (n && i === 0)) return;
    const x = LEFT + ((WIDTH - LEFT - 8) * i) / Math.max(labels.length - 1, 1);
    svg.append(text("text", { x, y: low + 18, "text-anchor": ["start", "middle", "end"][n] }, labels[i]));
  });
  return svg;
}

/** Return first index, and index after the last, of runs that meet a condition. */
function runs(count: number, meets: (i: number) => boolean): [number, number][] {
  const found: [number, number][] = [];
  for (let i = 0; i < count; i++)
    if (meets(i)) {
      const last = found[found.length - 1];
      if (last && last[1] === i) last[1]++;
      else found.push([i, i + 1]);
    }
  return found;
}

export const rounded = (value: number): string => value.toLocaleString("en", { maximumSignificantDigits: 3 });

function made(name: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(NS, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

function text(name: string, attributes: Record<string, string | number>, content: string): SVGElement {
  const element = made(name, attributes);
  element.textContent = content;
  return element;
}
