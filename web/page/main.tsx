// The page of the service: who asks, which page is shown, and what all pages share.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Form, json, remember, said, type Session, token, whenRefused, ServiceError } from "./api";
import { again } from "./draft";
import { Compare } from "./compare";
import { History } from "./history";
import { JobPage } from "./job";
import { NewJob } from "./new";
import { Alert, Title } from "./parts";
import { newWork, type Work } from "./preview";
import { go, route } from "./router";
import { ReviewPage, Reviews } from "./review";
import { SignIn } from "./signin";
import { forgetAll } from "./uploads";
import { learnTitles } from "./words";

interface Inside { form: Form; session: Session }
const may = (inside: Inside, scope: string): boolean => inside.session.scopes.includes(scope);

function App() {
  const [at, setAt] = useState(route()), [inside, setInside] = useState<Inside | null>(null), [work, setWork] = useState<Work>(newWork());
  const [access, setAccess] = useState<"asking" | "closed" | "open">("asking"), [error, setError] = useState("");
  const enter = async () => {
    const [session, form] = await Promise.all([json<Session>("/session"), json<Form>("/form")]);
    learnTitles(form);
    setInside({ session, form });
    setAccess("open");
  };
  const leave = () => {
    forgetAll(); // while the token is still known
    remember(null);
    setInside(null);
    setWork(newWork()); // nothing of the data stays for the next user
    setAccess("closed");
  };
  useEffect(() => {
    const moved = () => setAt(route());
    window.addEventListener("hashchange", moved);
    // A file that misses its place must not take the page away.
    for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
    window.addEventListener("pagehide", forgetAll);
    whenRefused(leave);
    json<{ token_needed: boolean }>("/auth")
      .then(({ token_needed }) => (token_needed && token() === null ? setAccess("closed") : enter()))
      .catch((problem) => (problem instanceof ServiceError && problem.status === 401 ? undefined : setError(said(problem))));
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  return <>
    <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")!.focus(); }}>To the content</a>
    <header class="top"><div>
      <a class="name" href="#/new"><img src="/page/icon.svg" alt="" width="28" height="28" />Crowdveil</a>
      {inside && <nav aria-label="Pages">
        {may(inside, "submit") && <a href="#/new" aria-current={at.length === 0 || at[0] === "new" ? "page" : undefined}>New</a>}
        {(may(inside, "submit") || may(inside, "read")) && <a href="#/jobs" aria-current={at[0] === "jobs" ? "page" : undefined}>Jobs</a>}
        {may(inside, "review") && <a href="#/reviews" aria-current={at[0] === "reviews" ? "page" : undefined}>Reviews</a>}
      </nav>}
      {inside && token() !== null && <span class="who"><span>{inside.session.name}</span><button type="button" class="quiet" onClick={leave}>Sign out</button></span>}
    </div></header>
    <main id="main" tabIndex={-1}>
      {error && <Alert>{error}</Alert>}
      {access === "closed" && <SignIn enter={enter} />}
      {inside && <Page at={at} inside={inside} work={work} setWork={setWork} />}
    </main>
    <footer><p>{inside ? `Uploads are removed ${hours(inside.session.upload_hours)} after their last use and when you leave this page, results after ${hours(inside.session.keep_hours)}.` : "Uploads and results are removed after some hours."} This page sends requests to this server only.</p></footer>
  </>;
}

function Page({ at, inside, work, setWork }: { at: string[]; inside: Inside; work: Work; setWork: (work: Work) => void }) {
  const [room = may(inside, "submit") || !may(inside, "review") ? "new" : "reviews", one, other] = at;
  if (room === "new") return <NewJob key="new" form={inside.form} work={work} change={setWork} />;
  if (room === "jobs" && one) return <JobPage key={one} id={one} reuse={(job) => { setWork({ ...work, draft: again(inside.form, work.draft, job), failed: job.state === "failed" ? job.error : null }); go("/new"); }} />;
  if (room === "jobs") return <History key="jobs" />;
  if (room === "reviews" && one) return <ReviewPage key={one} id={one} />;
  if (room === "reviews") return <Reviews key="reviews" />;
  if (room === "compare" && one && other) return <Compare key={`${one}-${other}`} ids={[one, other]} />;
  return <><Title>Nothing here</Title><p>There is no page at this address. <a href="#/new">To the first page</a></p></>;
}

const hours = (n: number): string => (n === 1 ? "an hour" : `${n.toLocaleString("en", { maximumFractionDigits: 1 })} hours`);

render(<App />, document.getElementById("app")!);
