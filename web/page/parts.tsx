// Small parts that several pages share.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { blob, download, json, said } from "./api";
import type { JobView } from "./views";
import { label, shown, spoken, STATES } from "./words";

/** The part of the address behind #, which names the page. */
export const route = (): string[] => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);
export const go = (path: string): void => { location.hash = path; };

interface Loaded<T> { value: T | null; error: string; set: (value: T) => void; fail: (problem: unknown) => void }

/** Load something when a page opens, and again when `key` changes. */
export function useLoaded<T>(load: () => Promise<T>, key = ""): Loaded<T> {
  const [value, set] = useState<T | null>(null), [error, setError] = useState("");
  const fail = (problem: unknown) => setError(said(problem));
  useEffect(() => {
    let left = false;
    load().then((loaded) => { if (!left) set(() => loaded); }, (problem) => { if (!left) fail(problem); });
    return () => { left = true; };
  }, [key]);
  return { value, error, set: (next) => set(() => next), fail };
}

/** Load JSON from the service. */
export const useJson = <T,>(path: string): Loaded<T> => useLoaded(() => json<T>(path), path);

/** The heading of a page; it takes the focus when the page changes, so that a screen reader reads it. */
export function Title({ children, above }: { children: ComponentChildren; above?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const { dataset } = document.documentElement;
    document.title = `${heading.current!.textContent} – Crowdveil`;
    if (dataset.moved) heading.current!.focus();
    dataset.moved = "yes";
    window.scrollTo(0, 0);
  }, []);
  return <div class="title">
    {above && <p class="brow">{above}</p>}<h1 ref={heading} tabIndex={-1}>{children}</h1></div>;
}

export const Alert = ({ children }: { children: ComponentChildren }) => <p class="alert" role="alert">{children}</p>;

/** A page that could not be loaded. */
export function Missing({ title, error, link, children }: {
  title: string; error: string; link: string; children: ComponentChildren;
}) {
  return <><Title>{title}</Title><Alert>{error}</Alert><p><a href={link}>{children}</a></p></>;
}

/** The state of a job or of a review. */
export const Badge = ({ state }: { state: string }) => <span class={`badge ${state}`}>{STATES[state]}</span>;

/** A button for an action that takes a while, with its error. */
export function Action({ act, children, kind = "", busy = "…" }: {
  act: () => Promise<void>; children: ComponentChildren; kind?: string; busy?: string;
}) {
  const [wait, setWait] = useState(false), [error, setError] = useState("");
  const click = async () => {
    setWait(true);
    setError("");
    try { await act(); } catch (problem) { setError(said(problem)); } finally { setWait(false); }
  };
  return <>
    <button type="button" class={kind} onClick={click} disabled={wait}>{wait ? busy : children}</button>
    {error && <Alert>{error}</Alert>}
  </>;
}

export function Download({ path, name, children, kind }: {
  path: string; name: string; children: ComponentChildren; kind?: string;
}) {
  return <Action act={() => download(path, name)} kind={kind} busy="Fetching…">{children}</Action>;
}

/** A table that scrolls sideways where it is too wide, also by keyboard. */
export function Table({ caption, kind, head, children }: {
  caption: string; kind: string; head?: ComponentChildren[]; children: ComponentChildren;
}) {
  return <div class="wide" role="region" aria-label={caption} tabIndex={0}>
    <table class={kind}><caption>{caption}</caption>
      {head && <thead><tr>
        {head.map((name, n) => (name ? <th key={n} scope="col">{name}</th> : <td key={n} />))}</tr></thead>}
      <tbody>{children}</tbody></table>
  </div>;
}

export function Pairs({ caption, rows }: { caption: string; rows: [string, ComponentChildren][] }) {
  return <Table caption={caption} kind="pairs">
    {rows.map(([name, value]) => <tr key={name}><th scope="row">{name}</th><td>{value}</td></tr>)}</Table>;
}

interface Tab { id: string; title: string; body: () => ComponentChildren }

/** Tabs that arrow keys move between. */
export function Tabs({ label: name, tabs }: { label: string; tabs: Tab[] }) {
  const [open, setOpen] = useState(tabs[0].id);
  const now = tabs.find((tab) => tab.id === open) ?? tabs[0];
  const key = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    const next = tabs[(tabs.indexOf(now) + by + tabs.length) % tabs.length];
    setOpen(next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return <>
    <div class="tabs" role="tablist" aria-label={name} onKeyDown={key}>
      {tabs.map((tab) => <button key={tab.id} type="button" role="tab" id={`tab-${tab.id}`}
        aria-selected={tab === now} aria-controls={`panel-${tab.id}`} tabIndex={tab === now ? 0 : -1}
        onClick={() => setOpen(tab.id)}>{tab.title}</button>)}
    </div>
    <div role="tabpanel" id={`panel-${now.id}`} aria-labelledby={`tab-${now.id}`} key={now.id}>{now.body()}</div>
  </>;
}

/** A report in a sandboxed frame: it may run its one script, and has no access to the page. */
export function ReportFrame({ path }: { path: string }) {
  const title = "Report of the release", stage = useRef<HTMLDivElement>(null);
  // The frame inherits the policy of the page, which names the report's script; a frame cannot send a token by itself.
  const { value: page, error } = useLoaded(() => blob(path), path), [address, setAddress] = useState("");
  useEffect(() => {
    if (!page) return;
    const made = URL.createObjectURL(new Blob([page], { type: "text/html" }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [page]);
  const fullScreen = () =>
    void (document.fullscreenElement ? document.exitFullscreen() : stage.current!.requestFullscreen?.());
  if (error) return <Alert>{error}</Alert>;
  return <div class="frame" ref={stage}>
    <div class="bar"><span>{title}</span>
      <button type="button" class="quiet" onClick={fullScreen}>Full screen</button></div>
    {address ? <iframe title={title} src={address} sandbox="allow-scripts" />
      : <p class="waiting" role="status">Fetching the report…</p>}
  </div>;
}

/** The request of a job. */
export function Asked({ job }: { job: JobView }) {
  const rest = job.state === "failed" ? "parameters of a failed job are not kept" : "other options have their defaults";
  const rows = Object.entries(job.parameters).map(([name, value]): [string, string] => [label(name), shown(value)]);
  const files = Object.entries(job.files).map(([name, file]): [string, string] => [spoken(name), file]);
  return <Pairs caption={`What was asked for; ${rest}`} rows={[["Method", job.name], ...files, ...rows]} />;
}
