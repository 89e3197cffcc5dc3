"""Parameter models as options of the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from crowdveil.errors import ParameterError
from crowdveil.params import Params, Row, rows

_TYPES: dict[str, Any] = {"int": click.INT, "float": click.FLOAT, "text": click.STRING}


class NamedCommands(click.Group):
    """A command for each name of a registry, made when it is called; aliases are found too."""

    def __init__(
        self, *arguments: Any, names: Callable[[], Iterable[str]], make: Callable[[str], click.Command], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.names, self.make = names, make

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names."""
        return list(self.names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name."""
        try:
            return self.make(cmd_name)
        except ParameterError as error:
            if Path(cmd_name).suffix:
                first = next(iter(self.names()))
                raise click.UsageError(
                    f"Expected a name before the input, got {cmd_name}. Write {ctx.command_path} {first} {cmd_name}.",
                    ctx,
                ) from None
            raise click.UsageError(str(error), ctx) from None


MAIN = ("k", "suppress", "zones", "step", "tz", "output")
"""The options that most runs need; the help shows them first."""


class GroupedCommand(click.Command):
    """A command whose help has its options in groups, those of most runs first."""

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.groups = {"Options": MAIN, **groups}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group; options that are in no group are in the last one."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in self.groups}
        for param in self.get_params(ctx):
            record, name = param.get_help_record(ctx), param.name or ""
            if record is not None:
                title = next((title for title, names in self.groups.items() if name in names), [*sections][-1])
                sections[title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def options_of(
    params: type[Params], *, only: tuple[str, ...] | None = None, without: tuple[str, ...] = ()
) -> list[click.Option]:
    """Return an option for each parameter, or for those in `only`, but those in `without`."""
    listed = [row for row in rows(params) if only is None or row.name in only]
    return [_option(row) for row in listed if row.name not in without]


class LazyOption(click.Option):
    """An option whose help is made when it is shown, which few runs do."""

    def __init__(self, names: list[str], text: Callable[[], str], **settings: Any) -> None:
        self.text = text
        super().__init__(names, **settings)

    @property
    def help(self) -> str:
        """Return the help."""
        return self.text()

    @help.setter
    def help(self, text: str | None) -> None:
        """Ignore what click sets."""


def _row_option(names: list[str], row: Row, **settings: Any) -> click.Option:
    """Return an option without a default, whose help has the unit, bounds and default of a parameter."""

    def text() -> str:
        notes = [row.unit, row.bounds]
        if row.default not in (None, False):
            notes.append(f"default {f'{100 * row.default:g}%' if row.kind == 'share' else row.default}")
        shown = "; ".join(n for n in notes if n)
        return f"{row.help} [{shown}]" if shown else row.help

    return LazyOption(names, text, default=None, **settings)


def _option(row: Row) -> click.Option:
    if row.kind == "bool":
        return _row_option([f"{row.option}/--no-{row.option[2:]}" if row.default else row.option], row, is_flag=True)
    metavar = (
        row.metavar
        or {"text": "TEXT", "share": "SHARE", "int": "N", "float": "X", "choice": f"[{'|'.join(row.choices)}]"}[
            row.kind
        ]
    )
    # Where more is taken than the choices, the model knows what.
    closed = row.kind == "choice" and not row.more
    kind = click.Choice(row.choices) if closed else _TYPES.get(row.kind, click.STRING)
    names = ["-k", "--k"] if row.name == "k" else [row.option]
    return _row_option(names, row, type=kind, metavar=metavar, required=row.required)


def given(params: type[Params], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a model's parameters that the user gave; the rest keep their defaults."""
    return {row.name: values[row.name] for row in rows(params) if values.get(row.name) is not None}
