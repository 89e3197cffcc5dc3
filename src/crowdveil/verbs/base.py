"""The record of a verb, from which its command and its jobs are drawn; and the check of a job's request.

The parameters of a job are one flat object, as in Python: those of the method (or measure, attack, analysis), of reading, and of
the run. If an input option names a file, the file is uploaded in a field of that name. A path in a request is never opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import Option, ParameterError, Text
from crowdveil.io.notes import ReadNotes
from crowdveil.io.zones import VORONOI, with_files
from crowdveil.params import Params, no_such_parameter
from crowdveil.reading import TrajectoryReading

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")
FLOWS = (*TABLES, ".omx")
PACKED = (".zip",)
RELEASE = (*PACKED, *TABLES)
"""A release: a zip file of its files, or a table that others published."""
MAPS = (*TABLES, ".geojson", ".json", ".gpkg", ".geoparquet")
WORD = r"^(grid:[0-9.]{1,12} ?k?m?|h3:[0-9]{1,2}|[A-Za-z0-9_ -]{1,64})$"
"""A plain word, such as `ward` or the name of a column: the only text that a request may have for an option of a file."""
FORMATS = {"pq": "parquet", "json": "geojson"}
"""Formats of endings of file names that are not formats themselves."""
ALL_FILES = "all"
"""The format of a result that is a folder."""
OF_METHODS = frozenset(("hierarchy", "partition", "min_tiles_of"))
"""Input options of flows for methods, which do not change the flows."""


class PlainReading(TrajectoryReading):
    """Options of reading trajectories without zones."""

    zones: None = None
    """Not used here."""


class SourceOptions(Params):
    """The data source of a job with a result for publication."""

    source: str | None = Field(None, pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    """Source of the data. The release is audited against the ledger of this source. Default: that of the token, if any."""


class ResultName(Params):
    """The name of a result of one file."""

    result_name: str | None = Field(None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.[A-Za-z0-9]{1,10}$")
    """File name of a result of one file. [named after the kind of job]"""


class TableForm(ResultName):
    """Parameters of a job that makes a table."""

    format: Literal["json", "csv", "parquet"] = "json"
    """Format of the result: everything as JSON, or its rows as a table."""


class DrawnForm(TableForm):
    """Parameters of a job that makes a table and a picture of it."""

    plot: bool = False
    """Also draw the result, which is then a zip file."""


@dataclass(frozen=True)
class InputFile:
    """A file or folder that a verb reads.

    Attributes
    ----------
    role
        Its name in Python and in a form.
    endings
        Endings of the files that a server accepts; a folder is sent as a zip file.
    metavar, help
        Its placeholder and its help on the command line.
    required, argument
        Whether it is required, and whether it is an argument of the command or an option; None: an argument if required.
    several
        Whether several files may be given.
    sent
        Whether a server accepts it.
    """

    role: str
    endings: tuple[str, ...]
    metavar: str = "FILE"
    help: str = ""
    required: bool = True
    several: bool = False
    sent: bool = True
    argument: bool | None = None


@dataclass(frozen=True)
class Output:
    """The output of a verb.

    Attributes
    ----------
    help, metavar
        Help and placeholder of `--output`; without help the command has no such option.
    form
        The model of a job's parameters for the format of the result.
    required
        Whether the output is the result itself, and not a copy of the printed one.
    plot, json
        Whether the result can be drawn, and printed as JSON.
    stem
        The name of a job's files, without an ending.
    mark
        The file that marks a folder as one that may be replaced.
    check
        Raises if the output cannot be written to a path, with or without replacing a file; None for the default check.
    note
        The words that the command prints after the name of each file.
    """

    help: str = ""
    metavar: str = "FILE"
    form: type[Params] | None = None
    required: bool = False
    plot: bool = False
    json: bool = False
    stem: str = "result"
    mark: str = ""
    check: Callable[..., None] | None = None
    note: str = "written"

    @property
    def formats(self) -> tuple[str, ...]:
        """Return the formats of a job's result, the default one first."""
        return get_args(self.form.model_fields["format"].annotation) if self.form is not None else ()

    def format_of(self, output: str | Path | None) -> str:
        """Return the format of a file name: the first one for no name or a folder."""
        path = Path("" if output is None else output)
        if output is None or path.is_dir() or not path.suffix:
            return self.formats[0]
        ending = path.suffix.lower().removeprefix(".")
        return ending if ending in self.formats else FORMATS.get(ending, ending)


