// Attacks on a release: what is known, by chance, before and after, and how to read it.
import { useEffect, useState } from "preact/hooks";
import { blob, type Job, type Manifest } from "./api";
import { attackTitle, RISKS, shown } from "./words";

/** An attack as a row of text, as the report has it. */
interface Row { title: string; cells: Record<string, string> }
const COLUMNS: [label: string, numeric: boolean][] = [["the adversary knows", false], ["by chance", true], ["in the original", true], ["in the release", true], ["reading", false]];

/** The rows of the table of attacks in a report: what chance gives is counted there, from the published files. */
async function rowsOf(job: string): Promise<Row[]> {
  const page = new DOMParser().parseFromString(await (await blob(`/jobs/${job}/report`)).text(), "text/html");
  return [...page.querySelectorAll('[aria-label^="Attacks"] tbody tr')].map((row) => ({
    title: row.querySelector("th")?.firstChild?.textContent ?? "",
    cells: Object.fromEntries([...row.querySelectorAll<HTMLElement>("td")].map((cell) => [cell.dataset.label ?? "", cell.textContent ?? ""])),
  }));
}

/** The same from the manifest, where there is no report: without chance. */
const plainRows = (trials: NonNullable<Manifest["risk"]>): Row[] => trials.map((t) => ({
  title: attackTitle(shown(t.attack)),
  cells: {
    "the adversary knows": t.knowledge ? shown(t.knowledge) : "the release alone", "by chance": "–", "in the original": percent(t.risk_percent_before),
    "in the release": percent(t.risk_percent), reading: RISKS[shown(t.attack)] ?? "",
  },
}));
const percent = (value: unknown): string => (typeof value === "number" ? `${shown(value)} %` : "–");

export function Attacks({ job, trials, report }: { job: Job; trials: NonNullable<Manifest["risk"]>; report: boolean }) {
  const [rows, setRows] = useState(plainRows(trials));
  useEffect(() => { if (report && trials.length) rowsOf(job.id).then((found) => { if (found.length) setRows(found); }, () => undefined); }, [job.id]);
  if (!trials.length) return null;
  return <div class="wide" role="region" aria-label="Attacks" tabIndex={0}><table class="broad"><caption>Attacks on the original and on the release: success in whole percents</caption>
    <thead><tr><th scope="col">attack</th>{COLUMNS.map(([name, numeric]) => <th key={name} scope="col" class={numeric ? "num" : ""}>{name}</th>)}</tr></thead>
    <tbody>{rows.map((row, n) => <tr key={n}><th scope="row">{row.title}</th>{COLUMNS.map(([name, numeric]) => <td key={name} data-label={name} class={numeric ? "num" : ""}>{row.cells[name] || "–"}</td>)}</tr>)}</tbody></table>
    <p class="hint">By chance: success of a guess without that knowledge. –: not measured, or there is nothing to guess.</p></div>;
}
