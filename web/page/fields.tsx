// Controls that are drawn from the parameters that the service describes, and messages with controls.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Field, Form, Preset, Preview, Takes } from "./api";
import { type Draft, formatOf, methodOf } from "./draft";
import { Alert, Table } from "./parts";
import type { ErrorView } from "./views";
import { capital, label, ROLES, sentence, size, typed } from "./words";

/** The state that the controls of the form read and change. */
export interface Desk {
  form: Form; draft: Draft; takes: Takes; seen: Preview;
  /** Whether something was changed since the preview. */
  pending: boolean;
  set: (name: string, value: string | boolean) => void;
  attach: (name: string, file: File | null) => void;
  map: (role: string, column: string) => void;
}

/** A control of the form has the id `f-NAME`; one next to a message has `m-NAME`. */
type At = "f" | "m";
interface One { desk: Desk; field: Field; at?: At }

const EXAMPLES: Record<string, string> = {
  step: "1h", fold: "1w", time_format: "%d/%m/%Y %H:%M", suppress: "10%", bbox: "2.2,48.8,2.5,48.9",
};
/** Options that name a file, or describe how to make it. */
const INSTEAD_OF_FILE: Record<string, string[]> = {
  zones: ["grid:500m", "grid:1km", "h3:8"], hierarchy: ["ward", "kd", "quadtree", "h3"],
};
const TIME_FORMATS: [example: string, format: string][] = [
  ["31/12/2026 23:59", "%d/%m/%Y %H:%M"], ["12/31/2026 11:59 PM", "%m/%d/%Y %I:%M %p"],
  ["31.12.2026 23:59:00", "%d.%m.%Y %H:%M:%S"], ["20261231 2359", "%Y%m%d %H%M"],
  ["1798761540", "seconds"], ["1798761540000", "milliseconds"], ["46387.99", "excel"],
];
const MOST_IN_MESSAGE = 4;

/** Time zones that the browser knows, its own first. */
function timeZones(): string[] {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return [own, ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== own)];
}

function hint({ help, bounds, unit, most }: Field): string {
  const isLimit = most !== undefined && most > Number.MAX_SAFE_INTEGER; // of the type, which nobody reaches
  const limits = [isLimit ? bounds.split(",")[0] : bounds, unit && `in ${unit}`].filter(Boolean).join(", ");
  return limits ? `${help} ${capital(limits)}.` : help;
}

/** A labeled control with its help. */
function Labeled({ field, at = "f", unit, note, children }: {
  field: Field; at?: At; unit?: string; note?: ComponentChildren; children: ComponentChildren;
}) {
  return <div class="field">
    <label for={`${at}-${field.name}`}>{field.title}{unit && <span class="unit"> ({unit})</span>}</label>
    {children}
    <p class="hint" id={`${at}h-${field.name}`}>{note}{hint(field)}</p>
  </div>;
}

/** The control that a field needs. */
export function Control({ desk, field, at = "f" }: One) {
  if (ROLES[desk.takes].includes(field.name)) return <RoleControl desk={desk} field={field} at={at} />;
  if (field.name === "time_format") return <TimeFormat desk={desk} field={field} at={at} />;
  if (field.kind === "file") return <FileControl desk={desk} field={field} at={at} />;
  if (field.kind === "bool") return <Checkbox desk={desk} field={field} at={at} />;
  return <ValueControl desk={desk} field={field} at={at} />;
}

