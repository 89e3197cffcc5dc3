// A chart of lines over time steps, as an SVG of the page.
const NS = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BELOW] = [640, 220, 60, 30];

export interface Line { title: string; values: ArrayLike<number>; second?: boolean }

export function chart(title: string, lines: Line[], labels: string[]): SVGElement {
  const svg = made("svg", { class: "chart", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  svg.append(text("title", {}, title));
  const top = Math.max(1, ...lines.map((line) => Math.max(...Array.from(line.values))));
  const [low, high] = [HEIGHT - BELOW, 24];
  for (const part of [0, 0.5, 1]) {
    const y = low - (low - high) * part;
    svg.append(made("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y, y2: y }));
    if (part) svg.append(text("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, rounded(top * part)));
  }
  lines.forEach((line, n) => {
    const last = Math.max(line.values.length - 1, 1);
    const points = Array.from(line.values, (v, i) => `${(LEFT + ((WIDTH - LEFT - 8) * i) / last).toFixed(1)},${(low - ((low - high) * v) / top).toFixed(1)}`);
    svg.append(made("polyline", { class: line.second ? "line second" : "line", points: points.join(" ") }));
    const x = LEFT + 170 * n;
    svg.append(made("line", { class: line.second ? "line second" : "line", x1: x, x2: x + 26, y1: 10, y2: 10 }), text("text", { x: x + 32, y: 14 }, line.title));
  });
  [0, labels.length >> 1, labels.length - 1].forEach((i, n) => {
    if (!labels[i] || (n && i === 0)) return;
    const x = LEFT + ((WIDTH - LEFT - 8) * i) / Math.max(labels.length - 1, 1);
    svg.append(text("text", { x, y: low + 18, "text-anchor": ["start", "middle", "end"][n] }, labels[i]));
  });
  return svg;
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
