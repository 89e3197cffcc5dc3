// What is being prepared: files, what columns mean, and values as they stand in the form. It outlives a visit to another page.
import type { Field, Form, Job, Method, Takes } from "./api";
import { ROLES } from "./words";

export interface Draft {
  data: File | null;
  files: Record<string, File>;
  takes: Takes | null;
  roles: Record<string, string>;
  method: Record<Takes, string>;
  values: Record<string, string | boolean>;
}

export const PART_BYTES = 20_000_000;
const TEXT = /\.(csv|tsv|txt)$/i;

export const empty = (): Draft => ({
  data: null, files: {}, takes: null, roles: {}, method: { flows: "joint", trajectories: "microaggregation" }, values: {},
});

export const method = (form: Form, draft: Draft, takes: Takes): Method =>
  form.methods.find((m) => m.name === draft.method[takes] && m.takes === takes) ?? form.methods.find((m) => m.takes === takes)!;

/** A draft as a job was asked for; its files are there only if they are still in this tab. */
export function again(form: Form, draft: Draft, job: Job): Draft {
  const known = form.methods.find((m) => m.name === job.name);
  if (!known) return draft;
  const { takes } = known;
  const given = Object.entries(job.parameters).map(([name, one]): [string, string | boolean] => [name, typeof one === "boolean" ? one : String(one)]);
  const named = (name: string) => ROLES[takes].includes(name);
  return {
    ...draft, takes, method: { ...draft.method, [takes]: job.name },
    roles: Object.fromEntries(given.filter(([name]) => named(name)).map(([name, one]) => [name, String(one)])),
    values: Object.fromEntries(given.filter(([name]) => !named(name))),
  };
}

/** The value of a field as the service takes it; undefined where the default is meant. */
function value(field: Field, given: string | boolean | undefined): unknown {
  if (given === undefined || given === "") return undefined;
  if (typeof given === "boolean") return given === field.default ? undefined : given;
  const text = given.trim();
  if (field.kind === "choice" && !field.choices.includes(text)) return undefined; // it was chosen for another method
  if (text === "" || text === String(field.default)) return undefined;
  if (field.kind === "int" || field.kind === "float") return Number.isFinite(Number(text)) ? Number(text) : text;
  return text;
}

function values(fields: Field[], draft: Draft): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const field of fields) {
    if (draft.files[field.name]) continue;
    const one = value(field, draft.values[field.name]);
    if (one !== undefined) made[field.name] = one;
  }
  return made;
}

/** Options of reading: those of the form, and the columns that were named. */
export function reading(form: Form, draft: Draft, takes: Takes): Record<string, unknown> {
  const known = form.reading[takes];
  const named = Object.fromEntries(Object.entries(draft.roles).filter(([role]) => known.some((f) => f.name === role)));
  return { ...values(known, draft), ...named };
}

export function parameters(form: Form, draft: Draft, takes: Takes): Record<string, unknown> {
  return { ...reading(form, draft, takes), ...values(method(form, draft, takes).fields, draft), ...values(form.run, draft) };
}

function attached(body: FormData, form: Form, draft: Draft, takes: Takes): void {
  for (const [name, file] of Object.entries(draft.files))
    if (form.reading[takes].some((f) => f.name === name)) body.append(name, file, file.name);
}

/** A job: the files, and all that was chosen. */
export function jobForm(form: Form, draft: Draft, takes: Takes): FormData {
  const body = new FormData();
  body.append("parameters", JSON.stringify(parameters(form, draft, takes)));
  body.append("data", draft.data!, draft.data!.name);
  attached(body, form, draft, takes);
  return body;
}

/** A look: of a large table of text only the beginning is sent. */
export function lookForm(form: Form, draft: Draft): FormData {
  const body = new FormData(), data = draft.data!;
  const part = TEXT.test(data.name) && data.size > PART_BYTES;
  if (draft.takes) {
    body.append("takes", draft.takes);
    body.append("parameters", JSON.stringify(reading(form, draft, draft.takes)));
  }
  if (part) body.append("part", "true");
  body.append("data", part ? data.slice(0, PART_BYTES) : data, data.name);
  if (draft.takes) attached(body, form, draft, draft.takes);
  else if (draft.files.zones) body.append("zones", draft.files.zones, draft.files.zones.name); // zones are for either
  return body;
}

/** A draft of which only what a first look knows is left. */
export const bare = ({ data, files: { zones } }: Draft): Draft => ({ ...empty(), data, files: zones ? { zones } : {} });

/** Whether looking again costs little. */
export const light = (draft: Draft): boolean => {
  const { data } = draft;
  return data !== null && (TEXT.test(data.name) || data.size <= PART_BYTES) && Object.values(draft.files).every((f) => f.size <= PART_BYTES);
};
