// The page on which a job is prepared.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Form, post, said, stopped } from "./api";
import { auditFields, type Draft, filesOf, jobForm, methodOf } from "./draft";
import { Controls, type Desk, GroupSize, Message, More } from "./fields";
import { type Chosen, Columns, DataChoice, Findings, Kind } from "./look";
import { Alert, go, Title } from "./parts";
import { blocked, leavesOut, type PreviewState, READING, usePreview, type Work } from "./preview";
import { forget, withUploads } from "./uploads";
import type { JobView } from "./views";
import { ROLES, STATUSES } from "./words";

const FIRST = ["zones", "step", "tz"];
const OWN_SHOWN = 3;
const OWN_FIRST = ["suppress", "time_partition"]; // the parameters that people need most

const whole = (share: number): string => `${Math.round(100 * share)} %`;

function Section({ n, id, title, children }: { n: number; id: string; title: string; children: ComponentChildren }) {
  return <section aria-labelledby={id}>
    <h2 id={id}><span class="n" aria-hidden="true">{n}</span> {title}</h2>{children}</section>;
}

/** Sending a job: `wanted` while it waits for a preview, `sent` as a share while it is sent. */
function useSending(form: Form, work: Work, change: (work: Work) => void, reason: string) {
  const [sent, setSent] = useState<number | null>(null), [error, setError] = useState("");
  const [wanted, setWanted] = useState(false), [asked, setAsked] = useState(false);
  const { draft } = work, control = useRef(new AbortController());
  const start = async () => {
    const takes = draft.takes!, { signal } = (control.current = new AbortController());
    const path = `/methods/${methodOf(form, draft, takes).name}/jobs`;
    setError("");
    setSent(0);
    try {
      const send = (ids: Record<string, string>) => post<JobView>(path, jobForm(form, draft, takes, ids), signal);
      const job = await withUploads(filesOf(form, draft), send, setSent, signal);
      change({ ...work, failed: null });
      go(`/jobs/${job.id}`);
    } catch (problem) {
      if (!stopped(problem)) setError(said(problem));
      setSent(null);
    }
  };
  useEffect(() => {
    if (!wanted || reason === READING) return;
    setWanted(false);
    if (reason) setAsked(true);
    else void start();
  }, [wanted, reason]);
  useEffect(() => { if (asked) document.getElementById("why")?.scrollIntoView({ block: "center" }); }, [asked]);
  const stop = () => {
    setWanted(false);
    control.current.abort();
  };
  /** Forget the request, since the user now prepares another job. */
  const reset = () => {
    setWanted(false);
    setAsked(false);
    setError("");
  };
  const want = () => { if (sent === null) setWanted(true); };
  return { sent, error, wanted, asked, want, ask: () => setAsked(true), stop, reset };
}

export function NewJob({ form, work, change }: { form: Form; work: Work; change: (work: Work) => void }) {
  const { draft, seen } = work, { takes } = draft;
  const preview = usePreview(form, work, change), reason = blocked(work, preview);
  const sending = useSending(form, work, change, reason);
  const choose = (next: Work) => {
    sending.reset();
    change(next);
  };
  const edit = (part: Partial<Draft>) => choose({ ...work, draft: { ...draft, ...part } });
  const set = (name: string, value: string | boolean) =>
    edit({ values: { ...draft.values, [name]: value }, zoneFrom: name === "tz" ? null : draft.zoneFrom });
  const attach = (name: string, file: File | null) => {
    const { [name]: old, ...rest } = draft.files;
    if (old !== draft.data) forget(old);
    edit({ files: file ? { ...rest, [name]: file } : rest });
  };
  const map = (role: string, column: string) => {
    const others = Object.entries(draft.roles).filter(([name, one]) => one !== column && name !== role);
    edit({ roles: Object.fromEntries(role ? [...others, [role, column]] : others) });
  };
  const take = (chosen: Chosen | null) => {
    const unseen = { seen: null, seenFor: "", failed: null };
    if (chosen) {
      const files = chosen.zones ? { ...draft.files, zones: chosen.zones } : draft.files;
      return choose({ draft: { ...draft, data: chosen.data ?? draft.data, files }, ...unseen });
    }
    forget(draft.data, ...Object.values(draft.files));
    // Choices and guesses for one file do not apply to the next.
    const { tz, time_format: _, drop_invalid: __, ...values } = draft.values;
    if (tz !== undefined && !draft.zoneFrom) values.tz = tz;
    choose({ draft: { ...draft, data: null, takes: null, roles: {}, files: {}, zoneFrom: null, values }, ...unseen });
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const page = event.currentTarget as HTMLFormElement;
    const bad = page.querySelector<HTMLInputElement>("input:invalid, select:invalid");
    if (!bad) return sending.want();
    bad.closest("details")?.setAttribute("open", "");
    bad.reportValidity();
  };
  /** Say why nothing is sent: a browser ignores Enter in a field while the button is disabled. */
  const answer = (event: KeyboardEvent) => {
    const field = event.target as HTMLInputElement;
    const enters = event.key === "Enter" && field.tagName === "INPUT" && field.type !== "file";
    if (!enters || !reason || reason === READING) return;
    event.preventDefault();
    sending.ask();
  };
  const desk: Desk | null = seen && takes && { form, draft, takes, seen, set, attach, map, pending: preview.pending };
  const busy = sending.sent !== null || sending.wanted;
  return <>
    <Title>Anonymize mobility data</Title>
    <p class="lead">Trips, flows or trajectories become a release in which every person is in a group of at least k.
      The guarantees are verified on the written files, and a report states what was lost.</p>
    <form class="steps" onSubmit={submit} onKeyDown={answer} noValidate>
      <Section n={1} id="s-data" title="Data">
        <DataChoice data={draft.data} endings={form.files.data} choose={take} />
        {!draft.data && draft.files.zones
          && <p class="hint">{draft.files.zones.name} is kept as the file of zones. Now choose the data.</p>}
        <p role="status" class="status">{progress(preview)}</p>
        {preview.error && <Alert>{preview.error}</Alert>}
        {desk && <>
          <Kind takes={desk.takes} guess={desk.seen.looks_like} choose={(one) => edit({ takes: one, roles: {} })} />
          <Columns desk={desk} />
          {!preview.error && <Findings desk={desk} />}
        </>}
      </Section>
      {!draft.data && <Introduction />}
      {desk && <>
        <Reading desk={desk} />
        <MethodChoice desk={desk} choose={(name) => edit({ method: { ...draft.method, [desk.takes]: name } })} />
        <Run desk={desk} work={work} reason={sending.wanted ? "" : reason} asked={sending.asked}>
          {sending.error && <Alert>{sending.error}</Alert>}
          <p class="go">
            <button type="submit" class="main" aria-describedby="why"
              disabled={busy || (reason !== "" && reason !== READING)}>
              {sending.sent === null ? "Anonymize" : "Sending…"}</button>
            {busy && <button type="button" onClick={sending.stop}>Stop</button>}
            <span role="status">{sending.sent !== null ? `${whole(sending.sent)} sent`
              : sending.wanted && "The job starts when the file has been read."}</span></p>
        </Run>
      </>}
    </form>
  </>;
}

