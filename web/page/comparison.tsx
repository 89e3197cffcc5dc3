// Methods side by side before one is chosen: a job that publishes nothing, and its table and plots.
import { useEffect, useState } from "preact/hooks";
import { blob, type Job, json, said, send, type Takes } from "./api";
import { type Draft, filesOf, method, reading, withFiles } from "./draft";
import type { Desk } from "./message";
import { Action, Alert, Download } from "./parts";
import { go } from "./router";
import { withUploads } from "./uploads";
import { size } from "./words";

const USUAL: Record<Takes, { k: string; methods: string[] }> = {
  flows: { k: "5, 10, 20", methods: ["joint", "atg-dual", "oigh"] },
  trajectories: { k: "2, 4, 8", methods: ["microaggregation", "time-partitioned-microaggregation"] },
};
const CROWDS = /^\s*\d+(\s*,\s*\d+)*\s*$/;

/** The methods to compare and the values of k; two jobs can be made of them. */
export function CompareMethods({ desk, reason }: { desk: Desk; reason: string }) {
  const { form, draft, takes } = desk, now = method(form, draft, takes);
  const [ticked, setTicked] = useState<string[] | null>(null), [ks, setKs] = useState<string | null>(null);
  const chosen = (ticked ?? [...new Set([now.name, ...USUAL[takes].methods])]).filter((name) => form.methods.some((m) => m.name === name && m.takes === takes));
  const crowds = ks ?? USUAL[takes].k, valid = CROWDS.test(crowds), has_k = now.fields.some((f) => f.name === "k");
  const tick = (name: string, on: boolean) => setTicked(on ? [...chosen, name] : chosen.filter((c) => c !== name));
  const start = async (path: string, more: Record<string, unknown>) => {
    const job = await withUploads(filesOf(form, draft, takes), () => Infinity, (ids) => {
      const body = withFiles(filesOf(form, draft, takes), ids);
      body.append("parameters", JSON.stringify({ ...reading(form, draft, takes), k: crowds.split(",").map(Number), ...more }));
      return send<Job>("POST", path, body);
    }, () => undefined, new AbortController().signal);
    go(`/jobs/${job.id}`);
  };
  return <details class="more compare"><summary>Not sure? Compare methods, or find a k, on this data</summary>
    <p class="hint">Nothing is published. A sample of the data is run with each, and a table shows what is lost and how long it takes.</p>
    <fieldset class="tick"><legend>Methods</legend>
      {form.methods.filter((m) => m.takes === takes).map((m) => <label key={m.name} title={m.summary}><input type="checkbox" checked={chosen.includes(m.name)} onChange={(event) => tick(m.name, event.currentTarget.checked)} /> {m.name}</label>)}
    </fieldset>
    <div class="field"><label for="compare-k">Values of k</label>
      <input id="compare-k" type="text" inputMode="numeric" autocomplete="off" value={crowds} aria-describedby="compare-k-hint" aria-invalid={!valid} onInput={(event) => setKs(event.currentTarget.value)} />
      <p class="hint" id="compare-k-hint">{valid ? "Numbers with commas between; each method runs with each." : "Wanted numbers with commas between, such as 5, 10, 20."}</p></div>
    {reason ? <p class="hint"><b>Not possible yet.</b> {reason}</p> : valid && <div class="actions">
      {chosen.length > 0 && <Action act={() => start(`/comparisons/${takes}/jobs`, { methods: chosen, ...budget(draft, takes) })} busy="Sending…">Compare {chosen.length === 1 ? "this method" : `these ${chosen.length} methods`}</Action>}
      {has_k && <Action act={() => start(`/sweeps/${now.name}/jobs`, {})} busy="Sending…">Find a k for {now.name}</Action>}
    </div>}
  </details>;
}

/** The budget of the form, for all methods that have one. */
function budget({ values }: Draft, takes: Takes): Record<string, unknown> {
  if (takes !== "flows") return {};
  if (values.suppress_trips) return { suppress_trips: Number(values.suppress_trips) };
  return values.suppress ? { suppress: values.suppress } : {};
}

