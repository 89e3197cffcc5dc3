"""Write the report of a release."""

from __future__ import annotations

from pathlib import Path

from crowdveil.errors import InputError
from crowdveil.run import releases
from crowdveil.run.result import Result
from crowdveil.verbs.base import InputFile, Outcome, Output, Task, Verb, with_examples


def write_report(folder: str | Path | Result) -> Path:
    """Rewrite the report of a release in its folder as one self-contained HTML file, from its files alone.

    >>> crowdveil.write_report("out")  # doctest: +SKIP
    """
    place = folder.folder if isinstance(folder, Result) else folder
    if place is None:
        raise InputError(
            "folder", "Expected a folder, got a release in memory. Write its report with result.report().save(file)."
        )
    return releases.report_again(Path(place))


def _run(task: Task) -> Outcome:
    return Outcome(task.notes, [f"{write_report(task.files['folder'])}: written"])


VERB = Verb(
    verb="report",
    summary="Rewrite the report of a release, one HTML file.",
    run=_run,
    options=lambda name: (),
    files=lambda name: (InputFile("folder", (), "FOLDER"),),
    output=lambda name: Output(),
    help=lambda name: with_examples("Rewrite report.html of a release from its files alone.", "report", "out/"),
)
