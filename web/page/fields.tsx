// Controls that are drawn from the parameters that the service describes.
import { useState } from "preact/hooks";
import type { Field, Preset } from "./api";
import { choice, INSTEAD, label, size } from "./words";

export type Change = (name: string, value: string | boolean) => void;
const SAFE = Number.MAX_SAFE_INTEGER;

function hint(field: Field): string {
  const parts = [field.help];
  const bounds = field.most !== undefined && field.most > SAFE ? field.bounds.split(",")[0] : field.bounds;
  const limits = [bounds, field.unit && `in ${field.unit}`].filter(Boolean).join(", ");
  if (limits) parts.push(`${limits.charAt(0).toUpperCase()}${limits.slice(1)}.`);
  return parts.join(" ");
}

/** Time zones that the browser knows, its own first. */
function timeZones(): string[] {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return [own, ...((Intl as { supportedValuesOf?: (what: string) => string[] }).supportedValuesOf?.("timeZone") ?? []).filter((zone) => zone !== own)];
}

/** Where a control stands: one next to a message has ids of its own. */
type At = "f" | "m";

function control(field: Field, given: string | boolean | undefined, change: Change, at: At) {
  const common = { id: `${at}-${field.name}`, "aria-describedby": `${at}h-${field.name}`, name: field.name };
  const fits = given !== undefined && (field.kind !== "choice" || field.choices.includes(String(given)));
  const text = fits ? String(given) : field.default === null || field.default === undefined ? "" : String(field.default);
  const type = (event: Event) => change(field.name, (event.currentTarget as HTMLInputElement).value);
  if (field.kind === "choice")
    return <select {...common} value={text} onChange={type}>{field.choices.map((c) => <option key={c} value={c}>{choice(c)}</option>)}</select>;
  if (field.kind === "int" || field.kind === "float")
    return <input {...common} type="number" placeholder={INSTEAD[field.name]} inputMode={field.kind === "int" ? "numeric" : "decimal"} step={field.kind === "int" ? 1 : "any"} min={field.least}
      max={field.most === undefined ? undefined : Math.min(field.most, SAFE)} required={field.required} value={text} onInput={type} />;
  if (field.kind === "share") // percents on the page, "10%" for the service
    return <span class="percent"><input {...common} type="number" inputMode="decimal" step="any" min={0} max={100} required={field.required}
      value={text.endsWith("%") || !text ? text.replace("%", "") : String(Number((100 * Number(text)).toPrecision(12)))}
      onInput={(event) => { const percents = event.currentTarget.value; change(field.name, percents && `${percents}%`); }} /> %</span>;
  if (field.name === "tz")
    return <><input {...common} type="text" list={`${at}-zones-of-time`} autocomplete="off" spellcheck={false} value={text} onInput={type} />
      <datalist id={`${at}-zones-of-time`}>{timeZones().map((zone) => <option key={zone} value={zone} />)}</datalist></>;
  return <input {...common} type="text" placeholder={INSTEAD[field.name]} autocomplete="off" spellcheck={false} required={field.required} value={text} onInput={type} />;
}

interface One { field: Field; given: string | boolean | undefined; change: Change; at?: At; note?: string }

export function Control({ field, given, change, at = "f", note = "" }: One) {
  const id = `${at}-${field.name}`, described = `${at}h-${field.name}`;
  if (field.kind === "bool")
    return <div class="field check">
      <input type="checkbox" id={id} name={field.name} aria-describedby={described} checked={Boolean(given ?? field.default)}
        onChange={(event) => change(field.name, event.currentTarget.checked)} />
      <label for={id}>{label(field)}</label>
      <p class="hint" id={described}>{field.help}</p>
    </div>;
  return <div class="field">
    <label for={id}>{label(field)}{field.unit && <span class="unit"> ({field.unit})</span>}</label>
    {control(field, given, change, at)}
    <p class="hint" id={described}>{note && <b>{note} </b>}{hint(field)}</p>
  </div>;
}

interface Some { fields: Field[]; values: Record<string, string | boolean>; change: Change }

export function Controls({ fields, values, change }: Some) {
  return <div class="fields">{fields.map((field) => <Control key={field.name} field={field} given={values[field.name]} change={change} />)}</div>;
}

const chosen = (field: Field, given: string | boolean | undefined): boolean => given !== undefined && given !== "" && String(given) !== String(field.default);

/** What is rarely needed, folded away unless the user set one of them. */
export function More({ title, set, ...some }: Some & { title: string; set?: Some["values"] }) {
  const [first] = useState(some.fields.some((f) => chosen(f, (set ?? some.values)[f.name]))); // not again: it must stay as the user left it
  if (!some.fields.length) return null;
  return <details class="more" open={first}><summary>{title}</summary><Controls {...some} /></details>;
}

/** The group size k, with presets. */
export function Crowd({ field, given, change, presets }: One & { presets: Preset[] }) {
  const k = Number(given ?? field.default);
  const meant = presets.filter((p) => p.k === k);
  return <fieldset class="crowd">
    <legend>How large must a group be?</legend>
    <Control field={field} given={given} change={change} />
    <div class="presets" role="group" aria-label="Sizes in use">
      {presets.map((p) => <button key={p.name} type="button" aria-pressed={p.k === k} onClick={() => change(field.name, String(p.k))}>{p.name} <b>{p.k}</b></button>)}
    </div>
    <ul class="sources" aria-live="polite">{meant.map((p) => <li key={p.name}><b>{p.name}</b> {p.source}</li>)}</ul>
  </fieldset>;
}

/** A file that an option asks for, or a plain word where the option takes one. */
export function FileField({ field, file, word, endings, words = [], choose, change, at = "f" }: {
  at?: At; field: Field; file: File | undefined; word: string | boolean | undefined; endings: string[]; words?: string[];
  choose: (name: string, file: File | null) => void; change: Change;
}) {
  return <div class="field">
    <label for={`${at}-${field.name}`}>{label(field)}</label>
    {file
      ? <p class="chosen"><span>{file.name} <small>{size(file.size)}</small></span><button type="button" class="quiet" onClick={() => choose(field.name, null)}>Remove<span class="hide"> {file.name}</span></button></p>
      : <>
        {words.length > 0 && <select aria-label={`${label(field)}, made by the service`} value={String(word ?? "")} onChange={(event) => change(field.name, event.currentTarget.value)}>
          <option value="">Chosen by the method, or a file</option>{words.map((w) => <option key={w} value={w}>{w}</option>)}
        </select>}
        <input type="file" id={`${at}-${field.name}`} name={field.name} accept={endings.join(",")} aria-describedby={`${at}h-${field.name}`}
          onChange={(event) => { const one = event.currentTarget.files?.[0]; if (one) choose(field.name, one); }} />
      </>}
    <p class="hint" id={`${at}h-${field.name}`}>{field.help}</p>
  </div>;
}
