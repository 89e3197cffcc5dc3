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
  /** Where the time zone was guessed from, until it is changed. */
  zoneFrom: "map" | "browser" | null;
}

export const PART_BYTES = 20_000_000;
const LIGHT_BYTES = 100_000_000;
const TEXT = /\.(csv|tsv|txt)$/i;

export const empty = (): Draft => ({
  data: null, files: {}, takes: null, roles: {}, method: { flows: "joint", trajectories: "microaggregation" }, values: {}, zoneFrom: null,
});

export const method = (form: Form, draft: Draft, takes: Takes): Method =>
  form.methods.find((m) => m.name === draft.method[takes] && m.takes === takes) ?? form.methods.find((m) => m.takes === takes)!;

/** A draft as a job was asked for; its files are there only if they are still in this tab. */
export function again(form: Form, draft: Draft, job: Job): Draft {
  const known = form.methods.find((m) => m.name === job.name);
  if (!known || job.kind !== "anonymize") return draft;
  const { takes } = known;
  if (job.state === "failed" && draft.data) return draft; // the service keeps no parameters of a failed job, but this tab may
  const given = Object.entries(job.parameters).map(([name, one]): [string, string | boolean] => [name, typeof one === "boolean" ? one : String(one)]);
  const named = (name: string) => ROLES[takes].includes(name);
  return {
    ...draft, zoneFrom: null, takes, method: { ...draft.method, [takes]: job.name },
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

/** Options of the audit of flows: none where the token has no source, and the sources to choose from where it has several. */
export function auditFields({ audit, sources }: Form): Field[] {
  if (!sources.length) return [];
  return audit.filter((f) => f.name !== "source" || sources.length > 1).map((f) => (f.name === "source" ? { ...f, kind: "choice", choices: ["", ...sources], required: true } : f));
}

export function parameters(form: Form, draft: Draft, takes: Takes): Record<string, unknown> {
  return { ...reading(form, draft, takes), ...values(method(form, draft, takes).fields, draft), ...values(form.run, draft), ...(takes === "flows" ? values(auditFields(form), draft) : {}), ...format(form, draft) };
}

/** The file format of the release: text for text, unless another is chosen. */
export const formatOf = (draft: Draft): string | undefined => (draft.values.format as string | undefined) || (draft.data && TEXT.test(draft.data.name) ? "csv" : undefined);

function format(form: Form, draft: Draft): Record<string, string> {
  const wanted = formatOf(draft), known = form.run.find((f) => f.name === "format");
  return wanted !== undefined && known?.choices.includes(wanted) && wanted !== known.default ? { format: wanted } : {};
}

/** The files that a job needs, by field. */
export function filesOf(form: Form, draft: Draft, takes: Takes | null): Record<string, File> {
  const used = ([name]: [string, File]) => (takes ? form.reading[takes].some((f) => f.name === name) : name === "zones"); // zones are for either
  return { data: draft.data!, ...Object.fromEntries(Object.entries(draft.files).filter(used)) };
}

/** Whether only the beginning of the data is previewed: it is a large text table. */
export const isPart = (data: File): boolean => TEXT.test(data.name) && data.size > PART_BYTES;

/** A form that names uploaded files; empty ones, which cannot be uploaded, are in it. */
export function withFiles(files: Record<string, File>, ids: Record<string, string>): FormData {
  const body = new FormData();
  body.append("uploads", JSON.stringify(ids));
  for (const [name, file] of Object.entries(files)) if (!(name in ids)) body.append(name, file, file.name);
  return body;
}

/** A job: the files, and all that was chosen. */
export function jobForm(form: Form, draft: Draft, takes: Takes, ids: Record<string, string>): FormData {
  const body = withFiles(filesOf(form, draft, takes), ids);
  body.append("parameters", JSON.stringify(parameters(form, draft, takes)));
  return body;
}

/** A preview, with the method that is chosen; of a large text table it has the beginning. */
export function previewForm(form: Form, draft: Draft, ids: Record<string, string>): FormData {
  const files = filesOf(form, draft, draft.takes), data = draft.data!;
  if (isPart(data)) files.data = new File([data.slice(0, PART_BYTES)], data.name);
  const body = withFiles(files, ids);
  if (draft.takes) {
    const now = method(form, draft, draft.takes);
    body.append("takes", draft.takes);
    body.append("parameters", JSON.stringify(reading(form, draft, draft.takes)));
    body.append("method", now.name);
    body.append("method_parameters", JSON.stringify(values(now.fields, draft)));
  }
  if (isPart(data)) body.append("part", "true");
  return body;
}

/** What of the method decides whether it can work on the data: numbers only if a preview refused them, or k is larger than the data. */
export function methodKey(form: Form, draft: Draft, takes: Takes, crowd: number | undefined, refused: boolean): unknown[] {
  const now = method(form, draft, takes), given = values(now.fields, draft), k = Number(given.k ?? now.fields.find((f) => f.name === "k")?.default);
  const plain = Object.entries(given).map(([name, one]) => [name, typeof one === "number" && !refused ? "number" : one]);
  return [now.name, plain, crowd !== undefined && k > crowd ? k : 0];
}

/** A draft of which only what a first preview knows is left. */
export const bare = ({ data, files: { zones } }: Draft): Draft => ({ ...empty(), data, files: zones ? { zones } : {} });

/** Whether another preview costs little. */
export const light = (draft: Draft): boolean => draft.data !== null && (TEXT.test(draft.data.name) || draft.data.size <= LIGHT_BYTES);