interface Files { name: string; bytes: number }

/** The table and the plots of a comparison or a sweep. */
export function Comparison({ job }: { job: Job }) {
  const [files, setFiles] = useState<Files[]>([]), [table, setTable] = useState<string[][]>([]), [error, setError] = useState("");
  const at = (name: string) => `/jobs/${job.id}/files/${encodeURIComponent(name)}`;
  useEffect(() => {
    json<{ files: Files[] }>(`/jobs/${job.id}/files`).then(async ({ files: there }) => {
      setFiles(there);
      const main = there.find((f) => f.name === "summary.csv" || f.name === "sweep.csv");
      if (main) setTable(cells(await (await blob(at(main.name))).text()));
    }).catch((problem) => setError(said(problem)));
  }, [job.id]);
  const [head, ...rows] = table, shown = (head ?? []).map((_, n) => n).filter((n) => rows.some((row) => row[n]));
  return <>
    {error && <Alert>{error}</Alert>}
    {(job.summary?.lines ?? []).slice(afterTable(job)).map((line) => <p key={line}>{line}</p>)}
    {head && <div class="wide" role="region" aria-label="Comparison" tabIndex={0}><table><caption>What each loses (confidential)</caption>
      <thead><tr>{shown.map((n) => <th key={n} scope="col" class={numeric(rows, n) ? "num" : ""}>{head[n].replace(/[_-]/g, " ")}</th>)}</tr></thead>
      <tbody>{rows.map((row, at_row) => <tr key={at_row}>{shown.map((n) => n === 0 ? <th key={n} scope="row" class={numeric(rows, n) ? "num" : ""}>{rounded(row[n], head[n])}</th> : <td key={n} class={numeric(rows, n) ? "num" : ""}>{rounded(row[n], head[n])}</td>)}</tr>)}</tbody></table></div>}
    {files.filter((f) => f.name.endsWith(".png")).map((f) => <Plot key={f.name} path={at(f.name)} name={f.name} />)}
    {files.length > 0 && <ul class="files">{files.map((file) => <li key={file.name}><div><b>{file.name}</b><small>{size(file.bytes)}</small></div>
      <Download path={at(file.name)} name={file.name}>Download<span class="hide"> {file.name}</span></Download></li>)}</ul>}
  </>;
}

/** The first line after the table of the command line, which ends with an empty one. */
const afterTable = (job: Job): number => (job.summary?.lines ?? []).lastIndexOf("") + 1;

const numeric = (rows: string[][], n: number): boolean => rows.every((row) => row[n] === "" || !Number.isNaN(Number(row[n])));
const SHARES = ["suppress", "suppressed", "trajectories_removed"];
function rounded(text: string, column: string): string {
  const value = Number(text), share = SHARES.includes(column);
  if (text === "" || Number.isNaN(value)) return text || "–";
  return `${(share ? 100 * value : value).toLocaleString("en", { maximumSignificantDigits: 4 })}${share ? " %" : ""}`;
}

/** The cells of a CSV file; fields may be quoted. */
function cells(text: string): string[][] {
  const line = (one: string): string[] => [...one.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map((m) => m[1].replace(/^"|"$/g, "").replace(/""/g, '"'));
  return text.split("\n").filter(Boolean).map((one) => { const made = line(one.replace(/\r$/, "")); return made.slice(0, -1); });
}

/** A picture of a result. It is read into the page, since the address of a picture cannot send a token. */
function Plot({ path, name }: { path: string; name: string }) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    let gone = false;
    blob(path).then((picture) => {
      const reader = new FileReader();
      reader.onload = () => { if (!gone) setAddress(String(reader.result)); };
      reader.readAsDataURL(picture);
    }).catch(() => undefined);
    return () => { gone = true; };
  }, [path]);
  return address ? <figure class="plot"><img src={address} alt={`Plot ${name.replace(/\.png$/, "").replace(/-/g, " ")}; its numbers are in the tables`} /></figure> : null;
}
