// The result of a job: what is guaranteed, what was lost, the report, and the files.
import { useEffect, useState } from "preact/hooks";
import { type Job, json, type Manifest, remove, said } from "./api";
import { Attacks } from "./attacks";
import { Action, Alert, Asked, Download, Pairs, ReportFrame, Tabs } from "./parts";
import { number, shown, size, spoken, withLabels } from "./words";

export interface Found { manifest: Manifest; files: { name: string; bytes: number }[] }

/** Kinds of jobs whose result is a table of methods or of values of k. */
/** What can be had before a review: what it is about. */
const BEFORE = ["report.html", "manifest.json"];
/** Whether the data of a result can be downloaded: always, but where a review is asked for. */
const givenOut = (job: Job): boolean => job.review === null || job.review.state === "approved";

export async function found(id: string): Promise<Found> {
  const { files } = await json<{ files: Found["files"] }>(`/jobs/${id}/files`);
  return { files, manifest: await json<Manifest>(`/jobs/${id}/files/manifest.json`) };
}

/** Cost as the manifest has it: shares are whole percents. */
export function costs(manifest: Manifest): [string, string][] {
  return Object.entries(manifest.cost).map(([name, value]) => {
    const percent = name.endsWith("_percent");
    return [spoken(name.replace(/_percent$/, "")), percent ? `${shown(value)} %` : shown(value)];
  });
}

export function verdict(manifest: Manifest): { good: boolean; words: string } {
  const with_ = (outcome: string) => manifest.guarantees.filter((p) => p.outcome === outcome);
  const broken = with_("violated"), open = with_("not checked"), holds = with_("holds").length;
  if (broken.length) return { good: false, words: `Violated: ${broken.map((p) => p.name).join(", ")}` };
  if (manifest.method.status === "heuristic") return { good: false, words: "No guarantee of anonymity: the method is a heuristic" };
  // What was not checked is never counted among what holds; a guarantee of privacy that was not checked is no good news.
  const words = `${number(holds)} ${holds === 1 ? "guarantee" : "guarantees"} verified on these files${open.length ? `, ${number(open.length)} not checked` : ""}`;
  return { good: !open.some((p) => p.kind === "privacy"), words };
}

export function Result({ job, removed, reuse }: { job: Job; removed: () => void; reuse: (job: Job) => void }) {
  const [result, setResult] = useState<Found | null>(null), [error, setError] = useState(""), [sure, setSure] = useState(false);
  const packed = job.kind === "anonymize", given = givenOut(job);
  useEffect(() => { if (packed) found(job.id).then(setResult, (problem) => setError(said(problem))); }, [job.id]);
  return <>
    {result && <Verdict manifest={result.manifest} />}
    {error && <Alert>{error}</Alert>}
    <div class="actions">
      {given && <Download path={`/jobs/${job.id}/result`} name={job.result?.name ?? "result"} kind="main">
        Download {packed ? "the release" : "the result"} <small>({size(job.result?.bytes ?? 0)})</small></Download>}
      {packed && <button type="button" onClick={() => reuse(job)}>Change something and run again</button>}
      {sure
        ? <><Action act={async () => { await remove(job.id); removed(); }} kind="danger">Yes, remove it now</Action><button type="button" onClick={() => setSure(false)}>Keep it</button></>
        : <button type="button" onClick={() => setSure(true)}>Remove…</button>}
    </div>
    {result ? <Views job={job} result={result} /> : !packed && <Said job={job} />}
  </>;
}

function Verdict({ manifest }: { manifest: Manifest }) {
  const { good, words } = verdict(manifest);
  const privacy = manifest.guarantees.filter((p) => p.kind === "privacy");
  return <div class={good ? "verdict good" : "verdict bad"}>
    <p><b>{words}</b></p>
    {privacy.map((p) => <p key={p.name}>{p.outcome === "holds" ? "" : `${p.outcome[0].toUpperCase()}${p.outcome.slice(1)}: `}{p.statement}{p.outcome === "holds" ? "" : ` (${p.checked})`}</p>)}
  </div>;
}

function Views({ job, result }: { job: Job; result: Found }) {
  const there = (name: string) => result.files.some((f) => f.name === name);
  const tabs = [
    ...(there("report.html") ? [{ id: "report", title: "Report", body: () => <ReportFrame path={`/jobs/${job.id}/report`} title="Report of the release" /> }] : []),
    { id: "measures", title: "Measures", body: () => <Measures job={job} manifest={result.manifest} report={there("report.html")} /> },
    { id: "files", title: "Files", body: () => <Files job={job} result={result} /> },
    { id: "asked", title: "What was asked", body: () => <Asked job={job} /> },
  ];
  return <Tabs label="Views of the result" tabs={tabs} />;
}

function Measures({ job, manifest, report }: { job: Job; manifest: Manifest; report: boolean }) {
  return <>
    <Pairs caption="What was published, and what was lost, as in the manifest" rows={costs(manifest)} />
    <Attacks job={job} trials={manifest.risk ?? []} report={report} />
    <div class="wide" role="region" aria-label="Guarantees" tabIndex={0}><table class="broad"><caption>Guarantees and their verification</caption>
      <thead><tr><th scope="col">guarantee</th><th scope="col">what it says</th><th scope="col">outcome</th><th scope="col">how it was checked</th></tr></thead>
      <tbody>{manifest.guarantees.map((p) => <tr key={p.name}><th scope="row">{p.name}</th><td>{p.statement}</td><td data-label="outcome" class={p.outcome === "holds" ? "yes" : p.outcome === "violated" ? "no" : ""}>{p.outcome === "violated" ? "VIOLATED" : p.outcome}</td><td>{p.checked}</td></tr>)}</tbody></table></div>
    <Said job={job} />
  </>;
}

function Notes({ job }: { job: Job }) {
  const { notes = [] } = job.summary ?? {};
  return notes.length > 0 ? <><h2>Worth knowing</h2><ul>{notes.map((n) => <li key={n}>{withLabels(n)}</li>)}</ul></> : null;
}

/** What the command line would have said; exact figures, for the owner's eyes. */
function Said({ job }: { job: Job }) {
  const { lines = [] } = job.summary ?? {};
  return <>
    <Notes job={job} />
    {lines.length > 0 && <><h2>Exact figures (confidential, do not publish)</h2><pre class="lines" tabIndex={0} aria-label="Exact figures">{lines.join("\n")}</pre></>}
  </>;
}

function Files({ job, result }: { job: Job; result: Found }) {
  const roles = new Map(Object.entries(result.manifest.files).map(([role, file]) => [file.name, role]));
  return <>
    <ul class="files">{result.files.map((file) => <li key={file.name}>
      <div><b>{file.name}</b><small>{spoken(roles.get(file.name) ?? (file.name === "manifest.json" ? "manifest" : "file"))} · {size(file.bytes)}</small></div>
      {(givenOut(job) || BEFORE.includes(file.name)) && <Download path={`/jobs/${job.id}/files/${encodeURIComponent(file.name)}`} name={file.name}>Download<span class="hide"> {file.name}</span></Download>}
    </li>)}</ul>
    <p class="hint">The zip file has SHA-256 <code>{job.result?.sha256}</code> and {number(job.result?.bytes ?? 0)} bytes. Unpack it and check it again with <code>crowdveil verify</code>.</p>
  </>;
}
