"""`crowdveil verify FOLDER`: every promise of a release, checked from its files alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from crowdveil import pipeline
from crowdveil.manifest import read_manifest


@click.command()
@click.argument("folder")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(folder: str, as_json: bool) -> None:
    """Check a release from its files alone, without the original data.

    Exit code 0 if every promise holds, 1 if one does not or a file was changed, 2 if it cannot be checked.

    \b
    Example:
      crowdveil verify out/
    """
    checked = pipeline.verify(Path(folder))
    manifest = read_manifest(Path(folder))
    if as_json:
        findings = [
            {"name": p.name, "kind": p.kind, "statement": p.statement(), "holds": f.holds, "checked": f.detail}
            for p, f in checked
        ]
        click.echo(json.dumps({"folder": folder, "k_counts": manifest["k_counts"], "findings": findings}, indent=2))
    else:
        for promise, finding in checked:
            click.echo(f"{'holds ' if finding.holds else 'BROKEN'}  {promise.name}: {promise.statement()}")
            click.echo(f"        {finding.detail}")
        if not any(p.kind == "privacy" for p, _ in checked):
            click.echo("        no promise of anonymity is made: the method is a heuristic.")
        click.echo(f"k counts {manifest['k_counts']}; files are as they were written.")
    if not all(finding.holds for _, finding in checked):
        sys.exit(1)
