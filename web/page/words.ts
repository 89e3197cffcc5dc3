// Labels and texts of the page.
import type { Field, Takes } from "./api";
import type { ErrorView, ReferenceView } from "./views";

const LABELS: Record<string, string> = {
  k: "Smallest group (k)", suppress: "Share that may be suppressed", suppress_trips: "Number of trips that may be suppressed", min_tiles: "Fewest tiles of an area", min_inhabited_tiles: "Fewest visited tiles of an area", min_pois: "Fewest points of interest of an area", min_poi_categories: "Fewest categories of points of interest of an area", pois: "Points of interest",
  delta_m: "Diameter of a cylinder (δ)", trash: "Share that may be left out",
  max_area_km2: "Largest area", v_target: "Trips that each origin should have", epsilon: "Privacy loss (epsilon)", aggregate_small: "Publish small flows together",
  include_empty: "Let areas include tiles without trips", count_trajectories: "Count trajectories instead of people", tile_size_m: "Side of a tile",
  zones: "Zones file", zone_id: "Column with the zones’ ids", tz: "Time zone", time_format: "Date and time format", drop_invalid: "Leave out rows that cannot be used",
  grid: "Make square zones", h3: "Make H3 cells (hexagons)", voronoi: "Make zones around points", matrix: "Matrix of the file", hierarchy: "Tree over the zones",
  destination_hierarchy: "Tree over the destinations", partition: "Areas of an earlier release", partition_step: "Time step of these areas", bbox: "Only trips inside this box", extent: "Number of squares",
  time_window: "Only trips of this period", from_trajectories: "Find trips in trajectories by", stay_s: "Shortest stay", stay_radius_m: "Radius of a stay", any_years: "Allow years before 1970 and after 2100",
  user_case_sensitive: "Person ids: A and a are two people", user_ignore_case: "Person ids: A and a are one person",
  trips_per_person: "Trips that are kept of each person", min_volume: "Smallest published volume", unit: "What is protected", splits: "Shape of areas", objective: "What is kept small",
  spend_rest: "Use up the rest of the suppression budget", price: "Cost of a suppressed trip", scope: "Suppression budget for", delta: "Extra cost of a suppressed trip", block: "Cells on the side of a block",
  join: "Clusters that may be merged", cost: "Cost of a merge", neighbors: "Near flows that are tried",
  time_partition: "Areas over time", stable_by: "Time steps that share areas", step: "Length of a time step", seed: "Random seed", format: "File format",
  distance: "How trajectories are compared", time_weight: "Weight of time", aggregation: "Published trajectory of a group", improve: "Rounds of improvement", center: "Where groups begin",
  interval_s: "Length of a time interval", parts_by: "Time that assigns a trajectory", exchange: "Exchange trajectories between groups", segment_s: "Length of a segment", space_weight: "Weight of space",
  grouping: "How groups grow", reconstruction: "Published point of a box", suppression_cost: "Cost of a removed point", pivots: "Trajectories tried as a center", resample: "Compare at the same moments",
  pivot_path: "How centers are chosen", left_over: "Trajectories that are left over", knowledge: "Visits that an adversary knows", time_interval_s: "Length of a time interval", strategy: "Position of a visit", time_strategy: "Time of a visit",
  min_radius_m: "Radius of a cluster at first", max_radius_m: "Largest radius of a cluster", min_time_s: "Duration of a cluster at first", max_time_s: "Longest duration of a cluster",
  min_pair_people: "Fewest people of a step between squares", time_threshold_s: "Largest time difference", space_threshold_m: "Largest distance", permutation: "How locations are permuted", max_distance_m: "Largest distance of a meeting",
  min_n_swaps: "Fewest swaps of a trajectory", overlapping_strategy: "Points in one tile", link_users: "Link the trajectories of a person",
  hour_weight: "Tiles that an hour is worth", longest: "Longest interval", window: "Windows of time", fold: "Period that time steps are added up over", time_tree: "Intervals of a day or week",
  names: "Also flows with names of areas", wide: "Also one column for each time step", export: "Also files for other tools", title: "Name of the data set", purpose: "Purpose of the release", recipient: "Recipients",
  data_name: "Name of the data file", attack: "Attack the release first", report: "Write the report",
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
  ["reporting", "Reporting"], ["packing", "Packing"],
];

/** What stands in an empty control. */
export const INSTEAD: Record<string, string> = { step: "1h", grid: "500m", h3: "8", time_format: "%d/%m/%Y %H:%M", zone_id: "zone_id", data_name: "flows.csv" };

export function label(field: Pick<Field, "name">): string {
  return LABELS[field.name] ?? ROLE_WORDS[field.name] ?? spoken(field.name.replace(/_(m|s|km2|kmh)$/, ""));
}

/** A choice as people read it. */
export const choice = (value: string): string => value.replace(/-/g, " ");

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

/** A sentence that names options of the command line, with the labels of their fields. */
export const withLabels = (text: string): string => text.replace(/--([a-z][a-z0-9-]*)/g, (_, name: string) => `“${label({ name: name.replace(/-/g, "_") })}”`);

/** Attacks by what they try to learn. */
export const ATTACKS: Record<string, string> = {
  "homogeneity-area": "Destination area is certain", "homogeneity-tile": "Destination tile is certain", "minimum-group-size": "Flows of fewer than k", "singleton-margins": "Sums of fewer than k", differencing: "Differences of fewer than k",
};
export const attackTitle = (name: string): string => ATTACKS[name] ?? `Person found by ${spoken(name).toLowerCase()}`;

/** What risks in a manifest mean, where the name does not say it. */
export const RISKS: Record<string, string> = {
  "homogeneity-area": "share of trips with known destination area: all published flows of their origin area in their time step go to one area, of one tile or of many",
  "homogeneity-tile": "share of trips with known destination tile: all published flows of their origin area in their time step go to one area of a single tile",
};
