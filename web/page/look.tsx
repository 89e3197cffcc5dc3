// The preview of a file: its kind, the meaning of each column, and its problems.
import { useState } from "preact/hooks";
import type { Preview, Takes } from "./api";
import { ChosenFile, Control, type Desk, Message } from "./fields";
import { Table } from "./parts";
import { leavesOut } from "./preview";
import { KINDS, label, number, ROLES, sentence } from "./words";

const MAP = /\.(geojson|json|gpkg|geoparquet)$/i;
const COUNTED: Record<string, [one: string, many: string]> = {
  trips: ["trip", "trips"], flows: ["flow", "flows"], zones: ["zone", "zones"], steps: ["time step", "time steps"],
  trajectories: ["trajectory", "trajectories"], points: ["point", "points"], people: ["person", "people"],
};

export interface Chosen { data?: File; zones?: File }

/** Choosing data, by dropping files or by a button; a map is a file of zones. */
export function DataChoice({ data, endings, choose }: {
  data: File | null; endings: string[]; choose: (chosen: Chosen | null) => void;
}) {
  const [over, setOver] = useState(false);
  const take = (files: FileList | null | undefined) => {
    if (!files?.length) return;
    const find = (isMap: boolean) => Array.from(files).find((file) => MAP.test(file.name) === isMap);
    choose({ data: find(false), zones: find(true) });
  };
  const drag = (event: DragEvent, isOver: boolean) => {
    event.preventDefault();
    setOver(isOver);
  };
  if (data) return <ChosenFile file={data} large remove={() => choose(null)}>Choose another</ChosenFile>;
  return <div class={over ? "drop over" : "drop"} onDragOver={(event) => drag(event, true)}
    onDragLeave={(event) => drag(event, false)}
    onDrop={(event) => { drag(event, false); take(event.dataTransfer?.files); }}>
    <label for="data">Drop a file here, with its zones if there are any, or choose it</label>
    <input type="file" id="data" multiple accept={[...endings, ".geojson", ".gpkg", ".geoparquet"].join(",")}
      aria-describedby="data-hint" onChange={(event) => take(event.currentTarget.files)} />
    <p class="hint" id="data-hint">Trips, flows or trajectories as CSV or Parquet, or matrices as OMX.</p>
  </div>;
}

/** Numbers of trips, zones and so on, as tiles. */
function Counts({ seen: { counts, takes, crowd_of } }: { seen: Preview }) {
  const { crowd, ...rest } = counts;
  if (crowd === undefined) return null;
  const tiles = Object.entries(takes === "trajectories" && crowd_of === "people" ? { ...rest, people: crowd } : rest);
  return <>
    <dl class="tiles">{tiles.map(([name, n]) =>
      <div key={name}><dt>{COUNTED[name]?.[n === 1 ? 0 : 1] ?? name}</dt><dd>{number(n)}</dd></div>)}</dl>
    <p class="hint">{crowd_of === "people" ? "The file has person ids, so k counts people." : <>The file has no person
      ids, so k counts {crowd_of}. If a column has them, choose “Person” for it above.</>}</p>
  </>;
}

export function Kind({ takes, guess, choose }: { takes: Takes; guess: Takes | null; choose: (takes: Takes) => void }) {
  return <fieldset class="kinds"><legend>What is in it?</legend>
    {(Object.keys(KINDS) as Takes[]).map((one) => <label key={one} class={one === takes ? "on" : ""}>
      <input type="radio" name="takes" value={one} checked={one === takes} onChange={() => choose(one)} /> {KINDS[one]}
      {guess === one && <span class="guess">guessed from its columns</span>}
    </label>)}
  </fieldset>;
}

/** The columns, each with its meaning. */
export function Columns({ desk: { seen, takes, draft, map } }: { desk: Desk }) {
  const meaning = new Map(Object.entries({ ...seen.roles, ...draft.roles }).map(([role, column]) => [column, role]));
  const named = new Set(Object.values(draft.roles));
  if (!seen.columns.length) return null;
  return <>
    <Table caption="Columns and their meaning" kind="broad stacked columns"
      head={["column", "means", "type", "first rows"]}>
      {seen.columns.map(({ name, type }, at) => <tr key={name} class={meaning.has(name) ? "used" : ""}>
        <th scope="row">{name}</th>
        <td><select aria-label={`${name} means`} value={meaning.get(name) ?? ""}
          onChange={(event) => map(event.currentTarget.value, name)}>
          <option value="" disabled={meaning.has(name) && !named.has(name)}>not used</option>
          {ROLES[takes].map((role) => <option key={role} value={role}>{label(role)}</option>)}
        </select></td>
        <td class="type" data-label="type">{type}</td>
        <td class="values" data-label="first rows">
          {seen.rows.slice(0, 5).map((row) => row[at] ?? "–").join(" · ")}</td>
      </tr>)}
    </Table>
    <p class="hint">A column with a usual name is always read; another can take its place.</p>
  </>;
}

/** Problems with the controls that fix them, and guesses. */
export function Findings({ desk }: { desk: Desk }) {
  const { seen, draft, form, takes } = desk, rows = seen.problems.length > 0, dropping = leavesOut(draft);
  const drop = form.reading[takes].find((field) => field.name === "drop_invalid");
  return <div class="findings" aria-live="polite">
    {seen.error && !rows && <Message error={seen.error} desk={desk} />}
    {rows && <div class={dropping ? "problem settled" : "problem"}>
      <p><b>{dropping ? "These rows are left out:" : "Some rows cannot be used:"}</b></p>
      <ul>{seen.problems.map(({ message }) => <li key={message}>{message}</li>)}</ul>
      {seen.error && !dropping ? <Message error={seen.error} desk={desk} calm />
        : drop && <Control desk={desk} field={drop} at="m" />}
    </div>}
    {!seen.error && !rows && <p class="fine">Every row {seen.part ? "of the preview " : ""}can be used.</p>}
    <Counts seen={seen} />
    {seen.part && <p class="hint">The file is large: this preview is of its first 20 MB, and so are the numbers.
      The job reads all of it.</p>}
    {seen.notes.length > 0 && <details class="more"><summary>What was guessed ({seen.notes.length})</summary>
      <ul>{seen.notes.map((note) => <li key={note.message}>{sentence(note)}</li>)}</ul></details>}
  </div>;
}
