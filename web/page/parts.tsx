// Small parts that several pages share.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { blob, download, type Job, said } from "./api";
import { label, shown, spoken } from "./words";

/** The heading of a page; it takes the focus when the page changes, so that a screen reader says where one is. */
export function Title({ children, above }: { children: ComponentChildren; above?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const text = heading.current!.textContent ?? "";
    document.title = `${text} – Crowdveil`;
    if (document.documentElement.dataset.moved) heading.current!.focus();
    document.documentElement.dataset.moved = "yes";
    window.scrollTo(0, 0);
  }, []);
  return <div class="title">{above && <p class="brow">{above}</p>}<h1 ref={heading} tabIndex={-1}>{children}</h1></div>;
}

export function Alert({ children }: { children: ComponentChildren }) {
  return <p class="alert" role="alert">{children}</p>;
}

export function Badge({ state, children }: { state: string; children: ComponentChildren }) {
  return <span class={`badge ${state}`}>{children}</span>;
}

/** Does something that takes a while, and says what went wrong. */
export function Action({ act, children, kind = "", busy = "…" }: { act: () => Promise<void>; children: ComponentChildren; kind?: string; busy?: string }) {
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

export function Download({ path, name, children, kind }: { path: string; name: string; children: ComponentChildren; kind?: string }) {
  return <Action act={() => download(path, name)} kind={kind} busy="Fetching…">{children}</Action>;
}

export function Pairs({ caption, rows }: { caption: string; rows: [string, ComponentChildren][] }) {
  return <div class="wide" role="region" aria-label={caption} tabIndex={0}>
    <table class="pairs"><caption>{caption}</caption><tbody>{rows.map(([name, value]) => <tr key={name}><th scope="row">{name}</th><td>{value}</td></tr>)}</tbody></table>
  </div>;
}

/** Tabs that arrow keys move between. */
export function Tabs({ label, tabs }: { label: string; tabs: { id: string; title: string; body: () => ComponentChildren }[] }) {
  const [open, setOpen] = useState(tabs[0].id);
  const now = tabs.find((t) => t.id === open) ?? tabs[0];
  const key = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    const next = tabs[(tabs.indexOf(now) + by + tabs.length) % tabs.length];
    setOpen(next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return <>
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={key}>
      {tabs.map((t) => <button key={t.id} type="button" role="tab" id={`tab-${t.id}`} aria-selected={t === now} aria-controls={`panel-${t.id}`}
        tabIndex={t === now ? 0 : -1} onClick={() => setOpen(t.id)}>{t.title}</button>)}
    </div>
    <div role="tabpanel" id={`panel-${now.id}`} aria-labelledby={`tab-${now.id}`} key={now.id}>{now.body()}</div>
  </>;
}

/** A report in a frame of its own: it may run its one script, and has no access to the page. */
export function ReportFrame({ path, title, at = "" }: { path: string; title: string; at?: string }) {
  const [address, setAddress] = useState(""), [error, setError] = useState("");
  const stage = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let made = "", gone = false;
    // The page's policy is inherited by the frame and names the report's script; a frame cannot send a token by itself.
    blob(path).then((page) => {
      if (gone) return;
      made = URL.createObjectURL(new Blob([page], { type: "text/html" }));
      setAddress(made);
    }, (problem) => setError(said(problem)));
    return () => { gone = true; URL.revokeObjectURL(made); };
  }, [path]);
  if (error) return <Alert>{error}</Alert>;
  return <div class="frame" ref={stage}>
    <div class="bar"><span>{title}</span><button type="button" class="quiet" onClick={() => {
      if (document.fullscreenElement) void document.exitFullscreen();
      else void stage.current!.requestFullscreen?.();
    }}>Full screen</button></div>
    {address ? <iframe title={title} src={address + at} sandbox="allow-scripts" /> : <p class="waiting" role="status">Fetching the report…</p>}
  </div>;
}

/** What a job was asked for. */
export function Asked({ job }: { job: Job }) {
  const rows = Object.entries(job.parameters).map(([name, value]): [string, string] => [label({ name }), shown(value)]);
  const files = Object.entries(job.files).map(([name, file]): [string, string] => [spoken(name), file]);
  return <Pairs caption={job.state === "failed" ? "What was asked for; parameters of a failed job are not kept" : "What was asked for; other options have their defaults"} rows={[["Method", job.name], ...files, ...rows]} />;
}
