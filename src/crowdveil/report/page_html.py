"""HTML of a report below its first page: map, information loss, guarantees, questions, parameters and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdveil.report.attack_table import AttackRow
from crowdveil.report.first_page_html import outcome_of
from crowdveil.report.markup import data_table, escape, figure, lines, pairs, table_of
from crowdveil.report.page_model import PageModel, PrivateContext
from crowdveil.report.questions import Answer

_CONTROLS = """      <label>Color of areas <select id="shade"></select></label>
      <label class="slider">Time <input type="range" id="step" min="0" max="0" value="0" step="1"><output id="step-out" for="step"></output></label>
      <label class="slider" id="least-label">Show flows of at least <input type="range" id="least" min="0" max="100" value="0" step="1"><output id="least-out" for="least"></output></label>
    </form>
    <div class="stage"><canvas id="canvas" tabindex="0" role="application" aria-roledescription="map" aria-label="Map. Arrow keys move it, plus and minus zoom, 0 shows all of it. The tables below hold the same information."></canvas>
      <div class="buttons"><button type="button" id="zoom-in" aria-label="Zoom in">+</button><button type="button" id="zoom-out" aria-label="Zoom out">−</button><button type="button" id="zoom-all" aria-label="Show all of the map">⤢</button></div>
    </div>
    <p id="status" role="status"></p>
    <ul class="legend" id="legend"></ul>
    <div id="zone" hidden>
      <h3 id="zone-title">Profile of a zone</h3>
      <label>Zone <select id="zone-choice"></select></label>
      <div id="profile"></div>
    </div>
  </div>
  <noscript><p>The interactive map needs a script; the figures below do not.</p></noscript>
