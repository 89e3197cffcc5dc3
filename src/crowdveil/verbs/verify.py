"""Verify a release or a heat map from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.errors import Option, ParameterError, Text
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.guarantees.base import FROM_FILES, tally
from crowdveil.reading import EitherReading
from crowdveil.run import releases
from crowdveil.run.result import Result, Verification
from crowdveil.verbs.base import FLOWS, TABLES, InputFile, Outcome, Output, Task, Verb, with_examples
from crowdveil.verbs.opened import folder_of

Findings = list[tuple[Guarantee, Finding]]


def verify(folder: str | Path | Result, original: Any = None, *, pairing: Any = None, **options: Any) -> Verification:
    """Check a release or a heat map from its files: `.ok`, and a table with a row for each guarantee.

    `folder` is that of a release or of a heat map, the GeoJSON of a heat map, or a result of `anonymize`.
    `original` is what the release was made from: `Flows`, `Trajectories`, or a path, a table or a data frame, which is read as
    the manifest says (for a heat map as `options` say). `pairing`, the file that was kept, says which published trajectory is
    whose: without it the people of trajectories are not counted. Files that were needed for the release, such as zones, are
    given as `options`.

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
    for option in (*task.values, *(["pairing"] if pairing is not None else [])):
        if original is None:
            raise ParameterError(Option(option), Text("it is for reading the original. Add {original}."))
    folder = task.files["folder"]
    checked, counts = releases.verified(Path(folder), original, task.of(EitherReading), pairing)
    hashes = (
        "a GeoJSON alone has no hash to compare it with" if Path(folder).is_file() else "files are as they were written"
    )
    lines = [*_lines(checked, original is None), f"k counts {counts}; {hashes}."]
    violated = any(finding.violated for _, finding in checked)
    return Outcome(task.notes, lines, lambda: _as_json(folder, counts, checked), int(violated))


def _lines(checked: Findings, from_files: bool) -> list[str]:
    """Return each guarantee with its outcome, and how many have which."""
    lines = []
    for guarantee, finding in checked:
        verdict = "VIOLATED" if finding.violated else finding.outcome.value
        lines += [f"{verdict:<13}{guarantee.name}: {guarantee.statement()}", f"{'':13}{finding.detail}"]
    if not any(p.kind == "privacy" for p, _ in checked):
        lines.append(f"{'':13}no guarantee of anonymity is given: the method is a heuristic.")
    counted = tally([(f.outcome, f.with_original) for _, f in checked], FROM_FILES if from_files else "not checked")
    return [*lines, f"{counted}."]


HELP = """Check a release or a heat map from its files alone, or with the original data too.

Each guarantee holds, is violated, or is not checked: files alone do not show everything, and noise is shown by no file. The
original is read as it was for the release; only files, such as zones, are given again.

Exit code 0 if no guarantee is violated (the last lines say how many were not checked), 1 if one is or a file was changed, 2 if
nothing can be checked."""
VERB = Verb(
    verb="verify",
    summary="Check a release from its files alone.",
    run=_run,
    options=lambda name: (EitherReading,),
    files=lambda name: (
        InputFile("folder", (), "FOLDER"),
        InputFile(
            "original", FLOWS, help="The trips, flows or trajectories that the release was made from.", required=False
        ),
        InputFile(
            "pairing",
            TABLES,
            help="Table that says which published trajectory is whose, to count people.",
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
