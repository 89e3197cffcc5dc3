// The page on which a job is prepared.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Field, type Form, type Job, said, send, stopped, type Takes } from "./api";
import { DataChoice, type Chosen } from "./data";
import { auditFields, type Draft, filesOf, formatOf, jobForm, method } from "./draft";
import { Controls, Crowd, More } from "./fields";
import { Columns, Findings, Kind } from "./look";
import { type Desk, FieldControl, Message } from "./message";
import { Alert, Title } from "./parts";
import { blocked, READING, usePreview, type Work } from "./preview";
import { go } from "./router";
import { forget, shareOf, watch, withUploads } from "./uploads";
import { ROLES, STATUS_WORDS } from "./words";

const FIRST: Record<Takes, string[]> = { flows: ["zones", "step", "tz"], trajectories: ["tz", "zones"] };
const FROM_PLACES = ["grid", "h3"];
const SHOWN = 3;
const EARLY = ["suppress", "time_partition"]; // what people ask about first
const STATUSES = ["proven", "argued", "heuristic"];

/** How much of the data was sent, while the rest of the page is used. */
function SendingNote({ file }: { file: File }) {
  const [share, setShare] = useState(shareOf(file));
  useEffect(() => watch(file, () => setShare(shareOf(file))), [file]);
  return share > 0 && share < 1 ? <p class="hint">The file is being sent: {Math.round(100 * share)} %. You can go on meanwhile.</p> : null;
}

