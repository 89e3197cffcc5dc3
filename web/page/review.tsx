// Results of others that await review: their reports, and the decision.
import { useEffect, useState } from "preact/hooks";
import { decide, json, type Reviewed, said } from "./api";
import { Action, Alert, Badge, Pairs, ReportFrame, Title } from "./parts";
import { moment, REVIEW_WORDS, size } from "./words";

export function Reviews() {
  const [waiting, setWaiting] = useState<Reviewed[] | null>(null), [error, setError] = useState("");
  useEffect(() => { json<{ reviews: Reviewed[] }>("/reviews").then(({ reviews }) => setWaiting(reviews), (problem) => setError(said(problem))); }, []);
  return <>
    <Title>Reviews</Title>
    {error && <Alert>{error}</Alert>}
    {waiting?.length === 0 && <p>No result awaits review.</p>}
    {waiting && waiting.length > 0 && <ul class="jobs">{waiting.map((one) => <li key={one.id}>
      <span class="pick" />
      <div class="what"><a href={`#/reviews/${one.id}`}>{one.name}</a><small>{one.kind} · by {one.submitter}</small></div>
      <Badge state={one.review.state}>{REVIEW_WORDS[one.review.state]}</Badge>
      <span class="when">{moment(one.ended_at)}</span>
    </li>)}</ul>}
  </>;
}

export function ReviewPage({ id }: { id: string }) {
  const [one, setOne] = useState<Reviewed | null>(null), [error, setError] = useState(""), [comment, setComment] = useState("");
  useEffect(() => { json<Reviewed>(`/reviews/${id}`).then(setOne, (problem) => setError(said(problem))); }, [id]);
  if (error) return <><Title>No such result</Title><Alert>{error}</Alert><p><a href="#/reviews">To the reviews</a></p></>;
  if (!one) return <p role="status">Asking for the result…</p>;
  const choose = (decision: "approve" | "reject") => async () => {
    const asked = decision === "approve" ? "Approve this result? The submitter can then download the data." : "Reject this result? Its data cannot be downloaded then.";
    if (confirm(`${asked} A decision is final.`)) setOne(await decide(id, decision, comment));
  };
  return <>
    <Title above={<>{one.kind} · by {one.submitter} · {moment(one.ended_at)}</>}>{one.name}</Title>
    <p class="state" role="status"><Badge state={one.review.state}>{REVIEW_WORDS[one.review.state]}</Badge>
      {one.review.by !== null && <span>by {one.review.by}{one.review.comment ? `: ${one.review.comment}` : ""}</span>}</p>
    {one.review.state === "awaiting" && <div class="decision">
      <label for="comment">Comment for the submitter</label>
      <textarea id="comment" maxLength={2000} rows={3} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
      <div class="actions"><Action act={choose("approve")} kind="main">Approve</Action><Action act={choose("reject")} kind="danger">Reject</Action></div>
      <p class="hint">A decision is final. After it is approved, the submitter can download the data.</p>
    </div>}
    {one.kind === "anonymize" ? <ReportFrame path={`/reviews/${id}/report`} title="Report of the release" />
      : <pre class="lines" tabIndex={0} aria-label="What the job says">{[...(one.summary?.notes ?? []), ...(one.summary?.lines ?? [])].join("\n")}</pre>}
    {one.result && <Pairs caption="The result" rows={[["File", one.result.name], ["Size", size(one.result.bytes)], ["SHA-256", <code>{one.result.sha256}</code>]]} />}
  </>;
}