@dataclass(frozen=True)
class Task:
    """One run of a verb: a name, its parameters, files by role, and places for the results."""

    name: str
    values: dict[str, Any]
    files: dict[str, Any]
    output: str | Path | None = None
    plot: str | Path | None = None
    overwrite: bool = False
    progress: Progress = no_progress
    stage: Stage = lambda name: None
    notes: ReadNotes = field(default_factory=ReadNotes)

    def of(self, *models: type[Params]) -> dict[str, Any]:
        """Return the parameters of models, with the paths of uploaded files."""
        return values_of(with_files(self.values, self.files), *models)

    @property
    def reporting(self) -> dict[str, Any]:
        """Return the arguments that pass notes and progress to a function."""
        return {"notes": self.notes, "progress": self.progress, "stage": self.stage}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run: notes, lines to print, the same as JSON, and the exit code of the command."""

    notes: ReadNotes
    lines: list[str]
    as_json: Callable[[], Any] = dict
    exit_code: int = 0


@dataclass(frozen=True)
class Verb:
    """The record of a verb.

    Attributes
    ----------
    verb
        Its name on the command line.
    summary
        A sentence on its purpose.
    run
        Runs a task.
    options
        Parameter models of a name: its own first, those of reading last.
    files, output
        Input files and output of a name.
    names
        The methods (or measures, attacks, analyses) that it can run, in the order of listings.
    group
        Help of the group of commands, one for each name; "" for a single command, of the first name.
    usual, by_data
        The candidates for a run without a name, and their choice: (data, parameters, notes) → name.
    find
        Returns the registered name for a name or an alias; raises if there is none.
    collection
        The first part of its routes; "" if servers do not run it.
    local, remote
        Models of further parameters: of the command, and of a job.
    hidden
        Options that the command does not show, because they come from a manifest or have no effect.
    check
        Raises if parameters are wrong in a way that the models do not check.
    about
        Facts about a name in listings.
    help
        The help of a command.
    example
        Parameters of a job in the description of the API.
    secret
        Parameters that the server never shows.
    """

    verb: str
    summary: str
    run: Callable[[Task], Outcome]
    options: Callable[[str], tuple[type[Params], ...]]
    files: Callable[[str], tuple[InputFile, ...]]
    output: Callable[[str], Output]
    help: Callable[[str], str]
    names: Callable[[], list[str]] = lambda: [ALL_FILES]
    group: str = ""
    usual: tuple[str, ...] = ()
    by_data: Callable[[Any, dict[str, Any], ReadNotes], str] = lambda data, values, notes: ""
    find: Callable[[str], str] = lambda name: name
    collection: str = ""
    local: Callable[[str], tuple[type[Params], ...]] = lambda name: ()
    remote: Callable[[str], tuple[type[Params], ...]] = lambda name: ()
    hidden: Callable[[str], frozenset[str]] = lambda name: frozenset()
    check: Callable[[str, dict[str, Any]], None] = lambda name, values: None
    about: Callable[[str], dict[str, Any]] = lambda name: {}
    example: dict[str, Any] = field(default_factory=dict)
    secret: tuple[str, ...] = ()

    @property
    def packed(self) -> bool:
        """Return whether the result of a job is always a zip file."""
        return self.output(self.names()[0]).form is None

    def models(self, name: str) -> tuple[type[Params], ...]:
        """Return the models of all parameters of a job."""
        form = self.output(name).form
        return (*self.options(name), *(() if form is None else (form,)), *self.remote(name))

    def required_files(self, name: str) -> list[str]:
        """Return the fields of files that a job needs."""
        return [file.role for file in self.files(name) if file.required]

    def fields(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return the file fields of a job with their allowed endings."""
        options = {option: endings_of(option) for model in self.models(name) for option in file_options(model)}
        return {file.role: file.endings for file in self.files(name) if file.sent} | options

    def task(self, name: str, values: dict[str, Any], files: dict[str, str], folder: Path, **reporting: Any) -> Task:
        """Return the task of a job that writes to a folder, under fixed names."""
        made = self.output(name)
        form = values.get("format") or (made.formats or (ALL_FILES,))[0]
        target = folder if made.form is None or form == ALL_FILES else folder / f"{made.stem}.{form}"
        plot = folder / f"{made.stem}.png" if values.get("plot") else None
        of_job = {} if made.form is None else made.form.model_fields
        kept = {option: value for option, value in values.items() if option not in of_job}
        return Task(name, kept, files, target, plot, **reporting)

    def checked(self, name: str, values: dict[str, Any], uploaded: dict[str, str]) -> None:
        """Raise if parameters or uploads of a job are wrong, without reading any file."""
        models = self.models(name)
        known = [option for model in models for option in model.model_fields]
        for option in values:
            if option not in known:
                raise no_such_parameter(option, known)
        for model in models:
            for option in file_options(model):
                check_word(option, values.get(option), option in uploaded)
            model.checked(values_of(values, model))
        for need in self.required_files(name):
            if need not in uploaded:
                raise ParameterError(Option(need), "Expected a file in this field of the form, got none. Add it.")
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
    """Return the schemas and the required ones of a model's parameters; cached, since all measures share models."""
    drawn = model.model_json_schema()
    for option in file_options(model):
        text = drawn["properties"][option].get("description", "")
        drawn["properties"][option] = {
            "type": "string", "pattern": WORD,
            "description": f"{text} Upload a file in the field `{option}` of the form, or give a plain word here.",
        }  # fmt: skip
    properties = {
        name: {key: value for key, value in schema.items() if key not in ("title", "metavar", "short")}
        for name, schema in drawn["properties"].items()
    }
    return properties, drawn.get("required", [])


