// A job in preparation: files, the meaning of columns, and the values of the form.
import type { Field, Form, Method, Takes } from "./api";
import type { JobView } from "./views";
import { ROLES } from "./words";

export interface Draft {
  data: File | null;
  files: Record<string, File>;
  takes: Takes | null;
  /** Columns that the user named, by role. */
  roles: Record<string, string>;
  method: Record<Takes, string>;
  values: Record<string, string | boolean>;
  /** The source of the guessed time zone, until the user changes it. */
  zoneFrom: "map" | "browser" | null;
}

export const PART_BYTES = 20_000_000;
const TEXT = /\.(csv|tsv|txt)$/i;

export const empty = (): Draft => ({
  data: null, files: {}, takes: null, roles: {}, method: { flows: "joint", trajectories: "microaggregation" },
  values: {}, zoneFrom: null,
});

export const methodOf = (form: Form, draft: Draft, takes: Takes): Method =>
  form.methods.find((m) => m.name === draft.method[takes] && m.takes === takes)
  ?? form.methods.find((m) => m.takes === takes)!;

/** Return a draft with the parameters of a job; files are kept only while this tab has them. */
export function again(form: Form, draft: Draft, job: JobView): Draft {
  const known = form.methods.find((m) => m.name === job.name);
  if (!known || job.kind !== "anonymize") return draft;
  if (job.state === "failed" && draft.data) return draft; // the service keeps no parameters of a failed job
  const { takes } = known, roles: Draft["roles"] = {}, values: Draft["values"] = {};
  for (const [name, value] of Object.entries(job.parameters)) {
    const [lon, lat] = String(value).split(",");
    if (lat !== undefined && ROLES[takes].includes(`${name}_lon`))
      Object.assign(roles, { [`${name}_lon`]: lon, [`${name}_lat`]: lat });
    else if (ROLES[takes].includes(name)) roles[name] = String(value);
    else values[name] = typeof value === "boolean" ? value : String(value);
  }
  return { ...draft, zoneFrom: null, takes, method: { ...draft.method, [takes]: job.name }, roles, values };
}

/** The value of a field for the service; undefined for the default. */
function value(field: Field, given: string | boolean | undefined): unknown {
  if (given === undefined || typeof given === "boolean") return given === field.default ? undefined : given;
  const text = given.trim();
  if (text === "" || text === String(field.default)) return undefined;
  if (field.kind === "choice" && !field.choices.includes(text)) return undefined; // chosen for another method
  const isNumber = (field.kind === "int" || field.kind === "float") && Number.isFinite(Number(text));
  return isNumber ? Number(text) : text;
}

function valuesOf(fields: Field[], draft: Draft): Record<string, unknown> {
  const given = fields.filter((field) => !draft.files[field.name])
    .map((field) => [field.name, value(field, draft.values[field.name])]);
  return Object.fromEntries(given.filter(([, one]) => one !== undefined));
}

/** Options of reading: those of the form, and the columns that were named. */
export function reading(form: Form, draft: Draft, takes: Takes): Record<string, unknown> {
  const { roles } = draft, named: Record<string, string> = {};
  for (const { name } of form.reading[takes]) {
    const [lon, lat] = [roles[`${name}_lon`], roles[`${name}_lat`]];
    if (roles[name]) named[name] = roles[name];
    else if (lon && lat) named[name] = `${lon},${lat}`;
  }
  return { ...valuesOf(form.reading[takes], draft), ...named };
}

/** Options of the audit: none where the token has no source, and the sources to choose from where it has several. */
export function auditFields({ audit, sources }: Form): Field[] {
  if (!sources.length) return [];
  const choice: Partial<Field> = { kind: "choice", choices: ["", ...sources], required: true };
  return audit.filter((field) => field.name !== "source" || sources.length > 1)
    .map((field) => (field.name === "source" ? { ...field, ...choice } : field));
}

/** The file format of the release: text for text, unless another is chosen. */
export const formatOf = (draft: Draft): string =>
  (draft.values.format as string | undefined) || (draft.data && TEXT.test(draft.data.name) ? "csv" : "parquet");

export const parameters = (form: Form, draft: Draft, takes: Takes): Record<string, unknown> => ({
  ...reading(form, draft, takes), ...valuesOf(methodOf(form, draft, takes).fields, draft),
  ...valuesOf(form.run, draft), ...(takes === "flows" ? valuesOf(auditFields(form), draft) : {}),
  ...(formatOf(draft) === "parquet" ? {} : { format: formatOf(draft) }),
});

/** The files that a job needs, by field. */
export function filesOf(form: Form, draft: Draft): Record<string, File> {
  const { takes } = draft, files: Record<string, File> = { data: draft.data! };
  for (const [name, file] of Object.entries(draft.files)) // zones are for flows and for trajectories
    if (takes ? form.reading[takes].some((field) => field.name === name) : name === "zones") files[name] = file;
  return files;
}

/** Whether only the beginning of the data is previewed: it is a large text table. */
export const isPart = (data: File): boolean => TEXT.test(data.name) && data.size > PART_BYTES;

/** Return a form that names uploaded files; empty ones, which cannot be uploaded, are in it. */
function withFiles(files: Record<string, File>, ids: Record<string, string>): FormData {
  const body = new FormData();
  body.append("uploads", JSON.stringify(ids));
  for (const [name, file] of Object.entries(files)) if (!(name in ids)) body.append(name, file, file.name);
  return body;
}

/** Return the request of a job: the files, and all that was chosen. */
export function jobForm(form: Form, draft: Draft, takes: Takes, ids: Record<string, string>): FormData {
  const body = withFiles(filesOf(form, draft), ids);
  body.append("parameters", JSON.stringify(parameters(form, draft, takes)));
  return body;
}

/** Return the request of a preview, with the chosen method; of a large text table it has the beginning. */
export function previewForm(form: Form, draft: Draft, ids: Record<string, string>): FormData {
  const files = filesOf(form, draft), data = draft.data!;
  if (isPart(data)) files.data = new File([data.slice(0, PART_BYTES)], data.name);
  const body = withFiles(files, ids);
  if (isPart(data)) body.append("part", "true");
  if (!draft.takes) return body;
  const { name, fields } = methodOf(form, draft, draft.takes);
  body.append("takes", draft.takes);
  body.append("parameters", JSON.stringify(reading(form, draft, draft.takes)));
  body.append("method", name);
  body.append("method_parameters", JSON.stringify(valuesOf(fields, draft)));
  return body;
}

/** Return what a preview depends on. Numbers count only where a preview refused them, or k is larger than the data. */
export function previewKey(form: Form, draft: Draft, crowd: number | undefined, refused: boolean): string {
  if (!draft.data) return "";
  const files = Object.values(filesOf(form, draft)).map((file) => [file.name, file.size, file.lastModified]);
  if (!draft.takes) return JSON.stringify(files);
  const { drop_invalid: _, ...options } = reading(form, draft, draft.takes);
  const { name, fields } = methodOf(form, draft, draft.takes), given = valuesOf(fields, draft);
  const k = Number(given.k ?? fields.find((field) => field.name === "k")?.default);
  const chosen = Object.entries(given)
    .map(([field, one]) => [field, typeof one === "number" && !refused ? "number" : one]);
  return JSON.stringify([files, draft.takes, options, name, chosen, crowd !== undefined && k > crowd ? k : 0]);
}
