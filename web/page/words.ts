// Labels and texts of the page.
import type { Field, Form, Takes } from "./api";
import type { ErrorView, ReferenceView } from "./views";

/** The titles of fields, as the models of the service have them. */
const titles = new Map<string, string>();
export function learnTitles(form: Form): void {
  const fields = [...form.methods.map((method) => method.fields), ...Object.values(form.reading), form.run, form.audit];
  for (const field of fields.flat()) titles.set(field.name, field.title);
}

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
  return ROLE_WORDS[field.name] ?? titles.get(field.name) ?? spoken(field.name);
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