function ValueControl({ desk: { draft, set }, field, at = "f" }: One) {
  const given = field.name === "format" ? formatOf(draft) : draft.values[field.name];
  const fits = given !== undefined && (field.kind !== "choice" || field.choices.includes(String(given)));
  const common = {
    id: `${at}-${field.name}`, name: field.name, "aria-describedby": `${at}h-${field.name}`, required: field.required,
    value: fits ? String(given) : typed(field, field.default),
  };
  const change = (event: Event) => set(field.name, (event.currentTarget as HTMLInputElement).value);
  const from = field.name === "tz" && draft.zoneFrom
    && (draft.zoneFrom === "map" ? "the position of the data" : "your browser");
  const list = field.name === "tz" ? `${at}-time-zones` : undefined;
  return <Labeled field={field} at={at} unit={field.unit}
    note={from && <b>Guessed from {from}; change it if it is wrong. </b>}>
    {field.kind === "choice"
      ? <select {...common} onChange={change}>
        {field.default === null && !field.required && <option value="">default</option>}
        {field.choices.map((name) => <option key={name} value={name}>{name.replace(/-/g, " ")}</option>)}</select>
      : field.kind === "int" || field.kind === "float"
        ? <input {...common} type="number" step={field.kind === "int" ? 1 : "any"} min={field.least}
          max={field.most && Math.min(field.most, Number.MAX_SAFE_INTEGER)} onInput={change} />
        : <input {...common} type="text" list={list} placeholder={EXAMPLES[field.name]} autocomplete="off"
          spellcheck={false} onInput={change} />}
    {list && <datalist id={list}>{timeZones().map((zone) => <option key={zone} value={zone} />)}</datalist>}
  </Labeled>;
}

function Checkbox({ desk: { draft, set }, field, at = "f" }: One) {
  const id = `${at}-${field.name}`, described = `${at}h-${field.name}`;
  return <div class="field check">
    <input type="checkbox" id={id} name={field.name} aria-describedby={described}
      checked={Boolean(draft.values[field.name] ?? field.default)}
      onChange={(event) => set(field.name, event.currentTarget.checked)} />
    <label for={id}>{field.title}</label>
    <p class="hint" id={described}>{field.help}</p>
  </div>;
}

function RoleControl({ desk: { seen, map }, field: { name, title }, at }: One) {
  return <div class="field"><label for={`${at}-${name}`}>{title}</label>
    <select id={`${at}-${name}`} value={seen.roles[name] ?? ""}
      onChange={(event) => map(name, event.currentTarget.value)}>
      <option value="" disabled>choose a column</option>
      {seen.columns.map((column) => <option key={column.name} value={column.name}>{column.name}</option>)}
    </select></div>;
}

/** The file of an option, or a word that describes how to make it. */
function FileControl({ desk: { form, draft, set, attach }, field, at = "f" }: One) {
  const { name, title } = field, file = draft.files[name], words = INSTEAD_OF_FILE[name];
  if (file)
    return <Labeled field={field} at={at}>
      <ChosenFile file={file} id={`${at}-${name}`} remove={() => attach(name, null)}>Remove</ChosenFile></Labeled>;
  return <Labeled field={field} at={at}>
    <input type="file" id={`${at}-${name}`} name={name} accept={form.files[name].join(",")}
      aria-describedby={`${at}h-${name}`} onChange={(event) => attach(name, event.currentTarget.files?.[0] ?? null)} />
    {words && <>
      <input type="text" list={`${at}-${name}-words`} aria-label={`${title}, made by the service`}
        placeholder={`or ${words[0]}`} autocomplete="off" spellcheck={false} value={String(draft.values[name] ?? "")}
        onInput={(event) => set(name, event.currentTarget.value)} />
      <datalist id={`${at}-${name}-words`}>{words.map((word) => <option key={word} value={word} />)}</datalist></>}
  </Labeled>;
}

/** A chosen file, and the button that takes it away. */
export function ChosenFile({ file, id, remove, large = false, children }: {
  file: File; id?: string; remove: () => void; large?: boolean; children: ComponentChildren;
}) {
  return <p class={large ? "chosen large" : "chosen"}><span>{file.name} <small>{size(file.size)}</small></span>
    <button type="button" class="quiet" id={id} onClick={remove}>
      {children}<span class="hide"> {file.name}</span></button></p>;
}

