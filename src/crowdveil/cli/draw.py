"""Draw commands from the records of verbs, and run them here or on a server."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import show_if_compiling, show_lines, show_notes
from crowdveil.cli.options import MAIN, GroupedCommand, options_of
from crowdveil.cli.remote import RemoteTarget, remote_target, send, server_options, without_server
from crowdveil.compat.mobidatalab.runfiles import task_of
from crowdveil.engine.progress import progress_bar
from crowdveil.errors import Option, ParameterError, as_command_line, render
from crowdveil.io.notes import ReadNotes
from crowdveil.io.written_release import REPORT_FILE
from crowdveil.params import no_such_parameter
from crowdveil.reading import Reading
from crowdveil.run.filters import filter_names, find_filter
from crowdveil.verbs.base import InputFile, Task, Verb
from crowdveil.verbs.run_file import load

RUN_FILES = ("anonymize", "analyze", "measure", "filter")
"""Verbs that take a run file with -f."""
BY_DATA = "auto"
"""The command that chooses a name by the data."""
OUTPUT = ("format", "export", "report", "title", "purpose", "recipient", "pairing", "plot", "as_json", "overwrite")
RUN = ("attack", "seed", "ledger", "keep_unchanged", "independent", "engine", "master", "table", "server", "detach",
       "source")  # fmt: skip
_RUN_FILE = click.Option(["-f", "--file", "run_file"], metavar="FILE",
                         help="A run file: TOML or JSON, mdl-anonymizer's JSON too.")  # fmt: skip
_OVERWRITE = click.Option(["--overwrite"], is_flag=True, help="Replace the output if it exists.")


def draw(verb: Verb) -> click.Command:
    """Return the command of a verb, or a group with a command for each of its names."""
    return VerbGroup(verb) if verb.group else _command(verb, verb.names()[0])


class VerbGroup(click.Group):
    """The commands of a verb by name, or a run file. Without a name, the data choose one if the verb allows it."""

    def __init__(self, verb: Verb) -> None:
        files = [_RUN_FILE, _OVERWRITE, *server_options(verb)] if verb.verb in RUN_FILES else []
        super().__init__(
            verb.verb, params=files, help=verb.group, callback=self._run_file, invoke_without_command=True,
            no_args_is_help=not files,
        )  # fmt: skip
        self.verb = verb

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names."""
        return self.verb.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Build the command of a name or an alias."""
        try:
            return _command(self.verb, cmd_name)
        except ParameterError as error:
            if self._is_input(cmd_name):
                command = f"{ctx.command_path} {self.verb.names()[0]} {cmd_name}"
                raise click.UsageError(
                    f"Expected a name before the input, got {cmd_name}. Write {command}.", ctx
                ) from None
            raise click.UsageError(render(error.text, as_command_line), ctx) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; without a name before the input, the data choose one."""
        of_the_group = not args or {"-h", "--help"} & set(args[:1]) or {"-f", "--file"} & set(args)
        if self.verb.usual and not of_the_group and self._is_input(args[0]):
            args = [BY_DATA, *args]
        return super().parse_args(ctx, args)

    def _is_input(self, argument: str) -> bool:
        """Return whether the first argument is an option or a file, not a name."""
        named = argument in self.verb.names()
        return not named and (argument.startswith("-") or bool(Path(argument).suffix) or Path(argument).exists())

    def _run_file(self, **values: Any) -> None:
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is None and values.get("run_file") is None:
            click.echo(ctx.get_help())
        elif ctx.invoked_subcommand is None:
            _call(self.verb, None, values)
        elif values.get("run_file") is not None:
            raise click.UsageError("Expected a name or a run file with -f, got both.")
        elif any(ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE for name in values):
            raise click.UsageError(f"Give options after {ctx.invoked_subcommand}, not before it.", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names without building their commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.verb.about(name)["summary"]) for name in self.verb.names()])


def _command(verb: Verb, name: str) -> click.Command:
    """Return the command of one name."""
    found = verb.find(name) if name != BY_DATA else name
    names = verb.usual if found == BY_DATA else (found,)
    hidden = frozenset.intersection(*(verb.hidden(each) for each in names))
    models = [model for each in names for model in (*verb.options(each), *verb.local(each))]
    files = list({file.role: file for each in names for file in verb.files(each)}.values())
    if found == BY_DATA:
        files = [replace(file, metavar="INPUT") for file in files]
    output = verb.output(names[0])
    params: list[click.Parameter] = [_file_param(file) for file in files]
    if output.help:
        params.append(click.Option(["-o", "--output"], metavar=output.metavar, help=output.help))
    params += options_of(*models, without=hidden)
    if verb.verb == "filter":
        params += _filter_options()
    if output.plot:
        params.append(click.Option(["--plot"], metavar="FILE", help="Also draw the result: .png."))
    if output.json:
        params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
    if output.help:
        params.append(_OVERWRITE)
    if verb.verb in RUN_FILES and not verb.group:
        params.append(_RUN_FILE)
    params += server_options(verb, names[0])
    reading = [
        name for model in models if issubclass(model, Reading) for name in model.model_fields if name not in MAIN
    ]
    own = [param.name or "" for param in params if param.name not in {*MAIN, *reading, *OUTPUT, *RUN}]
    groups = {"Method": own} if verb.usual else {}
    main = MAIN if groups else (*MAIN, *own)
    text = verb.help(found) if found != BY_DATA else verb.group
    return GroupedCommand(
        found, params=params, help=text, short_help=verb.about(found).get("summary") if found != BY_DATA else None,
        groups={"Options": main, **groups, "Input": reading, "Output": OUTPUT, "Run": RUN},
        callback=lambda **values: _call(verb, found, values),
    )  # fmt: skip


