// The page of the service: signing in, navigation, and the frame around all pages.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Form, forgetToken, json, remember, said, type Session, ServiceError, token, whenRefused } from "./api";
import { Compare } from "./compare";
import { again } from "./draft";
import { History } from "./history";
import { JobPage } from "./job";
import { NewJob } from "./new";
import { Alert, go, route, Title } from "./parts";
import { newWork, type Work } from "./preview";
import { ReviewPage, Reviews } from "./review";
import { forgetAll } from "./uploads";
import type { JobView } from "./views";
import { learnTitles } from "./words";

interface Inside { form: Form; session: Session }

function App() {
  const [at, setAt] = useState(route()), [work, setWork] = useState<Work>(newWork());
  const [inside, setInside] = useState<Inside | null>(null), [closed, setClosed] = useState(false);
  const [error, setError] = useState("");
  const enter = async () => {
    const [session, form] = await Promise.all([json<Session>("/session"), json<Form>("/form")]);
    learnTitles(form);
    setInside({ session, form });
    setClosed(false);
  };
  const leave = () => {
    forgetAll(); // while the token is still known
    forgetToken();
    setInside(null);
    setWork(newWork()); // nothing of the data stays for the next user
    setClosed(true);
  };
  const begin = async () => {
    const { token_needed } = await json<{ token_needed: boolean }>("/auth");
    if (token_needed && token() === null) setClosed(true);
    else await enter();
  };
  useEffect(() => {
    window.addEventListener("hashchange", () => setAt(route()));
    // A file that is dropped in the wrong place must not replace the page.
    for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
    window.addEventListener("pagehide", forgetAll);
    whenRefused(leave);
    begin().catch((problem) => {
      if (!(problem instanceof ServiceError && problem.status === 401)) setError(said(problem));
    });
  }, []);
  const skip = (event: Event) => {
    event.preventDefault();
    document.getElementById("main")!.focus();
  };
  return <>
    <a class="skip" href="#main" onClick={skip}>To the content</a>
    <header class="top"><div>
      <a class="name" href="#/new"><img src="/page/icon.svg" alt="" width="28" height="28" />Crowdveil</a>
      {inside && <Navigation scopes={inside.session.scopes} room={at[0] ?? "new"} />}
      {inside && token() !== null && <span class="who"><span>{inside.session.name}</span>
        <button type="button" class="quiet" onClick={leave}>Sign out</button></span>}
    </div></header>
    <main id="main" tabIndex={-1}>
      {error && <Alert>{error}</Alert>}
      {closed && <SignIn enter={enter} />}
      {inside && <Page at={at} inside={inside} work={work} setWork={setWork} />}
    </main>
    <footer><p>{inside ? kept(inside.session) : "Uploads and results are removed after some hours."} This page sends
      requests to this server only.</p></footer>
  </>;
}

function Navigation({ scopes, room }: { scopes: string[]; room: string }) {
  const pages: [name: string, title: string, allowed: string[]][] = [
    ["new", "New", ["submit"]], ["jobs", "Jobs", ["submit", "read"]], ["reviews", "Reviews", ["review"]]];
  return <nav aria-label="Pages">{pages.filter(([, , allowed]) => allowed.some((scope) => scopes.includes(scope)))
    .map(([name, title]) =>
      <a key={name} href={`#/${name}`} aria-current={room === name ? "page" : undefined}>{title}</a>)}
  </nav>;
}

interface PageProps { at: string[]; inside: Inside; work: Work; setWork: (work: Work) => void }

function Page({ at, inside: { form, session }, work, setWork }: PageProps) {
  const onlyReviews = session.scopes.includes("review") && !session.scopes.includes("submit");
  const [room = onlyReviews ? "reviews" : "new", one, other] = at;
  const reuse = (job: JobView) => {
    setWork({ ...work, draft: again(form, work.draft, job), failed: job.state === "failed" ? job.error : null });
    go("/new");
  };
  if (room === "new") return <NewJob key="new" form={form} work={work} change={setWork} />;
  if (room === "jobs") return one ? <JobPage key={one} id={one} reuse={reuse} /> : <History key="jobs" />;
  if (room === "reviews") return one ? <ReviewPage key={one} id={one} /> : <Reviews key="reviews" />;
  if (room === "compare" && one && other) return <Compare key={`${one}-${other}`} ids={[one, other]} />;
  return <><Title>Nothing here</Title>
    <p>There is no page at this address. <a href="#/new">To the first page</a></p></>;
}

function SignIn({ enter }: { enter: () => Promise<void> }) {
  const [given, setGiven] = useState(""), [wait, setWait] = useState(false), [error, setError] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!given.trim()) return setError("Expected a token. Paste the one that you were given.");
    setWait(true);
    setError("");
    remember(given.trim());
    try { await enter(); } catch (problem) {
      forgetToken();
      setError(said(problem));
      setWait(false);
    }
  };
  return <div class="signin">
    <Title>Sign in</Title>
    <p>The operator of this server gives tokens. Yours is kept in this tab alone, and forgotten when you close it.</p>
    <form onSubmit={submit}>
      <div class="field"><label for="token">Token</label>
        <input id="token" type="password" autocomplete="off" spellcheck={false} value={given}
          aria-describedby="token-hint" onInput={(event) => setGiven(event.currentTarget.value)} />
        <p class="hint" id="token-hint">It begins with cv_</p></div>
      {error && <Alert>{error}</Alert>}
      <p class="go"><button type="submit" class="main" disabled={wait}>{wait ? "Asking…" : "Sign in"}</button></p>
    </form>
  </div>;
}

const hours = (n: number): string =>
  n === 1 ? "an hour" : `${n.toLocaleString("en", { maximumFractionDigits: 1 })} hours`;
const kept = ({ upload_hours, keep_hours }: Session): string =>
  `Uploads are removed ${hours(upload_hours)} after their last use and when you leave this page, `
  + `results after ${hours(keep_hours)}.`;

render(<App />, document.getElementById("app")!);
