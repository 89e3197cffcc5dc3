"""Kinds of job: the record of a kind, and the check of a request."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from crowdveil.errors import Option, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.zones import VORONOI, with_files
from crowdveil.params import Params
from crowdveil.progress import Progress, Stage
from crowdveil.reading import TrajectoryReading

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")
FLOWS = (*TABLES, ".omx")
RELEASE = (".zip", *TABLES)
"""A release is a zip file of its files; a table is what others published."""
MAPS = (*TABLES, ".geojson", ".json", ".gpkg", ".geoparquet")
WORD = r"^(grid:[0-9.]{1,12} ?k?m?|h3:[0-9]{1,2}|[A-Za-z0-9_ -]{1,64})$"
"""What an option that can name a file may be in a request: a plain word, such as `ward` or a column's name."""


class PlainReading(TrajectoryReading):
    """Options of reading trajectories without zones."""

    zones: None = None
    """Not used here."""


class SourceOptions(Params):
    """The source of data of a job whose result is to be published."""

    source: str | None = Field(None, pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    """Source of the data: the release is audited against the earlier ones in its ledger. Default: that of the token, if any."""


class ResultOptions(Params):
    """Parameters of every job whose result may be one file."""

    result_name: str | None = Field(None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.[A-Za-z0-9]{1,10}$")
    """File name of the result, if it is one file. [a name after the kind of job]"""


@dataclass(frozen=True)
class Task:
    """One run of a job: names of files are relative to the folder that it runs in. `ledger` is that of its source."""

    name: str
    values: dict[str, Any]
    files: dict[str, str]
    out: Path
    progress: Progress
    stage: Stage
    ledger: Path | None = None
    notes: ReadNotes = field(default_factory=ReadNotes)

    @property
    def reading(self) -> dict[str, Any]:
        """Return the values with the paths of uploaded files."""
        return with_files(self.values, self.files)

    @property
    def reporting(self) -> dict[str, Any]:
        """Return the arguments that pass notes and progress to a function of the API."""
        return {"notes": self.notes, "progress": self.progress, "stage": self.stage}


@dataclass(frozen=True)
class Outcome:
    """The output of a run: notes, and lines as on the command line."""

    notes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verb:
    """A kind of job.

    Attributes
    ----------
    verb, collection
        What it is called, and the first part of its routes.
    summary
        What it does, in a sentence.
    names
        What can be run, in the order that people see.
    find
        The name by which something is registered, from that or an alias; raises where there is none.
    models
        The parameter models of one of them, whose fields together are its parameters.
    required_files, optional_files
        Fields of files that must be there, and those that may, with the endings of each.
    check
        Raises where parameters mean nothing beyond what the models see.
    run
        Runs it, and writes files to `task.out`.
    packed
        Whether the result is always a zip file; otherwise it is where there is more than one file.
    about
        What a listing states about one of them.
    example
        Parameters of the first of them, for the description.
    secret
        Parameters that no answer shows again.
    """

    verb: str
    collection: str
    summary: str
    names: Callable[[], list[str]]
    find: Callable[[str], str]
    models: Callable[[str], tuple[type[Params], ...]]
    run: Callable[[Task], Outcome]
    about: Callable[[str], dict[str, Any]]
    required_files: Callable[[str], dict[str, tuple[str, ...]]] = lambda name: {"data": FLOWS}
    optional_files: Callable[[str], dict[str, tuple[str, ...]]] = lambda name: {}
    check: Callable[[str, dict[str, Any]], None] = lambda name, values: None
    packed: bool = False
    example: dict[str, Any] = field(default_factory=dict)
    secret: tuple[str, ...] = ()

    def fields(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return every file field with its allowed endings."""
        options = {option: endings_of(option) for model in self.models(name) for option in file_options(model)}
        return self.required_files(name) | self.optional_files(name) | options

    def checked(self, name: str, values: dict[str, Any], uploaded: dict[str, str]) -> None:
        """Raise unless the parameters and uploads are valid, without reading any file."""
        models = self.models(name)
        known = [option for model in models for option in model.model_fields]
        for option in values:
            if option not in known:
                raise ParameterError(
                    Option(option), f"there is no such parameter; known are {', '.join(known) or 'none'}."
                )
        for model in models:
            for option in file_options(model):
                check_word(option, values.get(option), option in uploaded)
            model.checked({n: v for n, v in values.items() if n in model.model_fields})
        for need in self.required_files(name):
            if need not in uploaded:
                raise ParameterError(Option(need), "Expected a file in this field of the form. Add it.")
        self.check(name, values)

    def schema(self, name: str) -> dict[str, Any]:
        """Return the JSON schema of the parameters."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        for model in self.models(name):
            drawn, needed = _drawn(model)
            properties |= drawn
            required += needed
        return {"type": "object", "properties": properties, "additionalProperties": False,
                **({"required": required} if required else {})}  # fmt: skip


@cache
def _drawn(model: type[Params]) -> tuple[dict[str, Any], list[str]]:
    """The schemas of a model's parameters, and which are required; drawn once, since all measures have the same models."""
    drawn = model.model_json_schema()
    for option in file_options(model):
        text = drawn["properties"][option].get("description", "")
        drawn["properties"][option] = {
            "type": "string", "pattern": WORD,
            "description": f"{text} Upload a file in the field `{option}` of the form, or give a plain word here.",
        }  # fmt: skip
    properties = {n: {k: v for k, v in p.items() if k != "title"} for n, p in drawn["properties"].items()}
    return properties, drawn.get("required", [])


def file_options(model: type[Params]) -> list[str]:
    """Return the options that can name a file: those of type Any."""
    return [name for name, info in model.model_fields.items() if info.annotation is Any]


def endings_of(option: str) -> tuple[str, ...]:
    """Return the endings of files that an option takes: a partition is a release or a table, others are maps or tables."""
    return RELEASE if option == "partition" else MAPS


def check_word(option: str, value: Any, uploaded: bool) -> None:
    """Raise if an option that can name a file is neither uploaded nor a plain word."""
    if value is None:
        return
    if uploaded and value == VORONOI and option == "zones":
        return
    if uploaded:
        raise ParameterError(Option(option), "Expected a file in the form or a word in the parameters, got both.")
    if not isinstance(value, str) or not re.fullmatch(WORD, value):
        raise ParameterError(
            Option(option),
            f"Expected a file in the field {Option(option)} of the form, or a plain word. Upload the file.",
        )


def values_of(values: dict[str, Any], *models: type[Params]) -> dict[str, Any]:
    """Return the values that are parameters of the models."""
    return {n: v for n, v in values.items() if any(n in model.model_fields for model in models)}