export function NewJob({ form, work, change }: { form: Form; work: Work; change: (work: Work) => void }) {
  const { draft, seen } = work, takes = draft.takes;
  const [sending, setSending] = useState<number | null>(null), [error, setError] = useState(""), stop = useRef(new AbortController());
  const preview = usePreview(form, work, change), reason = blocked(work, preview);
  const [wanted, setWanted] = useState(false), [asked, setAsked] = useState(false);
  const choose = (next: Work) => {
    setWanted(false); // what was asked for was another job
    setAsked(false);
    change(next);
  };
  const edit = (part: Partial<Draft>) => choose({ ...work, draft: { ...draft, ...part } });
  const set = (name: string, value: string | boolean) => edit({ values: { ...draft.values, [name]: value }, ...(name === "tz" ? { zoneFrom: null } : {}) });
  const attach = (name: string, file: File | null) => {
    const { [name]: old, ...rest } = draft.files;
    if (old !== draft.data) forget(old);
    edit({ files: file ? { ...rest, [name]: file } : rest });
  };
  const take = (chosen: Chosen | null) => {
    setError("");
    if (chosen === null) {
      forget(draft.data, ...Object.values(draft.files));
      // What was agreed to or guessed for one file does not hold for the next.
      const { tz, time_format: _, ...others } = draft.values, kept: Draft["values"] = draft.zoneFrom || tz === undefined ? {} : { tz };
      return choose({ draft: { ...draft, data: null, takes: null, roles: {}, files: {}, zoneFrom: null, values: { ...others, ...kept, drop_invalid: false } }, seen: null, seenFor: "", failed: null });
    }
    const files = chosen.zones ? { ...draft.files, zones: chosen.zones } : draft.files;
    choose({ draft: { ...draft, data: chosen.data ?? draft.data, files }, seen: null, seenFor: "", failed: null });
  };
  const map = (role: string, column: string) => {
    const others = Object.fromEntries(Object.entries(draft.roles).filter(([r, c]) => c !== column && r !== role));
    edit({ roles: role ? { ...others, [role]: column } : others });
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const page = event.currentTarget as HTMLFormElement;
    const bad = page.querySelector<HTMLInputElement>("input:invalid, select:invalid");
    if (bad) {
      bad.closest("details")?.setAttribute("open", "");
      bad.reportValidity();
      return;
    }
    if (sending === null) setWanted(true);
  };
  /** Say why nothing is sent: a browser ignores Enter in a field while the button is disabled. */
  const answer = (event: KeyboardEvent) => {
    const field = event.target as HTMLInputElement;
    if (event.key !== "Enter" || field.tagName !== "INPUT" || field.type === "file" || !reason || reason === READING) return;
    event.preventDefault();
    setAsked(true);
  };
  useEffect(() => {
    if (!wanted || reason === READING) return;
    setWanted(false);
    if (reason) setAsked(true);
    else void start();
  }, [wanted, reason]);
  useEffect(() => { if (asked) document.getElementById("why")?.scrollIntoView({ block: "center" }); }, [asked]);
  const start = async () => {
    setError("");
    setSending(0);
    stop.current = new AbortController();
    try {
      const job = await withUploads(filesOf(form, draft, takes),
        (ids) => send<Job>(`/methods/${method(form, draft, takes!).name}/jobs`, jobForm(form, draft, takes!, ids), {}, undefined, stop.current.signal), setSending, stop.current.signal);
      change({ ...work, failed: null });
      go(`/jobs/${job.id}`);
    } catch (problem) {
      if (!stopped(problem)) setError(said(problem));
      setSending(null);
    }
  };
  const desk: Desk | null = seen && takes ? { form, draft, takes, seen, set, attach, map, pending: preview.pending } : null;
  return <>
    <Title>Anonymize mobility data</Title>
    <p class="lead">Trips, flows or trajectories become a release in which every person is in a group of at least k. The guarantees are verified on the written files, and a report states what was lost.</p>
    <form class="steps" onSubmit={submit} onKeyDown={answer} noValidate>
      <section aria-labelledby="s-data"><h2 id="s-data"><span class="n" aria-hidden="true">1</span> Data</h2>
        <DataChoice data={draft.data} endings={form.files.data} choose={take} />
        {!draft.data && draft.files.zones && <p class="hint">{draft.files.zones.name} is kept as the file of zones. Now choose the data.</p>}
        {draft.data && preview.share === null && <SendingNote key={draft.data.name} file={draft.data} />}
        <p role="status" class="status">{preview.share === null ? "" : preview.share < 1 ? `Sending the file for a preview: ${Math.round(100 * preview.share)} %` : "Reading the file…"}</p>
        {preview.error && <Alert>{preview.error}</Alert>}
        {desk && <>
          <Kind takes={desk.takes} guess={desk.seen.looks_like} choose={(one) => edit({ takes: one, roles: {} })} />
          <Columns seen={desk.seen} takes={desk.takes} named={draft.roles} map={map} />
          {!preview.error && <Findings desk={desk} />}
          {preview.stale && <p><button type="button" onClick={preview.readAgain}>Read it again</button> <span class="hint">You changed how the file is read; it is large, so it is not read again by itself.</span></p>}
        </>}
      </section>
      {!draft.data && <dl class="about">
        <div><dt>Preview</dt><dd>The server reads the file, and shows what each column means and what is wrong with it.</dd></div>
        <div><dt>Choose</dt><dd>A method, and how large a group must be. Every parameter says what it does.</dd></div>
        <div><dt>Verify</dt><dd>Guarantees are verified on the written files, and attacks are tried, before you get them. A report shows what was lost, and what could not be checked.</dd></div>
      </dl>}
      {desk && <>
        <Reading desk={desk} />
        <MethodChoice desk={desk} edit={edit} />
        <Run desk={desk} work={work} reason={wanted ? "" : reason} asked={asked}>
          {error && <Alert>{error}</Alert>}
          <p class="go"><button type="submit" class="main" aria-describedby="why" disabled={sending !== null || wanted || (reason !== "" && reason !== READING)}>{sending === null ? "Anonymize" : "Sending…"}</button>
            {(sending !== null || wanted) && <button type="button" onClick={() => { setWanted(false); stop.current.abort(); }}>Stop</button>}
            <span role="status">{sending !== null ? `${Math.round(100 * sending)} % sent` : wanted ? "The job starts when the file has been read." : ""}</span></p>
        </Run>
      </>}
    </form>
  </>;
}

