"""HTML of the first page of a report, for a person who decides on the release: one printed sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crowdveil.guarantees.base import Outcome, tally
from crowdveil.report.first_page import ADVERSARY, FirstPage
from crowdveil.report.markup import escape, lines


def first_page_html(first: FirstPage, manifest: Mapping[str, Any]) -> str:
    """Return the first page."""
    data = "\n    ".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in first.data)
    outcomes = "\n    ".join(
        f"<li>{outcome_of(guarantee, 'b')} <span>{escape(guarantee['statement'])}</span></li>"
        for guarantee in manifest["guarantees"]
    )
    losses = "\n    ".join(f"<li><b>{escape(x.value)}</b> <span>{escape(x.sentence)}</span></li>" for x in first.losses)
    return f"""<header id="summary">
  <p class="brand">Crowdveil · report of a release</p>
  <h1>{escape(first.title)}</h1>
{_verdicts(manifest)}  <div class="sheet">
  <div class="half"><h2>What data</h2>
    <dl class="rows">{data}
    </dl></div>
  <div class="half"><h2>What was done</h2>
    <p>{escape(first.done)}</p>
    <p><b>Adversary:</b> {escape(ADVERSARY)}</p></div>
  <div class="full"><h2>What is guaranteed</h2>
    <ul class="outcomes">{outcomes}
    </ul></div>
  <div class="full"><h2>What was lost</h2>
    <ul class="losses">{losses}
    </ul></div>
  <div class="half"><h2>Residual risk, measured</h2>
    <ul>{_items(first.risks)}
    </ul></div>
  <div class="half"><h2>What is not covered</h2>
    <ul>{_items(first.not_covered)}
    </ul></div>
{_decision(first, manifest["files"]["data"])}  </div>
  <nav aria-label="Sections"><a href="#map">Map</a> <a href="#lost">Information loss</a> <a href="#guarantees">Guarantees</a> <a href="#questions">Three questions</a> <a href="#parameters">Parameters</a> <a href="#provenance">Provenance</a></nav>
</header>
"""  # noqa: E501


def outcome_of(guarantee: Mapping[str, Any], element: str, label: str = "") -> str:
    """Return the outcome of a guarantee in an element with the class of its color."""
    outcome = guarantee["outcome"]
    color = {Outcome.HOLDS: "good", Outcome.VIOLATED: "bad"}.get(outcome, "open")
    text = outcome.upper() if outcome == Outcome.VIOLATED else outcome
    return f'<{element}{label} class="{color}">{escape(text)}</{element}>'


def _verdicts(manifest: Mapping[str, Any]) -> str:
    """Return whether all holds, what was not checked, and whether there is no guarantee."""
    guarantees = manifest["guarantees"]
    violated = [p["name"] for p in guarantees if p["outcome"] == Outcome.VIOLATED]
    sentence = f"Violated: {', '.join(violated)}" if violated else tally([p["outcome"] for p in guarantees])
    found = [f'<p class="verdict {"bad" if violated else "good"}">\n    {escape(sentence)}\n  </p>']
    found += [
        f'<p class="verdict bad">Not checked: {escape(p["name"])}, a privacy guarantee; {escape(p["checked"])}</p>'
        for p in guarantees
        if p["outcome"] == Outcome.NOT_CHECKED and p["kind"] == "privacy"
    ]
    if manifest["method"]["status"] == "heuristic":
        found.append('<p class="verdict bad">No privacy guarantee: the method is a heuristic</p>')
    return lines(f"  {verdict}" for verdict in found)


def _items(sentences: Sequence[str]) -> str:
    return "\n    ".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)


def _decision(first: FirstPage, data: Mapping[str, Any]) -> str:
    """Return the rows that the person who decides fills in."""
    rows = (
        ("Purpose", first.purpose),
        ("Recipients", first.recipient),
        ("Released by (name, signature)", ""),
        ("Date", ""),
    )
    blank = ' class="blank"'
    filled = lines(
        f"      <div><dt>{name}</dt><dd{'' if text else blank}>{escape(text)}</dd></div>" for name, text in rows
    )
    return f"""  <div class="full decision"><h2>Decision</h2>
    <dl class="rows">
{filled}    </dl>
    <p class="note">The decision is about the release whose {escape(data["name"])} has the SHA-256 <code>{escape(data["sha256"])}</code>. A report answers with numbers; it is no legal judgment.</p></div>
"""  # noqa: E501
