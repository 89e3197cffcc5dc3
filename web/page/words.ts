// Labels and texts of the page.
import type { Field, Takes } from "./api";
import type { ErrorView, ReferenceView } from "./views";

const LABELS: Record<string, string> = {
  k: "Smallest group (k)", suppress: "Share that may be suppressed", suppress_trips: "Trips that may be suppressed", min_tiles: "Minimum tiles of an area", min_inhabited_tiles: "Minimum visited tiles of an area",
  max_area_km2: "Largest area", v_target: "Target volume of an origin", epsilon: "Epsilon", aggregate_small: "Aggregate small flows",
  include_empty: "Include empty tiles", count_trajectories: "Count trajectories, not people", tile_size_m: "Tile size",
  zones: "Zones file", zone_id: "Zone id column", tz: "Time zone", time_format: "Time format", drop_invalid: "Leave out rows that cannot be used",
  grid: "Squares", h3: "H3 cells", voronoi: "Voronoi cells", matrix: "Matrix", hierarchy: "Tree over the zones",
  destination_hierarchy: "Tree of destinations", partition: "Areas made before", partition_step: "Time step of these areas",
  trips_per_person: "Trips of a person that are kept", min_volume: "Smallest published volume", unit: "What is protected",
  time_partition: "Areas over time", stable_by: "Time steps that share areas", hour_weight: "Tiles that an hour is worth", longest: "Longest interval", window: "Windows of time", time_tree: "Intervals of a day", step: "Length of a time step", seed: "Random seed", format: "File format",
  data_name: "Name of the data file", attack: "Attack the release first", report: "Write the report", before_after: "Before and after (confidential)",
};

export const ROLE_WORDS: Record<string, string> = {
  origin: "Origin zone", destination: "Destination zone", origin_lon: "Origin longitude", origin_lat: "Origin latitude",
  destination_lon: "Destination longitude", destination_lat: "Destination latitude", time: "Time", user: "Person", volume: "Volume of a flow",
  people: "People of a flow", weight: "Weight of a trip", lat: "Latitude", lon: "Longitude", trajectory: "Trajectory",
};
export const ROLES: Record<Takes, string[]> = {
  flows: ["origin", "destination", "time", "user", "origin_lon", "origin_lat", "destination_lon", "destination_lat", "volume", "people", "weight"],
  trajectories: ["lat", "lon", "time", "trajectory", "user"],
};
export const TAKES_WORDS: Record<Takes, string> = { flows: "Trips or flows", trajectories: "Trajectories" };
export const STATUS_WORDS: Record<string, string> = {
  proven: "Proven: the guarantee follows from what the method does.",
  argued: "Argued: the guarantee rests on an argument with stated assumptions.",
  heuristic: "Heuristic: no guarantee of anonymity, only measured risk.",
};
export const STATE_WORDS: Record<string, string> = {
  queued: "Waiting", running: "Running", done: "Done", failed: "Failed", cancelled: "Cancelled", expired: "Removed",
};
export const REVIEW_WORDS: Record<string, string> = { awaiting: "Awaiting review", approved: "Approved", rejected: "Rejected" };
export const STAGE_WORDS: [string, string][] = [
  ["reading", "Reading"], ["anonymizing", "Anonymizing"], ["writing", "Writing"], ["verifying", "Verifying"], ["attacking", "Attacking"],
  ["reporting", "Reporting"], ["confidential report", "Before and after"], ["packing", "Packing"],
];

/** What stands in an empty control. */
export const INSTEAD: Record<string, string> = { step: "1h", grid: "500m", h3: "8", time_format: "%d/%m/%Y %H:%M", zone_id: "zone_id", data_name: "flows.csv" };

export function label(field: Pick<Field, "name">): string {
  return LABELS[field.name] ?? ROLE_WORDS[field.name] ?? spoken(field.name.replace(/_(m|s|km2|kmh)$/, ""));
}

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A name of a program as people say it. */
export function spoken(name: string): string {
  return upper(name.replace(/[_-]/g, " "));
}

/** An error as one sentence: parameters have the labels of their fields, and files keep their names. */
export function sentence({ parts }: Pick<ErrorView, "parts">): string {
  const named = (part: string | ReferenceView, at: number): string =>
    typeof part === "string" ? part : part.kind === "name" ? part.name : at === 0 ? label(part) : `“${label(part)}”`;
  const text = parts.map(named).join(""), first = parts[0];
  return typeof first === "object" && first.kind === "name" ? text : upper(text);
}

export const number = (value: number): string => value.toLocaleString("en");

export function size(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB"];
  let at = 0;
  for (; bytes >= 1000 && at < units.length - 1; at++) bytes /= 1000;
  return `${bytes.toLocaleString("en", { maximumSignificantDigits: 3 })} ${units[at]}`;
}

export function moment(iso: string | null): string {
  return iso === null ? "–" : new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export function duration(seconds: number | null): string {
  if (seconds === null) return "–";
  return seconds < 60 ? `${seconds.toLocaleString("en", { maximumSignificantDigits: 2 })} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** A value of a manifest as people read it. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return number(value);
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([name, inner]) => `${name.replace(/_/g, " ")} ${shown(inner)}`).join(", ");
  return String(value);
}

/** What risks in a manifest mean, where the name does not say it. */
export const RISKS: Record<string, string> = {
  "homogeneity-area": "share of trips with known destination area: all published flows of their origin area in their time step go to one area, of one tile or of many",
  "homogeneity-tile": "share of trips with known destination tile: all published flows of their origin area in their time step go to one area of a single tile",
};
