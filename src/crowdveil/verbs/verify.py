"""Verify a release or a heat map from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.guarantees import Finding, Guarantee
from crowdveil.guarantees.base import FROM_FILES, tally
from crowdveil.reading import EitherReading
from crowdveil.run import releases
from crowdveil.run.result import Result, Verification
from crowdveil.verbs.base import FLOWS, TABLES, InputFile, Outcome, Output, Task, Verb, with_examples
from crowdveil.verbs.opened import folder_of

Findings = list[tuple[Guarantee, Finding]]


def verify(folder: str | Path | Result, original: Any = None, *, pairing: Any = None, **options: Any) -> Verification:
    """Check a release or a heat map from its files; the result has `.ok`, and a table with a row for each guarantee.

    `folder` is the folder of a release or of a heat map, the GeoJSON of a heat map, or a result of `anonymize`.
    `original` is the data behind it: `Flows`, `Trajectories`, or a path, a table or a data frame, which is read with the options
    in the manifest and in `options`. `pairing`, the file that was kept with the release, has the original of each
    published trajectory; without it, their people are not counted. Files, such as zones, must be named again in `options`.

    >>> crowdveil.verify("out", "trips.parquet", zones="zones.geojson").ok  # doctest: +SKIP
    """
    with folder_of(folder) as opened:
        return Verification(tuple(releases.verify(Path(opened), original, options, pairing)))


def _as_json(folder: str, counts: str, findings: Findings) -> dict[str, Any]:
    """Return all findings of a release."""
    rows = [
        {
            "name": p.name, "kind": p.kind, "statement": p.statement(), "outcome": finding.outcome.value,
            "counts": finding.counts, "checked": finding.detail, "with_original": finding.with_original,
        }
        for p, finding in findings
    ]  # fmt: skip
    return {"folder": folder, "k_unit": counts, "findings": rows}


def _run(task: Task) -> Outcome:
    original, pairing = task.files.get("original"), task.files.get("pairing")
    folder = task.files["folder"]
    checked, counts = releases.verified(Path(folder), original, task.of(EitherReading), pairing)
    hashes = "a GeoJSON alone has no hash to check" if Path(folder).is_file() else "files are as they were written"
    lines = [*_lines(checked, original is None), f"k counts {counts}; {hashes}."]
    violated = any(finding.violated for _, finding in checked)
    return Outcome(task.notes, lines, lambda: _as_json(folder, counts, checked), int(violated))


def _lines(checked: Findings, from_files: bool) -> list[str]:
    """Return the outcome of each guarantee, and the number of each outcome."""
    lines = []
    for guarantee, finding in checked:
        verdict = "VIOLATED" if finding.violated else finding.outcome.value
        lines += [f"{verdict:<13}{guarantee.name}: {guarantee.statement()}", f"{'':13}{finding.detail}"]
    if not any(p.kind == "privacy" for p, _ in checked):
        lines.append(f"{'':13}the method is a heuristic and gives no guarantee of anonymity.")
    counted = tally([(f.outcome, f.with_original) for _, f in checked], FROM_FILES if from_files else "not checked")
    return [*lines, f"{counted}."]


HELP = """Check a release or a heat map from its files alone, or with the original data too.

Each guarantee holds, is violated, or is not checked: files alone do not show everything, and noise can never be checked. The
original is read with the options of the release; only files, such as zones, must be named again.

Exit code 0 if no guarantee is violated (the last lines count unchecked ones), 1 if one is violated or a file was changed, 2 if
nothing can be checked."""
VERB = Verb(
    verb="verify",
    summary="Check a release from its files alone.",
    run=_run,
    options=lambda name: (EitherReading,),
    files=lambda name: (
        InputFile("folder", (), "FOLDER"),
        InputFile("original", FLOWS, help="The trips, flows or trajectories behind the release.", required=False),
        InputFile(
            "pairing",
            TABLES,
            help="Table with the original of each published trajectory, to count people.",
            required=False,
        ),
    ),
    output=lambda name: Output(json=True),
    hidden=lambda name: frozenset(EitherReading.model_fields) - {"zones"},
    help=lambda name: with_examples(
        HELP,
        "verify",
        "out/",
        "out/ --original trips.parquet --zones zones.geojson",
        "tracks/ --original cabs.csv --pairing pairing.parquet",
        "map/ --original cabs.csv",
    ),
)
