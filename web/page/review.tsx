// Results of others that await review: their reports, and the decision.
import { useState } from "preact/hooks";
import { json, type Reviewed } from "./api";
import { Row } from "./history";
import { Action, Alert, Badge, Missing, Pairs, ReportFrame, Title, useJson } from "./parts";
import { moment, size } from "./words";

const QUESTIONS = {
  approve: "Approve this result? The submitter can then download the data. A decision is final.",
  reject: "Reject this result? Its data cannot be downloaded then. A decision is final.",
};

export function Reviews() {
  const { value, error } = useJson<{ reviews: Reviewed[] }>("/reviews");
  return <>
    <Title>Reviews</Title>
    {error && <Alert>{error}</Alert>}
    {value?.reviews.length === 0 && <p>No result awaits review.</p>}
    {value && value.reviews.length > 0 && <ul class="jobs">{value.reviews.map((one) =>
      <Row key={one.id} link={`#/reviews/${one.id}`} name={one.name} about={`${one.kind} · by ${one.submitter}`}
        state={one.review.state} when={moment(one.ended_at)} />)}</ul>}
  </>;
}

export function ReviewPage({ id }: { id: string }) {
  const { value: one, error, set } = useJson<Reviewed>(`/reviews/${id}`), [comment, setComment] = useState("");
  if (error) return <Missing title="No such result" error={error} link="#/reviews">To the reviews</Missing>;
  if (!one) return <p role="status">Asking for the result…</p>;
  const decide = (decision: "approve" | "reject") => async () => {
    const body = JSON.stringify({ decision, comment });
    if (confirm(QUESTIONS[decision])) set(await json<Reviewed>(`/reviews/${id}`, { method: "POST", body }));
  };
  const { review, result, summary } = one;
  return <>
    <Title above={<>{one.kind} · by {one.submitter} · {moment(one.ended_at)}</>}>{one.name}</Title>
    <p class="state" role="status"><Badge state={review.state} />
      {review.by !== null && <span>by {review.by}{review.comment ? `: ${review.comment}` : ""}</span>}</p>
    {review.state === "awaiting" && <div class="decision">
      <label for="comment">Comment for the submitter</label>
      <textarea id="comment" maxLength={2000} rows={3} value={comment}
        onInput={(event) => setComment(event.currentTarget.value)} />
      <div class="actions"><Action act={decide("approve")} kind="main">Approve</Action>
        <Action act={decide("reject")} kind="danger">Reject</Action></div>
      <p class="hint">A decision is final. After it is approved, the submitter can download the data.</p>
    </div>}
    {one.kind === "anonymize" ? <ReportFrame path={`/reviews/${id}/report`} />
      : <pre class="lines" tabIndex={0} aria-label="Output of the job">
        {[...(summary?.notes ?? []), ...(summary?.lines ?? [])].join("\n")}</pre>}
    {result && <Pairs caption="The result" rows={[
      ["File", result.name], ["Size", size(result.bytes)], ["SHA-256", <code>{result.sha256}</code>]]} />}
  </>;
}
