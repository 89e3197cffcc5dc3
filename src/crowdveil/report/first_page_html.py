"""HTML of the first page of a report, for a person who decides on the release: one printed sheet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from crowdveil.guarantees.base import Outcome, tally
from crowdveil.io.manifest_reader import manifest_text
from crowdveil.io.written_release import WrittenRelease
from crowdveil.report import first_page
from crowdveil.report.attack_table import AttackRow
from crowdveil.report.cost_summary import over_budget
from crowdveil.report.loss_summary import losses
from crowdveil.report.markup import escape, lines
from crowdveil.report.page_model import PrivateContext


def first_page_html(
    title: str,
    written: WrittenRelease,
    manifest: Mapping[str, Any],
    attacks: list[AttackRow],
    private: PrivateContext | None,
) -> str:
    """Return the first page."""
    rows = first_page.data_rows(written, manifest, private)
    data = "\n    ".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in rows)
    outcomes = "\n    ".join(
        f"<li>{outcome_of(guarantee, 'b')} <span>{escape(guarantee['statement'])}</span></li>"
        for guarantee in manifest["guarantees"]
    )
    lost = "\n    ".join(
        f"<li><b>{escape(loss.value)}</b> <span>{escape(loss.sentence)}</span></li>"
        for loss in losses(written, manifest)
    )
    return f"""<header id="summary">
  <p class="brand">Crowdveil · report of a release</p>
  <h1>{escape(title)}</h1>
{_verdicts(manifest)}  <div class="sheet">
  <div class="half"><h2>What data</h2>
    <dl class="rows">{data}
    </dl></div>
  <div class="half"><h2>What was done</h2>
    <p>{escape(first_page.what_was_done(written, manifest))}</p>
    <p><b>Adversary:</b> {escape(first_page.ADVERSARY)}</p></div>
  <div class="full"><h2>What is guaranteed</h2>
    <ul class="outcomes">{outcomes}
    </ul></div>
  <div class="full"><h2>What was lost</h2>
    <ul class="losses">{lost}
    </ul></div>
  <div class="half"><h2>Residual risk, measured</h2>
    <ul>{_items(first_page.risks(manifest, attacks))}
    </ul></div>
  <div class="half"><h2>What is not covered</h2>
    <ul>{_items(first_page.not_covered(manifest))}
    </ul></div>
{_decision(manifest)}  </div>
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
    sentence = (
        f"Violated: {', '.join(violated)}"
        if violated
        else tally([(p["outcome"], p["with_original"]) for p in guarantees])
    )
    found = [f'<p class="verdict {"bad" if violated else "good"}">\n    {escape(sentence)}\n  </p>']
    found += [
        f'<p class="verdict bad">Not checked: {escape(p["name"])}, a privacy guarantee; {escape(p["checked"])}</p>'
        for p in guarantees
        if p["outcome"] == Outcome.NOT_CHECKED and p["kind"] == "privacy"
    ]
    found += [f'<p class="verdict bad">{escape(line[0].upper() + line[1:])}</p>' for line in over_budget(manifest)]
    if manifest["method"]["status"] == "heuristic":
        found.append('<p class="verdict bad">No privacy guarantee: the method is a heuristic</p>')
    return lines(f"  {verdict}" for verdict in found)


def _items(sentences: Sequence[str]) -> str:
    return "\n    ".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)


def _decision(manifest: Mapping[str, Any]) -> str:
    """Return the rows that the person who decides fills in."""
    given = manifest.get("decision") or {}
    rows = (
        ("Purpose", given.get("purpose") or ""),
        ("Recipients", given.get("recipient") or ""),
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
    <p class="note">The decision is about the release whose manifest.json has the SHA-256 <code>{hashlib.sha256(manifest_text(manifest).encode()).hexdigest()}</code>. A report answers with numbers; it is no legal judgment.</p></div>
"""  # noqa: E501