"""  # noqa: E501


def page_html(
    page: PageModel,
    manifest: Mapping[str, Any],
    attacks: list[AttackRow],
    questions: list[Answer],
    private: PrivateContext | None,
) -> str:
    """Return all sections below the first page."""
    return (
        _map(page, manifest, private) + _loss(page, manifest, private) + _guarantees(manifest)
        + _questions(manifest, attacks, questions) + _parameters(manifest) + _provenance(manifest, private)
    )  # fmt: skip


def _section(name: str, title: str, body: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-title">\n  <h2 id="{name}-title">{title}</h2>\n{body}</section>\n'


def _map(page: PageModel, manifest: Mapping[str, Any], private: PrivateContext | None) -> str:
    if page.data["layers"]:
        layer = '      <label>Data <select id="layer"></select></label>\n' if private else ""
        body = f'  <div id="live" hidden>\n    <form id="controls" aria-label="Map controls">\n{layer}{_CONTROLS}'
    else:
        cost = manifest["cost"]
        nothing = cost.get("published_flows", cost.get("published_trajectories")) == 0
        reason = "nothing was published." if nothing else "the zones have no positions."
        body = f"  <p>There is nothing to draw on a map: {reason}</p>\n"
    body += lines(f'  <p class="note">{escape(note)}</p>' for note in page.omissions)
    return _section("map", "Flows on the map" if page.data["kind"] == "flows" else "Trajectories on the map", body)


def _loss(page: PageModel, manifest: Mapping[str, Any], private: PrivateContext | None) -> str:
    key_figures = lines(
        f"  <div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in page.key_figures
    )
    body = f'  <dl class="tiles">\n{key_figures}  </dl>\n'
    body += f'  <div class="figures">{"".join(map(figure, page.figures))}</div>\n'
    body += lines(f"  {data_table(table)}" for table in page.tables)
    caption = "Information loss (from the manifest), in whole percents: an exact suppressed total may reveal a person"
    body += f"  {pairs(caption, manifest['cost'].items())}\n"
    if private:
        body += _exact_numbers(private)
    return _section("lost", "Published data and information loss", body)


def _exact_numbers(private: PrivateContext) -> str:
    """Return the confidential numbers."""
    body = "  <h3>Exact numbers (confidential)</h3>\n"
    if private.cost:
        body += f"  <pre>{escape(chr(10).join(private.cost))}</pre>\n"
    if not private.measures:
        return body
    rows = (
        f'<tr><th scope="row">{escape(label)}</th><td class="n">{escape(mean)}</td><td class="n">{escape(pooled)}</td></tr>'
        for label, mean, pooled in private.measures
    )
    columns = (("measure", False), ("mean of matrices", True), ("pooled", True))
    return f"{body}  {table_of('Measures', 'Measures of information loss', columns, rows)}\n"


def _guarantees(manifest: Mapping[str, Any]) -> str:
    rows = (
        f'<tr><th scope="row">{escape(p["name"])}<br><small>{escape(p["kind"])}</small></th>'
        + outcome_of(p, "td", ' data-label="outcome"')
        + f'<td data-label="statement">{escape(p["statement"])}</td><td data-label="verification">{escape(p["checked"])}'
        + (" With the original." if p["with_original"] else " From the files alone.")
        + "</td></tr>"
        for p in manifest["guarantees"]
    )
    columns = [(name, False) for name in ("guarantee", "outcome", "statement", "verification")]
    table = table_of("Guarantees", "Guarantees, verified on the published files", columns, rows, "broad stacked")
    unit, status = escape(manifest["k_unit"]), escape(manifest["method"]["status"])
    body = f"  <p>k counts {unit}. The privacy guarantee of the method is {status}.</p>\n  {table}\n"
    return _section(
        "guarantees",
        "Guarantees and their verification",
        body + "  <p>Verify again: <code>crowdveil verify FOLDER</code></p>\n",
    )


def _questions(manifest: Mapping[str, Any], attacks: list[AttackRow], questions: list[Answer]) -> str:
    articles = lines(
        f'  <article><h3>{escape(answer.name)}</h3><p class="asked">{escape(answer.question)}</p>'
        f"{''.join(f'<p>{escape(line)}</p>' for line in answer.lines)}</article>"
        for answer in questions
    )
    body = f'  <div class="questions">\n{articles}  </div>\n'
    if attacks:
        body += f"  {_attacks(attacks)}\n" + (
            '  <p class="note">By chance: success of a guess without that knowledge. –: not measured, or there is nothing to '
            "guess.</p>\n"
        )
    measured = manifest["method"].get("facts", {}).get("measured")
    if measured:
        body += f"  {pairs('Measured risk (from the manifest)', measured.items())}\n"
    body += (
        '  <p class="note">The questions are those of opinion 05/2014 of the Article 29 Working Party. The answers are '
        "numbers, not a legal judgment.</p>\n"
    )
    return _section("questions", "Three questions of the European regulators", body)


def _attacks(attacks: list[AttackRow]) -> str:
    rows = (
        f'<tr><th scope="row">{escape(row.title)}<br><small>{escape(row.name)}</small></th>'
        f'<td data-label="the adversary knows">{escape(row.knows)}</td>'
        f'<td class="n" data-label="by chance">{escape(row.chance)}</td>'
        f'<td class="n" data-label="in the original">{escape(row.before)}</td>'
        f'<td class="n" data-label="in the release">{escape(row.after)}</td>'
        f'<td data-label="reading">{escape(row.reading)}</td></tr>'
        for row in attacks
    )
    columns = (
        ("attack", False), ("the adversary knows", False), ("by chance", True), ("in the original", True),
        ("in the release", True), ("reading", False),
    )  # fmt: skip
    caption = "Attacks on the original and on the release: success in whole percents"
    return table_of("Attacks", caption, columns, rows, "broad stacked")


def _parameters(manifest: Mapping[str, Any]) -> str:
    method = manifest["method"]
    facts = {name: value for name, value in method.get("facts", {}).items() if not isinstance(value, dict)}
    body = f"  {pairs('Parameters of the method', method['parameters'].items())}\n"
    if facts:
        body += f"  {pairs('Diagnostics of the method', facts.items())}\n"
    return _section("parameters", "Parameters", body)


def _provenance(manifest: Mapping[str, Any], private: PrivateContext | None) -> str:
    given = manifest["input"]
    body = ""
    if given["options"]:
        body += f"  {pairs('Input options', given['options'].items())}\n"
    if given["dropped"]:
        body += f"  {pairs('Dropped rows', given['dropped'].items())}\n"
    if given["notes"]:
        body += f"  <ul>{''.join(f'<li>{escape(note)}</li>' for note in given['notes'])}</ul>\n"
    files = (
        f'<tr><th scope="row">{escape(role)}</th><td>{escape(file["name"])}</td>'
        f"<td><code>{escape(file['sha256'])}</code></td></tr>"
        for role, file in manifest["files"].items()
    )
    columns = [(name, False) for name in ("role", "name", "SHA-256")]
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in manifest["packages"].items())
    seed = manifest["method"].get("seed_given", False)
    random = "a seed was given, which is secret" if seed else "random choices come from fresh entropy"
    source = "" if private else "This page is made from the published files alone. "
    body += (
        f"  {table_of('Files', 'Files of the release', columns, files)}\n"
        f"  <p>Crowdveil {escape(manifest['crowdveil'])}, Python {escape(manifest['python'])}, {versions}; {random}. "
        f"{source}No original id was published.</p>\n"
    )
    return _section("provenance", "Provenance and hashes", body)
