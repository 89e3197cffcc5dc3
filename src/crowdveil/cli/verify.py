"""`crowdveil verify FOLDER`: every guarantee of a release or a heat map, checked from its files, or with the original."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.options import given, options_of
from crowdveil.guarantees import Finding, Guarantee
from crowdveil.guarantees.base import FROM_FILES, tally
from crowdveil.reading import EitherReading
from crowdveil.run import releases

FILES = ("zones",)
"""The files that the manifest has no more of than a hash; the other input options are those of the release."""


@click.command(params=options_of(EitherReading, only=FILES))
@click.argument("folder")
@click.option("--original", metavar="FILE", help="The trips, flows or trajectories that the release was made from.")
@click.option("--pairing", metavar="FILE", help="Table that says which published trajectory is whose, to count people.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(
    folder: str,
    original: str | None,
    pairing: str | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Check a release or a heat map from its files alone, or with the original data too.

    Each guarantee holds, is violated, or is not checked: files alone do not show everything, and noise is shown by no file.
    The original is read as it was for the release; only files, such as zones, are given again.

    Exit code 0 if no guarantee is violated (the last lines say how many were not checked), 1 if one is or a file was changed, 2
    if nothing can be checked.

    \b
    Examples:
      crowdveil verify out/
      crowdveil verify out/ --original trips.parquet --zones zones.geojson
      crowdveil verify tracks/ --original cabs.csv --pairing pairing.parquet
      crowdveil verify map/ --original cabs.csv
    """
    reading = given(EitherReading, values)
    if reading and original is None:
        raise click.UsageError("options of reading are for the original data; give it with --original.")
    if pairing is not None and original is None:
        raise click.UsageError("a pairing is for the original data; give it with --original.")
    checked, counts = releases.verified(Path(folder), original, reading, pairing)
    if as_json:
        findings = [
            {
                "name": p.name, "kind": p.kind, "statement": p.statement(), "outcome": finding.outcome.value,
                "counts": finding.counts, "checked": finding.detail, "with_original": finding.with_original,
            }
            for p, finding in checked
        ]  # fmt: skip
        click.echo(json.dumps({"folder": folder, "k_unit": counts, "findings": findings}, indent=2))
    else:
        _show(checked, original is None)
        alone = Path(folder).is_file()
        hashes = "a GeoJSON alone has no hash to compare it with" if alone else "files are as they were written"
        click.echo(f"k counts {counts}; {hashes}.")
    if any(finding.violated for _, finding in checked):
        sys.exit(1)


def _show(checked: list[tuple[Guarantee, Finding]], from_files: bool) -> None:
    """Print each guarantee with its outcome, and how many have which."""
    for guarantee, finding in checked:
        verdict = "VIOLATED" if finding.violated else finding.outcome.value
        click.echo(f"{verdict:<13}{guarantee.name}: {guarantee.statement()}")
        click.echo(f"{'':13}{finding.detail}")
    if not any(p.kind == "privacy" for p, _ in checked):
        click.echo(f"{'':13}no guarantee of anonymity is given: the method is a heuristic.")
    said = tally([(f.outcome, f.with_original) for _, f in checked], FROM_FILES if from_files else "not checked")
    click.echo(f"{said}.")
