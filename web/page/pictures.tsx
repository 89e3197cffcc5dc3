// Small drawings: what a parameter changes, with a smaller and a larger value next to each other.
import type { ComponentChildren } from "preact";
import type { Takes } from "./api";

type Box = [x: number, y: number, width: number, height: number];
interface Drawing { words: [string, string]; left: () => ComponentChildren; right: () => ComponentChildren; says: string }

const HOMES: [number, number][] = [[8, 10], [14, 16], [20, 9], [27, 19], [12, 27], [35, 12], [45, 24], [55, 10], [68, 17], [86, 12], [15, 44], [25, 50], [34, 41], [60, 45], [88, 50], [92, 38]];
const dots = (shown = HOMES) => shown.map(([x, y]) => <circle key={`${x} ${y}`} class="dot" cx={x} cy={y} r="1.8" />);
const boxes = (list: Box[], kind = "area") => list.map(([x, y, width, height]) => <rect key={`${x} ${y}`} class={kind} x={x} y={y} width={width} height={height} />);
const grid = (side: number): Box[] => {
  const cells: Box[] = [];
  for (let y = 0; y < 60; y += side) for (let x = 0; x < 100; x += side) cells.push([x, y, side, side]);
  return cells;
};
const FINE: Box[] = [[0, 0, 25, 20], [25, 0, 25, 20], [0, 20, 50, 15], [50, 0, 50, 35], [0, 35, 50, 25], [50, 35, 50, 25]];
const MIDDLE: Box[] = [[0, 0, 50, 35], [50, 0, 50, 35], [0, 35, 50, 25], [50, 35, 50, 25]];
const COARSE: Box[] = [[0, 0, 50, 60], [50, 0, 50, 60]];
const bars = (heights: number[]) => heights.map((height, n) => <rect key={n} class="area" x={2 + (n * 96) / heights.length} y={58 - height} width={96 / heights.length - 2} height={height} />);
const flow = (x: number, y: number, to: [number, number], kind = "flow") => <path key={`${x} ${y}`} class={kind} d={`M${x} ${y}Q${(x + to[0]) / 2} ${(y + to[1]) / 2 - 14} ${to[0]} ${to[1]}`} />;
const line = (points: string, kind = "flow") => <polyline key={points} class={kind} points={points} />;
const PATHS = ["5,50 30,42 55,40 92,30", "5,54 30,47 55,44 92,35", "5,46 30,37 55,36 92,26", "8,10 35,14 60,18 90,8", "8,15 35,19 60,23 90,13"];
const three = (ways: Box[][]) => ways.map((way, n) => <g key={n} transform={`translate(${n * 34} 12) scale(.31 .6)`}>{boxes(way)}</g>);

const GROUPS: Drawing = {
  words: ["small k", "large k"], left: () => <>{boxes(FINE)}{dots()}</>, right: () => <>{boxes(COARSE)}{dots()}</>,
  says: "A larger k makes areas larger: more people are behind every published number, and less detail is left.",
};
const PATH_GROUPS: Drawing = {
  words: ["small k", "large k"], left: () => <>{PATHS.map((p) => line(p, "faint"))}{line(PATHS[0])}{line("8,12 35,16 60,20 90,10")}</>,
  right: () => <>{PATHS.map((p) => line(p, "faint"))}{line("6,34 33,32 58,33 91,22")}</>,
  says: "Each published line stands for a group of at least k people. A larger k makes fewer, more average lines.",
};
const TILES: Drawing = { words: ["small", "large"], left: () => <>{boxes(grid(10))}{dots()}</>, right: () => <>{boxes(grid(20))}{dots()}</>, says: "Smaller tiles keep more detail where many people travel; where few do, they are merged or suppressed." };
const TIME: Drawing = { words: ["short", "long"], left: () => bars([6, 4, 9, 28, 22, 12, 14, 16, 30, 24, 12, 7]), right: () => bars([22, 46, 38]), says: "Shorter time steps show when people travel, but fewer travel in each: areas get larger, or more is suppressed." };
const CUT: Drawing = {
  words: ["short", "long"], left: () => <>{["5,50 25,42", "30,40 50,36", "55,34 72,28", "77,26 95,18"].map((p) => line(p))}</>, right: () => line("5,50 25,42 50,36 72,28 95,18"),
  says: "Shorter pieces look more alike and are hidden with less change; longer pieces keep whole trips.",
};

const DRAWINGS: Record<string, Drawing> = {
  suppress: {
    words: ["0 %", "10 %"], left: () => <>{boxes(MIDDLE)}{flow(20, 20, [80, 22])}{flow(22, 50, [78, 50])}</>, right: () => <>{boxes(FINE)}{flow(12, 10, [80, 18])}{flow(38, 10, [76, 22])}{flow(22, 48, [78, 50], "gone")}</>,
    says: "If rare flows may be suppressed (dashed), the areas of all others can be smaller. Suppressed flows are missing from the release.",
  },
  step: TIME, interval_s: TIME, time_interval_s: TIME, grid: TILES, tile_size_m: TILES, h3: TILES, segment_s: CUT,
  min_tiles: { words: ["1 tile", "4 tiles"], left: () => <>{boxes(grid(20))}</>, right: () => boxes(COARSE.concat()), says: "More tiles per area hide where exactly a trip begins and ends, even where many people live." },
  max_area_km2: { words: ["no limit", "limit"], left: () => boxes([[0, 0, 50, 35], [50, 0, 50, 35], [0, 35, 100, 25]]), right: () => <>{boxes([[0, 0, 50, 35], [50, 0, 50, 35]])}{boxes([[0, 35, 100, 25]], "gone")}</>, says: "No published area is larger than the limit. What would need a larger one is suppressed (dashed)." },
  epsilon: { words: ["0.1: more noise", "2: less noise"], left: () => <>{bars([34, 8, 40, 52, 10, 31])}{line("2,40 18,30 34,28 50,20 66,34 98,38", "gone")}</>, right: () => <>{bars([20, 29, 32, 37, 26, 19])}{line("2,40 18,30 34,28 50,20 66,34 98,38", "gone")}</>, says: "Published numbers (bars) have noise around the true ones (dashed). A smaller epsilon adds more noise and protects more." },
  time_partition: { words: ["steps", "stable"], left: () => three([FINE, MIDDLE, COARSE]), right: () => three([MIDDLE, MIDDLE, MIDDLE]), says: "Areas of their own for each time step are finer. The same areas in all time steps can be compared over time." },
  aggregate_small: { words: ["off", "on"], left: () => <>{boxes(FINE)}{flow(12, 10, [75, 15])}</>, right: () => <>{boxes(FINE)}{flow(12, 10, [75, 15])}{flow(12, 12, [75, 50], "wide")}</>, says: "Destinations with too few people are published together as one area, instead of being suppressed." },
};

export function What({ name, takes }: { name: string; takes?: Takes }) {
  const drawing = name === "k" ? (takes === "trajectories" ? PATH_GROUPS : GROUPS) : DRAWINGS[name];
  if (!drawing) return null;
  const panel = (words: string, draw: () => ComponentChildren) => <div><svg viewBox="-1 -1 102 62" aria-hidden="true">{draw()}</svg><span>{words}</span></div>;
  return <details class="what"><summary>What does this change?</summary>
    <figure><div class="panels">{panel(drawing.words[0], drawing.left)}{panel(drawing.words[1], drawing.right)}</div><figcaption>{drawing.says}</figcaption></figure>
  </details>;
}
