// The result of a job: guarantees, loss, the report, and the files.
import { useState } from "preact/hooks";
import { json, type Manifest, remove } from "./api";
import { Action, Alert, Asked, Download, Pairs, ReportFrame, Table, Tabs, useLoaded } from "./parts";
import type { JobView } from "./views";
import { attackTitle, capital, number, shown, size, spoken, withLabels } from "./words";

export interface Release { manifest: Manifest; files: { name: string; bytes: number }[] }

/** Files that the submitter may fetch before a review. */
const BEFORE_REVIEW = ["report.html", "manifest.json"];
const isFree = (job: JobView): boolean => job.review === null || job.review.state === "approved";

export async function release(id: string): Promise<Release> {
  const { files } = await json<{ files: Release["files"] }>(`/jobs/${id}/files`);
  return { files, manifest: await json<Manifest>(`/jobs/${id}/files/manifest.json`) };
}

const percents = (value: unknown): string => (typeof value === "number" ? `${shown(value)} %` : "–");

/** Numbers of published and lost trips or trajectories; shares are whole percents. */
const costs = ({ cost }: Manifest): [string, string][] => Object.entries(cost).map(([name, value]) =>
  [spoken(name.replace(/_percent$/, "")), name.endsWith("_percent") ? percents(value) : shown(value)]);

/** Say in a sentence whether the guarantees hold. An unchecked guarantee of privacy is bad news. */
export function verdict({ guarantees, method }: Manifest): { good: boolean; words: string } {
  const [violated, open, holds] = ["violated", "not checked", "holds"]
    .map((outcome) => guarantees.filter((one) => one.outcome === outcome));
  if (violated.length) return { good: false, words: `Violated: ${violated.map(({ name }) => name).join(", ")}` };
  if (method.status === "heuristic")
    return { good: false, words: "No guarantee of anonymity: the method is a heuristic" };
  const unchecked = open.length ? `, ${number(open.length)} not checked` : "";
  const many = holds.length === 1 ? "guarantee" : "guarantees";
  const words = `${number(holds.length)} ${many} verified on these files${unchecked}`;
  return { good: !open.some(({ kind }) => kind === "privacy"), words };
}

export function Result({ job, removed, reuse }: {
  job: JobView; removed: () => void; reuse: (job: JobView) => void;
}) {
  const packed = job.kind === "anonymize", [sure, setSure] = useState(false);
  const { value: found, error } = useLoaded(async () => (packed ? release(job.id) : null), job.id);
  const removeNow = async () => {
    await remove(job.id);
    removed();
  };
  return <>
    {found && <Verdict manifest={found.manifest} />}
    {error && <Alert>{error}</Alert>}
    <div class="actions">
      {isFree(job) && <Download path={`/jobs/${job.id}/result`} name={job.result?.name ?? "result"} kind="main">
        Download {packed ? "the release" : "the result"} <small>({size(job.result?.bytes ?? 0)})</small></Download>}
      {packed && <button type="button" onClick={() => reuse(job)}>Change something and run again</button>}
      {!sure && <button type="button" onClick={() => setSure(true)}>Remove…</button>}
      {sure && <Action act={removeNow} kind="danger">Yes, remove it now</Action>}
      {sure && <button type="button" onClick={() => setSure(false)}>Keep it</button>}
    </div>
    {found ? <Views job={job} found={found} /> : !packed && <Output job={job} />}
  </>;
}

function Verdict({ manifest }: { manifest: Manifest }) {
  const { good, words } = verdict(manifest);
  return <div class={good ? "verdict good" : "verdict bad"}>
    <p><b>{words}</b></p>
    {manifest.guarantees.filter(({ kind }) => kind === "privacy").map(({ name, outcome, statement, checked }) =>
      <p key={name}>{outcome === "holds" ? statement : `${capital(outcome)}: ${statement} (${checked})`}</p>)}
  </div>;
}

function Views({ job, found }: { job: JobView; found: Release }) {
  const report = { id: "report", title: "Report", body: () => <ReportFrame path={`/jobs/${job.id}/report`} /> };
  return <Tabs label="Views of the result" tabs={[
    ...(found.files.some(({ name }) => name === "report.html") ? [report] : []),
    { id: "measures", title: "Measures", body: () => <Measures job={job} manifest={found.manifest} /> },
    { id: "files", title: "Files", body: () => <Files job={job} found={found} /> },
    { id: "asked", title: "What was asked", body: () => <Asked job={job} /> },
  ]} />;
}

function Measures({ job, manifest }: { job: JobView; manifest: Manifest }) {
  const { guarantees } = manifest, risk = manifest.risk ?? []; // null where no attacks were tried
  return <>
    <Pairs caption="What was published, and what was lost, as in the manifest" rows={costs(manifest)} />
    {risk.length > 0 && <>
      <Table kind="broad stacked" caption="Attacks on the original and on the release: success in whole percents"
        head={["attack", "the adversary knows", "in the original", "in the release"]}>
        {risk.map((trial, n) => <tr key={n}><th scope="row">{attackTitle(shown(trial.attack))}</th>
          <td data-label="the adversary knows">{trial.knowledge ? shown(trial.knowledge) : "the release alone"}</td>
          <td data-label="in the original">{percents(trial.risk_percent_before)}</td>
          <td data-label="in the release">{percents(trial.risk_percent)}</td></tr>)}
      </Table>
      <p class="hint">–: not measured, or there is nothing to guess. The table in the report also states what a guess
        by chance gives, and how to read each row.</p></>}
    <Table kind="broad stacked" caption="Guarantees and their verification"
      head={["guarantee", "what it says", "outcome", "how it was checked"]}>
      {guarantees.map(({ name, statement, outcome, checked }) => <tr key={name}>
        <th scope="row">{name}</th><td>{statement}</td>
        <td data-label="outcome" class={outcome === "holds" ? "yes" : outcome === "violated" ? "no" : ""}>
          {outcome === "violated" ? "VIOLATED" : outcome}</td><td>{checked}</td></tr>)}
    </Table>
    <Output job={job} />
  </>;
}

/** The output of the command line: notes, and exact figures for the owner only. */
function Output({ job }: { job: JobView }) {
  const { notes, lines } = job.summary ?? { notes: [], lines: [] };
  return <>
    {notes.length > 0 && <><h2>Worth knowing</h2>
      <ul>{notes.map((note) => <li key={note}>{withLabels(note)}</li>)}</ul></>}
    {lines.length > 0 && <><h2>Exact figures (confidential, do not publish)</h2>
      <pre class="lines" tabIndex={0} aria-label="Exact figures">{lines.join("\n")}</pre></>}
  </>;
}

function Files({ job, found }: { job: JobView; found: Release }) {
  const roles = new Map(Object.entries(found.manifest.files).map(([role, { name }]) => [name, spoken(role)]));
  roles.set("manifest.json", "Manifest");
  return <>
    <ul class="files">{found.files.map(({ name, bytes }) => <li key={name}>
      <div><b>{name}</b><small>{roles.get(name) ?? "File"} · {size(bytes)}</small></div>
      {(isFree(job) || BEFORE_REVIEW.includes(name))
        && <Download path={`/jobs/${job.id}/files/${encodeURIComponent(name)}`} name={name}>
          Download<span class="hide"> {name}</span></Download>}
    </li>)}</ul>
    <p class="hint">The zip file has SHA-256 <code>{job.result?.sha256}</code> and {number(job.result?.bytes ?? 0)}
      {" "}bytes. Unpack it and check it again with <code>crowdveil verify</code>.</p>
  </>;
}