function progress({ share }: PreviewState): string {
  if (share === null) return "";
  return share < 1 ? `Sending the file for a preview: ${whole(share)}` : "Reading the file…";
}

function Introduction() {
  return <dl class="about">
    <div><dt>Preview</dt>
      <dd>The server reads the file, and shows what each column means and what is wrong with it.</dd></div>
    <div><dt>Choose</dt>
      <dd>A method, and how large a group must be. Every parameter says what it does.</dd></div>
    <div><dt>Verify</dt>
      <dd>Guarantees are verified on the written files, and attacks are tried, before you get them. A report shows what
        was lost, and what could not be checked.</dd></div>
  </dl>;
}

function Reading({ desk }: { desk: Desk }) {
  const fields = desk.form.reading[desk.takes]
    .filter(({ name }) => !ROLES[desk.takes].includes(name) && name !== "drop_invalid");
  const first = FIRST.flatMap((name) => fields.find((field) => field.name === name) ?? []);
  const rest = fields.filter((field) => !first.includes(field));
  const about = desk.takes === "flows" ? "date format, trees over the zones, earlier areas…" : "date format, ids…";
  return <Section n={2} id="s-read" title="Zones and times">
    <Controls desk={desk} fields={first} />
    <More title={`More on how it is read: ${about}`} desk={desk} fields={rest} />
  </Section>;
}

function MethodChoice({ desk, choose }: { desk: Desk; choose: (name: string) => void }) {
  const { form, draft, takes } = desk, now = methodOf(form, draft, takes);
  const k = now.fields.find(({ name }) => name === "k"), own = now.fields.filter((field) => field !== k);
  const isFirst = ({ name }: { name: string }) => OWN_FIRST.includes(name);
  const rest = own.filter((field) => field.kind !== "bool" && !isFirst(field));
  const shown = [...own.filter(isFirst), ...rest].slice(0, OWN_SHOWN);
  return <Section n={3} id="s-method" title="Method">
    <div class="field"><label for="method">Method</label>
      <select id="method" value={now.name} aria-describedby="method-hint"
        onChange={(event) => choose(event.currentTarget.value)}>
        {Object.entries(STATUSES).map(([status, words]) => <optgroup key={status} label={words.split(":")[0]}>
          {form.methods.filter((method) => method.takes === takes && method.status === status)
            .map(({ name }) => <option key={name} value={name}>{name}</option>)}</optgroup>)}
      </select>
      <p class="summary" id="method-hint">{now.summary}{" "}
        <span class={`mark ${now.status}`}>{STATUSES[now.status]}</span></p>
    </div>
    {k && <GroupSize desk={desk} field={k} presets={form.presets} />}
    <Controls desk={desk} fields={shown} />
    <More key={now.name} title={`More parameters of ${now.name}`} desk={desk}
      fields={own.filter((field) => !shown.includes(field))} />
  </Section>;
}

function Run({ desk, work, reason, asked, children }: {
  desk: Desk; work: Work; reason: string; asked: boolean; children: ComponentChildren;
}) {
  const { form, draft, seen, takes } = desk, [source, ...more] = form.sources;
  const usable = !seen.error || (seen.problems.length > 0 && leavesOut(draft)); // first what is wrong with the file
  const unfit = usable ? seen.unfit : null, loud = asked && reason !== "";
  return <Section n={4} id="s-run" title="Run">
    {takes === "flows" && source && <>
      <p class="hint">Before publication, the release is audited against the earlier releases in the ledger of{" "}
        {more.length ? "its source" : <b>{source}</b>}.</p>
      <Controls desk={desk} fields={auditFields(form)} />
    </>}
    <More title="Advanced: random seed, file format, attacks" desk={desk} fields={form.run} />
    {work.failed && <><p class="hint">The last job ended with this error:</p>
      <Message error={work.failed} desk={desk} calm /></>}
    {unfit && <Message error={unfit} desk={desk} />}
    {children}
    <p class={loud ? "alert" : "hint why"} role={loud ? "alert" : undefined} id="why">
      {reason === READING ? "The file is being read again. A job that is started now waits for it."
        : reason && <><b>Not possible yet.</b> {unfit ? "See the message above." : reason}</>}</p>
  </Section>;
}