def file_options(model: type[Params]) -> list[str]:
    """Return the options that can name a file: those of type Any."""
    return [name for name, info in model.model_fields.items() if info.annotation is Any]


def endings_of(option: str) -> tuple[str, ...]:
    """Return the allowed endings of an option's file: of a release or a table for a partition, else of a map or a table."""
    return RELEASE if option == "partition" else MAPS


def check_word(option: str, value: Any, uploaded: bool) -> None:
    """Raise if an option that can name a file is neither uploaded nor a plain word."""
    if value is None:
        return
    if uploaded and value == VORONOI and option == "zones":
        return
    if uploaded:
        raise ParameterError(
            Option(option), "Expected a file in the form or a word in the parameters, got both. Leave one out."
        )
    if not isinstance(value, str) or not re.fullmatch(WORD, value):
        raise ParameterError(
            Option(option),
            Text(
                "Expected a file in the field {option} of the form, or a plain word. Upload a file.",
                option=Option(option),
            ),
        )


def values_of(values: dict[str, Any], *models: type[Params]) -> dict[str, Any]:
    """Return the values of the models' parameters."""
    return {n: v for n, v in values.items() if any(n in model.model_fields for model in models)}


def with_examples(text: str, verb: str, *examples: str) -> str:
    """Return the help of a command with examples of its arguments."""
    lines = "\n".join("  " + " ".join(filter(None, ("crowdveil", verb, example))) for example in examples)
    return f"{text}\n\n\b\nExample{'s' * (len(examples) > 1)}:\n{lines}"