/** The format of dates: examples to choose from, and the first times as they are read with it. */
function TimeFormat({ desk, field, at }: One) {
  const { seen: { times }, pending, set } = desk, given = String(desk.draft.values.time_format ?? "");
  const button = (format: string, example: ComponentChildren) =>
    <button key={format} type="button" aria-pressed={given === format} onClick={() => set(field.name, format)}>
      {example}</button>;
  const unread = given ? "not a time in this format" : "not clear without a format";
  return <div class="field time-format">
    <ValueControl desk={desk} field={field} at={at} />
    <div class="presets" role="group" aria-label="Formats by example">
      {button("", "detect it")}
      {TIME_FORMATS.map(([example, format]) => button(format, <>{example}<span class="hide"> ({format})</span></>))}
    </div>
    {times.length > 0 && <Table kind="times" caption="The first times of the file, and how they are read"
      head={["in the file", "is read as"]}>
      {times.map(({ text, read }, n) => <tr key={n}><td><code>{text}</code></td>
        {pending ? <td>reading it again…</td> : <td class={read === null ? "no" : "yes"}>{read ?? unread}</td>}</tr>)}
    </Table>}
  </div>;
}

export function Controls({ desk, fields }: { desk: Desk; fields: Field[] }) {
  return <div class="fields">{fields.map((field) => <Control key={field.name} desk={desk} field={field} />)}</div>;
}

/** Fields that are rarely needed, folded away unless the user has set one. */
export function More({ title, desk, fields }: { title: string; desk: Desk; fields: Field[] }) {
  const { values, files } = desk.draft;
  const isSet = (field: Field) => {
    const given = String(values[field.name] ?? "");
    return files[field.name] !== undefined || (given !== "" && given !== String(field.default));
  };
  // Once: afterwards it stays as the user leaves it. The file format follows from the data.
  const [open] = useState(fields.filter(({ name }) => name !== "format").some(isSet));
  if (!fields.length) return null;
  return <details class="more" open={open}><summary>{title}</summary><Controls desk={desk} fields={fields} /></details>;
}

/** The group size k, with sizes that are in use. */
export function GroupSize({ desk, field, presets }: One & { presets: Preset[] }) {
  const k = Number(desk.draft.values.k ?? field.default);
  return <fieldset class="crowd">
    <legend>How large must a group be?</legend>
    <Control desk={desk} field={field} />
    <div class="presets" role="group" aria-label="Sizes in use">
      {presets.map((preset) => <button key={preset.name} type="button" aria-pressed={preset.k === k}
        onClick={() => desk.set("k", String(preset.k))}>{preset.name} <b>{preset.k}</b></button>)}
    </div>
    <ul class="sources" aria-live="polite">{presets.filter((preset) => preset.k === k)
      .map(({ name, source }) => <li key={name}><b>{name}</b> {source}</li>)}</ul>
  </fieldset>;
}

/** Return the fields that an error names, in the order of the sentence. */
function fieldsOf(error: ErrorView, { form, draft, takes }: Desk): Field[] {
  const fields = [...form.reading[takes], ...methodOf(form, draft, takes).fields, ...form.run];
  const names = [error.subject, ...error.parts]
    .flatMap((part) => (part && typeof part === "object" && part.kind === "option" ? [part.name] : []));
  return [...new Set(names)].flatMap((name) => fields.find((field) => field.name === name) ?? []);
}

/** An error with the controls that it names, so that it can be fixed where it is read. */
export function Message({ error, desk, calm = false }: { error: ErrorView; desk: Desk; calm?: boolean }) {
  const fields = fieldsOf(error, desk).slice(0, MOST_IN_MESSAGE);
  return <div class={calm ? "message calm" : "message"}>
    <Alert>{sentence(error)}</Alert>
    {fields.length > 0 && <div class="fields" role="group"
      aria-label={`Controls for: ${fields.map(({ name }) => label(name)).join(", ")}`}>
      {fields.map((field) => <Control key={field.name} desk={desk} field={field} at="m" />)}</div>}
  </div>;
}
