// The page on which a job is prepared.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Field, type Form, type Job, said, type Seen, send, stopped, type Takes, ServiceError } from "./api";
import { DataChoice, type Chosen } from "./data";
import { bare, type Draft, empty, jobForm, light, lookForm, method, reading } from "./draft";
import { Control, Controls, Crowd, FileField, More } from "./fields";
import { Columns, Findings, Kind } from "./look";
import { Alert, Title } from "./parts";
import { go } from "./router";
import { label, ROLES, STATUS_WORDS } from "./words";

export interface Work { draft: Draft; seen: Seen | null; seenFor: string }
export const newWork = (): Work => ({ draft: empty(), seen: null, seenFor: "" });

const FIRST: Record<Takes, string[]> = { flows: ["zones", "step", "tz"], trajectories: ["tz", "zones"] };
const FROM_PLACES = ["grid", "h3"];
const TREES = ["ward", "kd", "quadtree", "h3"];
const SHOWN = 3;
const STATUSES = ["proven", "argued", "heuristic"];

/** What a look depends on: as long as this is the same, it need not be taken again. */
function lookKey(form: Form, draft: Draft): string {
  if (!draft.data) return "";
  const { drop_invalid: _, ...options } = draft.takes ? reading(form, draft, draft.takes) : {};
  const files = [draft.data, ...(draft.takes ? Object.values(draft.files) : [])].map((f) => [f.name, f.size, f.lastModified]);
  return JSON.stringify([files, draft.takes, options]);
}

const unseen = (takes: Takes): Seen => ({ columns: [], rows: [], looks_like: null, takes, roles: {}, counts: {}, notes: [], problems: [], error: null, part: false });

function useLook(form: Form, work: Work, change: (work: Work) => void) {
  const [share, setShare] = useState<number | null>(null), [error, setError] = useState(""), [again, setAgain] = useState(0);
  const key = lookKey(form, work.draft), latest = useRef(work);
  latest.current = work;
  const heavy = work.seen !== null && !light(work.draft);
  useEffect(() => {
    if (!work.draft.data || key === work.seenFor || (heavy && again === 0)) return;
    const control = new AbortController();
    const timer = setTimeout(async () => {
      setShare(0);
      setError("");
      try {
        const seen = await send<Seen>("/preview", lookForm(form, work.draft), setShare, control.signal);
        const draft = { ...latest.current.draft, takes: latest.current.draft.takes ?? seen.takes };
        const plain = work.draft.takes !== null ? work.draft : bare(work.draft); // what this look was of
        change({ draft, seen, seenFor: lookKey(form, { ...plain, takes: draft.takes }) });
      } catch (problem) {
        if (stopped(problem)) return;
        setError(said(problem));
        // What takes too long to be looked at can be run all the same.
        const now = latest.current, takes = now.draft.takes ?? "flows", long = problem instanceof ServiceError && problem.code === "too_long";
        if (long) change({ draft: { ...now.draft, takes }, seen: unseen(takes), seenFor: lookKey(form, { ...now.draft, takes }) });
        else change({ ...now, seen: null, seenFor: key });
      }
      setAgain(0);
      setShare(null);
    }, work.seen ? 500 : 0);
    return () => { clearTimeout(timer); control.abort(); setShare(null); };
  }, [key, again]);
  return { share, error, stale: heavy && key !== work.seenFor, lookAgain: () => setAgain(again + 1) };
}