function Run({ desk, work, reason, asked, children }: { desk: Desk; work: Work; reason: string; asked: boolean; children: ComponentChildren }) {
  const { form, draft, set, seen } = desk;
  const fields = form.run, values = { ...draft.values, format: formatOf(draft) ?? "parquet" };
  const unfit = seen.unfit && (!seen.error || (seen.problems.length > 0 && draft.values.drop_invalid === true)) ? seen.unfit : null; // first what is wrong with the file
  return <section aria-labelledby="s-run"><h2 id="s-run"><span class="n" aria-hidden="true">4</span> Run</h2>
    {desk.takes === "flows" && form.sources.length > 0 && <>
      <p class="hint">{form.sources.length === 1 ? <>Audited before it is published against the earlier releases in the ledger of <b>{form.sources[0]}</b>.</> : "Audited before it is published against the earlier releases in the ledger of its source."}</p>
      <Controls fields={auditFields(form)} values={draft.values} change={set} />
    </>}
    <More title="Advanced: random seed, file format, attacks" fields={fields} values={values} set={{ ...draft.values, format: "" }} change={set} />
    {work.failed && <><p class="hint">The last job ended with this error:</p><Message error={work.failed} desk={desk} calm /></>}
    {unfit && <Message error={unfit} desk={desk} />}
    {children}
    <p class={asked && reason ? "alert" : "hint why"} role={asked && reason ? "alert" : undefined} id="why">{reason === READING ? "The file is being read again. A job that is started now waits for it." : reason && <><b>Not possible yet.</b> {unfit ? "See the message above." : reason}</>}</p>
  </section>;
}

function Reading({ desk }: { desk: Desk }) {
  const { form, takes, seen, draft } = desk;
  const fields = form.reading[takes].filter((f) => !ROLES[takes].includes(f.name) && f.name !== "drop_invalid");
  const first = seen.roles.origin_lon && !draft.files.zones ? [...FIRST[takes], ...FROM_PLACES] : FIRST[takes]; // positions have to be put into zones
  const shown = first.map((name) => fields.find((f) => f.name === name)).filter((f): f is Field => f !== undefined);
  const rest = fields.filter((f) => !shown.includes(f));
  const one = (field: Field) => <FieldControl key={field.name} desk={desk} field={field} />;
  const used = rest.filter((f) => draft.files[f.name] || draft.values[f.name]);
  return <section aria-labelledby="s-read"><h2 id="s-read"><span class="n" aria-hidden="true">2</span> Zones and times</h2>
    <div class="fields">{shown.map(one)}</div>
    <details class="more" open={used.length > 0}><summary>More on how it is read: {takes === "flows" ? "date format, squares, trees over the zones, earlier areas…" : "date format, person ids…"}</summary><div class="fields">{rest.map(one)}</div></details>
  </section>;
}

function MethodChoice({ desk, edit }: { desk: Desk; edit: (part: Partial<Draft>) => void }) {
  const { form, draft, takes, set } = desk;
  const now = method(form, draft, takes);
  const k = now.fields.find((f) => f.name === "k"), own = now.fields.filter((f) => f !== k);
  const plain = own.filter((f) => f.kind !== "bool" && !EARLY.includes(f.name));
  const shown = [...own.filter((f) => EARLY.includes(f.name)), ...plain].slice(0, SHOWN);
  return <section aria-labelledby="s-method"><h2 id="s-method"><span class="n" aria-hidden="true">3</span> Method</h2>
    <div class="field"><label for="method">Method</label>
      <select id="method" value={now.name} aria-describedby="method-hint" onChange={(event) => edit({ method: { ...draft.method, [takes]: event.currentTarget.value } })}>
        {STATUSES.map((status) => <optgroup key={status} label={STATUS_WORDS[status].split(":")[0]}>
          {form.methods.filter((m) => m.takes === takes && m.status === status).map((m) => <option key={m.name} value={m.name}>{m.name}</option>)}</optgroup>)}
      </select>
      <p class="summary" id="method-hint">{now.summary} <span class={`mark ${now.status}`}>{STATUS_WORDS[now.status]}</span></p>
    </div>
    {k && <Crowd field={k} given={draft.values.k} change={set} presets={form.presets} />}
    <Controls fields={shown} values={draft.values} change={set} />
    <More title={`More parameters of ${now.name}`} fields={own.filter((f) => !shown.includes(f))} values={draft.values} change={set} />
  </section>;
}