def _file_param(file: InputFile) -> click.Parameter:
    if file.argument if file.argument is not None else file.required:
        return click.Argument([file.role], metavar=file.metavar, nargs=-1 if file.several else 1, required=False)
    return click.Option([f"--{file.role}"], metavar=file.metavar, help=file.help)


def _filter_options() -> list[click.Parameter]:
    """Return an option for each filter; their values are collected in the order of the command line."""

    def collect(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> None:
        for value in values:
            ctx.params.setdefault("filters", []).append({option.name: value})

    return [
        click.Option([f"--{kind.name.replace('_', '-')}"], metavar=kind.metavar, help=kind.summary, multiple=True,
                     callback=collect, expose_value=False)
        for kind in map(find_filter, filter_names())
    ]  # fmt: skip


def _call(verb: Verb, name: str | None, values: dict[str, Any]) -> None:
    """Run a verb with the values of its command, or of a run file."""
    server = remote_target(values)
    run_file, as_json = values.pop("run_file", None), bool(values.pop("as_json", False))
    output, plot, overwrite = (values.pop(option, None) for option in ("output", "plot", "overwrite"))
    values = {option: value for option, value in values.items() if value is not None and value != ()}
    roles = {
        file.role for each in ([name] if name not in (None, BY_DATA) else verb.names()) for file in verb.files(each)
    }
    files = {role: values.pop(role) for role in roles & values.keys()}
    if run_file is not None:
        if files.keys() - {"pairing"}:
            raise ParameterError("Expected an input or a run file with -f, got both. Leave one out.")
        task = task_of(verb, Path(run_file), load(Path(run_file)))
        values, files = task.values | values, task.files | files
        name, output, overwrite = task.name, output or task.output, overwrite or task.overwrite
    notes = ReadNotes()
    if name == BY_DATA:
        _need(verb, verb.usual[0], files, output)
        name = verb.by_data(files["data"], values, notes)
    task = Task(str(name), values, files, output, plot, bool(overwrite), notes=notes)
    _need(verb, task.name, files, output)
    perform(verb, task, server, as_json=as_json)


def _need(verb: Verb, name: str, files: dict[str, Any], output: Any) -> None:
    """Raise if a required file or output is missing."""
    for file in verb.files(name):
        if file.required and not files.get(file.role):
            other = ", or a run file with -f" if verb.verb in RUN_FILES else ""
            raise ParameterError(f"Expected {_words(file.metavar)}, got none. Name it{other}.")
    if verb.output(name).required and output is None:
        raise ParameterError(
            Option("output"), f"Expected a {verb.output(name).metavar.lower()} to write to, got none. Name it."
        )


def _words(metavar: str) -> str:
    """Return a placeholder as words, such as "trips or flows" for TRIPS_OR_FLOWS."""
    return metavar.removesuffix("...").replace("_", " ").lower()


def perform(verb: Verb, task: Task, server: RemoteTarget | None, *, as_json: bool) -> None:
    """Run a task here or on a server, and print its outcome and the written files."""
    models = (*verb.options(task.name), *verb.local(task.name), *verb.remote(task.name))
    for option in task.values:
        if not any(option in model.model_fields for model in models):
            raise no_such_parameter(option, [name for model in verb.options(task.name) for name in model.model_fields])
    if (
        server is None and task.values.get("source") is not None
    ):  # of a run file, too: nothing here would audit the result
        raise without_server("source")
    if server is not None:
        outcome = send(server, verb, task, as_json=as_json)
        if outcome is None:
            return
    else:
        show_if_compiling()
        with progress_bar() as (progress, stage):
            outcome = verb.run(replace(task, progress=progress, stage=stage))
    show_notes(outcome.notes)
    output = verb.output(task.name)
    written = [f"{file}: {output.note}" for file in (task.output, task.plot) if file is not None]
    if as_json:
        click.echo(json.dumps(outcome.as_json(), indent=2, ensure_ascii=False))
    else:
        lines = [*written, *outcome.lines] if output.required else [*outcome.lines, *written]
        report = Path("" if task.output is None else task.output) / REPORT_FILE
        look = [f"  open {report}"] if output.mark and report.is_file() else []
        show_lines([*lines, *look])
    if outcome.exit_code:
        sys.exit(outcome.exit_code)