export function NewJob({ form, work, change }: { form: Form; work: Work; change: (work: Work) => void }) {
  const { draft, seen } = work, takes = draft.takes;
  const [sending, setSending] = useState<number | null>(null), [error, setError] = useState(""), stop = useRef(new AbortController());
  const look = useLook(form, work, change);
  const edit = (part: Partial<Draft>) => change({ ...work, draft: { ...draft, ...part } });
  const set = (name: string, value: string | boolean) => edit({ values: { ...draft.values, [name]: value } });
  const attach = (name: string, file: File | null) => {
    const { [name]: _, ...rest } = draft.files;
    edit({ files: file ? { ...rest, [name]: file } : rest });
  };
  const choose = (chosen: Chosen | null) => {
    setError("");
    // What was agreed to for one file is not agreed to for the next.
    if (chosen === null) return change({ draft: { ...draft, data: null, takes: null, roles: {}, files: {}, values: { ...draft.values, drop_invalid: false, before_after: false } }, seen: null, seenFor: "" });
    const files = chosen.zones ? { ...draft.files, zones: chosen.zones } : draft.files;
    const values = chosen.made ? { ...draft.values, before_after: true } : draft.values;
    change({ draft: { ...draft, data: chosen.data ?? draft.data, files, values }, seen: null, seenFor: "" });
  };
  const map = (role: string, column: string) => {
    const others = Object.fromEntries(Object.entries(draft.roles).filter(([r, c]) => c !== column && r !== role));
    edit({ roles: role ? { ...others, [role]: column } : others });
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    const page = event.currentTarget as HTMLFormElement;
    const bad = page.querySelector<HTMLInputElement>("input:invalid, select:invalid");
    if (bad) {
      bad.closest("details")?.setAttribute("open", "");
      bad.reportValidity();
      return;
    }
    setError("");
    setSending(0);
    stop.current = new AbortController();
    try {
      const job = await send<Job>(`/methods/${method(form, draft, takes!).name}/jobs`, jobForm(form, draft, takes!), setSending, stop.current.signal);
      go(`/jobs/${job.id}`);
    } catch (problem) {
      if (!stopped(problem)) setError(said(problem));
      setSending(null);
    }
  };
  return <>
    <Title>Anonymize movement data</Title>
    <p class="lead">Your file is worked on by this server and removed when the job ends. What comes back was checked on the written files, and says what was lost.</p>
    <form class="steps" onSubmit={submit} noValidate>
      <section aria-labelledby="s-data"><h2 id="s-data"><span class="n" aria-hidden="true">1</span> Data</h2>
        <DataChoice data={draft.data} endings={form.files.data} choose={choose} />
        {!draft.data && draft.files.zones && <p class="hint">{draft.files.zones.name} is kept as the file of zones. Now choose the data.</p>}
        <p role="status" class="status">{look.share === null ? "" : look.share < 1 ? `Sending the file to look at it: ${Math.round(100 * look.share)} %` : "Looking at the file…"}</p>
        {look.error && <Alert>{look.error}</Alert>}
        {seen && takes && <>
          <Kind takes={takes} guess={seen.looks_like} choose={(one) => change({ ...work, draft: { ...draft, takes: one, roles: {} } })} />
          <Columns seen={seen} takes={takes} named={draft.roles} map={map} />
          {!look.error && <Findings seen={seen} dropping={draft.values.drop_invalid === true} drop={form.reading[takes].find((f) => f.name === "drop_invalid")} change={set} />}
          {look.stale && <p><button type="button" onClick={look.lookAgain}>Look again</button> <span class="hint">You changed how the file is read; it is large, so it is not sent again by itself.</span></p>}
        </>}
      </section>
      {!draft.data && <dl class="about">
        <div><dt>Look</dt><dd>The server reads the file, shows what each column means and what is wrong with it, and forgets it.</dd></div>
        <div><dt>Choose</dt><dd>A method, and how large a group must be. Every parameter says what it does.</dd></div>
        <div><dt>Check</dt><dd>Guarantees are checked on the written files, and some attacks are tried, before you get them. A report shows what was lost, and what could not be checked.</dd></div>
      </dl>}
      {seen && takes && <>
        <Reading form={form} draft={draft} takes={takes} seen={seen} set={set} attach={attach} />
        <MethodChoice form={form} draft={draft} takes={takes} set={set} edit={edit} />
        <section aria-labelledby="s-run"><h2 id="s-run"><span class="n" aria-hidden="true">4</span> Run</h2>
          {form.run.filter((f) => f.name === "before_after").map((f) => <Control key={f.name} field={f} given={draft.values[f.name]} change={set} />)}
          <More title="Advanced: random seed, file format, attacks" fields={form.run.filter((f) => f.name !== "before_after")} values={draft.values} change={set} />
          {error && <Alert>{error}</Alert>}
          <p class="go"><button type="submit" class="main" disabled={sending !== null}>{sending === null ? "Anonymize" : "Sending…"}</button>
            {sending !== null && <button type="button" onClick={() => stop.current.abort()}>Stop</button>}
            <span role="status">{sending === null ? "" : `${Math.round(100 * sending)} % sent`}</span></p>
        </section>
      </>}
    </form>
  </>;
}

interface Part { form: Form; draft: Draft; takes: Takes; set: (name: string, value: string | boolean) => void }

function Reading({ form, draft, takes, seen, set, attach }: Part & { seen: Seen; attach: (name: string, file: File | null) => void }) {
  const fields = form.reading[takes].filter((f) => !ROLES[takes].includes(f.name) && f.name !== "drop_invalid");
  const first = seen.roles.origin_lon && !draft.files.zones ? [...FIRST[takes], ...FROM_PLACES] : FIRST[takes]; // places have to be put into zones
  const shown = first.map((name) => fields.find((f) => f.name === name)).filter((f): f is Field => f !== undefined);
  const rest = fields.filter((f) => !shown.includes(f));
  const one = (field: Field) => field.kind === "file"
    ? <FileField key={field.name} field={field} file={draft.files[field.name]} word={draft.values[field.name]} endings={form.files[field.name]}
        words={field.name.endsWith("hierarchy") ? TREES : []} choose={attach} change={set} />
    : <Control key={field.name} field={field} given={draft.values[field.name]} change={set} />;
  const used = rest.filter((f) => draft.files[f.name] || draft.values[f.name]);
  return <section aria-labelledby="s-read"><h2 id="s-read"><span class="n" aria-hidden="true">2</span> Places and times</h2>
    <div class="fields">{shown.map(one)}</div>
    <details class="more" open={used.length > 0}><summary>More on how it is read: {rest.slice(0, 3).map((f) => label(f).toLowerCase()).join(", ")}…</summary><div class="fields">{rest.map(one)}</div></details>
  </section>;
}

function MethodChoice({ form, draft, takes, set, edit }: Part & { edit: (part: Partial<Draft>) => void }) {
  const now = method(form, draft, takes);
  const k = now.fields.find((f) => f.name === "k"), own = now.fields.filter((f) => f !== k);
  const plain = own.filter((f) => f.kind !== "bool"), shown = plain.slice(0, SHOWN);
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
