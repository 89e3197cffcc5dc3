// The preview of a file: what it is, what each column means, and what is wrong.
import type { Seen, Takes } from "./api";
import { type Desk, FieldControl, Message } from "./message";
import { number, ROLE_WORDS, ROLES, TAKES_WORDS, sentence } from "./words";

const COUNT_WORDS: Record<string, [string, string]> = {
  trips: ["trip", "trips"], flows: ["flow", "flows"], zones: ["zone", "zones"], steps: ["time step", "time steps"],
  trajectories: ["trajectory", "trajectories"], points: ["point", "points"],
};

/** How much there is, as tiles. */
function Counts({ seen }: { seen: Seen }) {
  const { crowd, ...rest } = seen.counts;
  if (crowd === undefined) return null;
  const tiles = Object.entries(rest).map(([name, n]): [string, number] => [COUNT_WORDS[name]?.[n === 1 ? 0 : 1] ?? name, n]);
  if (seen.takes === "trajectories" && seen.crowd_of === "people") tiles.push([crowd === 1 ? "person" : "people", crowd]);
  return <>
    <dl class="tiles">{tiles.map(([name, n]) => <div key={name}><dt>{name}</dt><dd>{number(n)}</dd></div>)}</dl>
    <p class="hint">{seen.crowd_of === "people" ? "The file has person ids, so k counts people." : `The file has no person ids, so k counts ${seen.crowd_of}. If a column has them, choose “Person” for it above.`}</p>
  </>;
}

export function Kind({ takes, guess, choose }: { takes: Takes; guess: Takes | null; choose: (takes: Takes) => void }) {
  return <fieldset class="kinds"><legend>What is in it?</legend>
    {(Object.keys(TAKES_WORDS) as Takes[]).map((one) => <label key={one} class={one === takes ? "on" : ""}>
      <input type="radio" name="takes" value={one} checked={one === takes} onChange={() => choose(one)} /> {TAKES_WORDS[one]}
      {guess === one && <span class="guess">guessed from its columns</span>}
    </label>)}
  </fieldset>;
}

/** The columns, each with what it means. */
export function Columns({ seen, takes, named, map }: { seen: Seen; takes: Takes; named: Record<string, string>; map: (role: string, column: string) => void }) {
  const meaning = new Map(Object.entries(seen.roles).map(([role, column]) => [column, role]));
  if (!seen.columns.length) return null;
  return <div class="wide" role="region" aria-label="Columns and what they mean" tabIndex={0}>
    <table class="columns"><caption>Columns and their meaning</caption>
      <thead><tr><th scope="col">column</th><th scope="col">means</th><th scope="col">type</th><th scope="col">first rows</th></tr></thead>
      <tbody>{seen.columns.map(({ name, type }, at) => <tr key={name} class={meaning.has(name) ? "used" : ""}>
        <th scope="row">{name}</th>
        <td><select aria-label={`${name} means`} value={meaning.get(name) ?? ""} onChange={(event) => {
          map(event.currentTarget.value, name);
        }}>
          <option value="" disabled={meaning.has(name) && !Object.values(named).includes(name)}>not used</option>
          {ROLES[takes].map((role) => <option key={role} value={role}>{ROLE_WORDS[role]}</option>)}
        </select></td>
        <td class="type">{type}</td>
        <td class="values">{seen.rows.slice(0, 5).map((row) => row[at] ?? "–").join(" · ")}</td>
      </tr>)}</tbody>
    </table>
    <p class="hint">A column with a usual name is always read; another can take its place.</p>
  </div>;
}

/** What is wrong, with the controls that fix it, and what was guessed. */
export function Findings({ desk }: { desk: Desk }) {
  const { seen, draft, form, takes } = desk, rows = seen.problems.length > 0, dropping = draft.values.drop_invalid === true;
  const drop = form.reading[takes].find((f) => f.name === "drop_invalid");
  return <div class="findings" aria-live="polite">
    {seen.error && !rows && <Message error={seen.error} desk={desk} />}
    {rows && <div class={dropping ? "problem settled" : "problem"}>
      <p><b>{dropping ? "These rows are left out:" : "Some rows cannot be used:"}</b></p>
      <ul>{seen.problems.map((p) => <li key={p.message}>{p.message}</li>)}</ul>
      {!dropping && seen.error ? <Message error={seen.error} desk={desk} calm /> : drop && <FieldControl desk={desk} field={drop} at="m" />}
    </div>}
    {!seen.error && !rows && <p class="fine">Every row {seen.part ? "of the preview " : ""}can be used.</p>}
    <Counts seen={seen} />
    {seen.part && <p class="hint">The file is large: this preview is of its first 20 MB, and so are the numbers. The job reads all of it.</p>}
    {seen.notes.length > 0 && <details class="more"><summary>What was guessed ({seen.notes.length})</summary><ul>{seen.notes.map((n) => <li key={n.message}>{sentence(n)}</li>)}</ul></details>}
  </div>;
}
