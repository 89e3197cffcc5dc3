// A line chart over time steps as SVG. Missing values are gaps, not zeros.
const NS = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [640, 220];
const [LEFT, RIGHT, TOP, LOW] = [74, WIDTH - 8, 24, HEIGHT - 30];
const KEY_WIDTH = 125;

export interface Line { title: string; values: ArrayLike<number>; second?: boolean }

export function chart(title: string, lines: Line[], labels: string[]): SVGElement {
  const svg = element("svg", { class: "chart", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  svg.append(element("title", {}, title));
  const known = lines.flatMap((line) => Array.from(line.values).filter((value) => !Number.isNaN(value)));
  const highest = Math.max(1, ...known), count = Math.max(...lines.map((line) => line.values.length));
  const last = Math.max(count - 1, 1);
  const x = (step: number) => LEFT + ((RIGHT - LEFT) * Math.min(Math.max(step, 0), last)) / last;
  const y = (value: number) => LOW - ((LOW - TOP) * value) / highest;
  for (const value of [0, highest / 2, highest]) {
    svg.append(element("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: y(value), y2: y(value) }));
    if (value) svg.append(element("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, rounded(value)));
  }
  const gaps = runs(count, (i) => lines.every((line) => Number.isNaN(line.values[i])));
  for (const [first, end] of gaps) {
    const width = x(end) - x(first - 1);
    svg.append(element("rect", { class: "gap", x: x(first - 1), y: TOP, width, height: LOW - TOP }));
  }
  if (gaps.length) {
    const left = LEFT + KEY_WIDTH * lines.length;
    svg.append(element("rect", { class: "gap", x: left, y: 3, width: 26, height: 13 }));
    svg.append(element("text", { x: left + 32, y: 14 }, "suppressed or not observed"));
  }
  lines.forEach(({ title: name, values, second }, n) => {
    const more = second ? " second" : "", left = LEFT + KEY_WIDTH * n;
    for (const [first, end] of runs(values.length, (i) => !Number.isNaN(values[i]))) {
      const points = Array.from({ length: end - first }, (_, j) => [x(first + j), y(values[first + j])]);
      const [cx, cy] = points[0];
      if (points.length === 1) svg.append(element("circle", { class: `dot${more}`, cx, cy, r: 2.5 }));
      else svg.append(element("polyline", { class: `line${more}`, points: points.join(" ") }));
    }
    svg.append(element("line", { class: `line${more}`, x1: left, x2: left + 26, y1: 10, y2: 10 }));
    svg.append(element("text", { x: left + 32, y: 14 }, name));
  });
  const ends = new Map([[0, "start"], [labels.length >> 1, "middle"], [labels.length - 1, "end"]]);
  for (const [step, anchor] of ends)
    if (labels[step]) svg.append(element("text", { x: x(step), y: LOW + 18, "text-anchor": anchor }, labels[step]));
  return svg;
}

/** Return first index, and index after the last, of runs that meet a condition. */
function runs(count: number, meets: (i: number) => boolean): [number, number][] {
  const found: [number, number][] = [];
  for (let i = 0; i < count; i++) {
    if (!meets(i)) continue;
    const last = found[found.length - 1];
    if (last?.[1] === i) last[1]++;
    else found.push([i, i + 1]);
  }
  return found;
}

export const rounded = (value: number): string => value.toLocaleString("en", { maximumSignificantDigits: 3 });

function element(name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = document.createElementNS(NS, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(text);
  return made;
}
