// A message of the service, with the controls that it names next to it.
import type { Field, Form, Seen, Takes } from "./api";
import { type Draft, method } from "./draft";
import { type Change, Control, FileField } from "./fields";
import { label, ROLE_WORDS, ROLES, sentence } from "./words";
import type { ErrorView } from "./views";

/** What the controls of the form read and change. */
export interface Desk {
  form: Form; draft: Draft; takes: Takes; seen: Seen; set: Change;
  /** Whether something was changed since the file was seen so. */
  pending: boolean;
  attach: (name: string, file: File | null) => void; map: (role: string, column: string) => void;
}
const TREES = ["ward", "kd", "quadtree", "h3"];
const FORMATS: [string, string][] = [
  ["31/12/2026 23:59", "%d/%m/%Y %H:%M"], ["12/31/2026 11:59 PM", "%m/%d/%Y %I:%M %p"], ["31.12.2026 23:59:00", "%d.%m.%Y %H:%M:%S"], ["20261231 2359", "%Y%m%d %H%M"],
  ["1798761540", "seconds"], ["1798761540000", "milliseconds"], ["46387.99", "excel"],
];
const MANY = 4;

/** Fields that an error names, in the order of the sentence. */
function named(error: ErrorView, { form, draft, takes }: Desk): Field[] {
  const fields = [...form.reading[takes], ...method(form, draft, takes).fields, ...form.run];
  const names = [error.subject, ...error.parts].flatMap((part) => (part && typeof part === "object" && part.kind === "option" ? [part.name] : []));
  return [...new Set(names)].flatMap((name) => fields.find((f) => f.name === name) ?? []);
}

/** One control of the form, of the kind that its field needs. */
export function FieldControl({ desk, field, at = "f" }: { desk: Desk; field: Field; at?: "f" | "m" }) {
  const { form, draft, takes, set, attach } = desk, given = draft.values[field.name];
  if (ROLES[takes].includes(field.name)) return <RoleChoice desk={desk} role={field.name} at={at} />;
  if (field.name === "time_format") return <TimeFormat desk={desk} field={field} at={at} />;
  if (field.kind === "file")
    return <FileField at={at} field={field} file={draft.files[field.name]} word={given} endings={form.files[field.name]} words={field.name.endsWith("hierarchy") ? TREES : []} choose={attach} change={set} />;
  const note = field.name === "tz" && draft.zoneFrom ? `Guessed from ${draft.zoneFrom === "map" ? "the position of the data" : "your browser"}; change it if it is wrong.` : "";
  return <Control at={at} field={field} given={given} change={set} note={note} />;
}

function RoleChoice({ desk: { seen, map }, role, at }: { desk: Desk; role: string; at: string }) {
  return <div class="field"><label for={`${at}-${role}`}>{ROLE_WORDS[role]}</label>
    <select id={`${at}-${role}`} value={seen.roles[role] ?? ""} onChange={(event) => map(role, event.currentTarget.value)}>
      <option value="" disabled>choose a column</option>{seen.columns.map(({ name }) => <option key={name} value={name}>{name}</option>)}
    </select></div>;
}

/** The format of dates: examples to choose from, and the first times as they are read with it. */
function TimeFormat({ desk: { draft, seen, set, pending }, field, at }: { desk: Desk; field: Field; at: "f" | "m" }) {
  const given = String(draft.values.time_format ?? "");
  return <div class="field time-format">
    <Control at={at} field={field} given={draft.values.time_format} change={set} />
    <div class="presets" role="group" aria-label="Formats by example">
      <button type="button" aria-pressed={given === ""} onClick={() => set("time_format", "")}>detect it</button>
      {FORMATS.map(([example, format]) => <button key={format} type="button" aria-pressed={given === format} onClick={() => set("time_format", format)}>{example}<span class="hide"> ({format})</span></button>)}
    </div>
    {seen.times.length > 0 && <table class="times"><caption>The first times of the file, and how they are read</caption>
      <thead><tr><th scope="col">in the file</th><th scope="col">is read as</th></tr></thead>
      <tbody>{seen.times.map(({ text, read }, n) => <tr key={n}><td><code>{text}</code></td><td class={pending ? "" : read === null ? "no" : "yes"}>{pending ? "reading it again…" : read ?? (given ? "not a time in this format" : "not clear without a format")}</td></tr>)}</tbody></table>}
  </div>;
}

/** An error with the controls that it names, so that it can be fixed where it is read. */
export function Message({ error, desk, calm = false }: { error: ErrorView; desk: Desk; calm?: boolean }) {
  const fields = named(error, desk).slice(0, MANY);
  return <div class={calm ? "message calm" : "message"}>
    <p class="alert" role="alert">{sentence(error)}</p>
    {fields.length > 0 && <div class="fields" role="group" aria-label={`Controls for: ${fields.map(label).join(", ")}`}>
      {fields.map((field) => <FieldControl key={field.name} desk={desk} field={field} at="m" />)}</div>}
  </div>;
}
