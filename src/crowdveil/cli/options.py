"""Parameter models as options of the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from crowdveil.params import Params, Row, rows

MAIN = ("k", "suppress", "zones", "step", "tz", "output")
"""The options that most runs need; the help shows them first."""
_METAVARS = {"text": "TEXT", "share": "SHARE", "int": "N", "float": "X"}


class Number(click.ParamType[Any]):
    """A number; the parameter's model rejects any other text."""

    name = "number"

    def __init__(self, kind: Callable[[str], float]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        try:
            return self.kind(value)
        except ValueError:
            return value


_TYPES: dict[str, click.ParamType[Any]] = {"int": Number(int), "float": Number(float)}


class GroupedCommand(click.Command):
    """A command whose help has its options in groups."""

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group; options that are in no group are in the last one."""
        records = {
            param.name: param.get_help_record(ctx) for param in self.get_params(ctx) if isinstance(param, click.Option)
        }
        shown = {name: record for name, record in records.items() if record is not None}
        named = {name for names in self.groups.values() for name in names}
        for title, names in self.groups.items():
            rows = [shown[name] for name in names if name in shown]
            if title == [*self.groups][-1]:
                rows += [record for name, record in shown.items() if name not in named]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a further file is probably one of zones."""
        ctx.allow_extra_args = True
        super().parse_args(ctx, args)
        if ctx.args:
            more = " ".join(ctx.args)
            zones = f"Name zones with --zones {more}." if "zones" in ctx.params else "Leave it out."
            inputs = sum(isinstance(param, click.Argument) for param in self.params)
            ctx.fail(f"Expected {'one input' if inputs == 1 else f'{inputs} inputs'}, got also {more}. {zones}")
        return ctx.args


def options_of(*models: type[Params], without: Iterable[str] = ()) -> list[click.Option]:
    """Return an option for each parameter of models, once for each name, except those in `without`."""
    drawn = {row.name: _option(row) for model in reversed(models) for row in rows(model)}
    names = dict.fromkeys(name for model in models for name in model.model_fields)
    return [drawn[name] for name in names if name not in without]


def _option(row: Row) -> click.Option:
    """Return an option without a default: the model has it."""
    listed = "; ".join(note for note in (row.unit, row.bounds, _default(row)) if note)
    text = f"{row.help} [{listed}]" if listed else row.help
    if row.kind == "bool":
        name = f"{row.option}/--no-{row.option[2:]}" if row.default is True else row.option
        return click.Option([name], is_flag=True, default=None, help=text)
    metavar = row.metavar or (f"[{'|'.join(row.choices)}]" if row.kind == "choice" else _METAVARS[row.kind])
    names = [row.short, row.option] if row.short else [row.option]
    return click.Option(
        names, type=_TYPES.get(row.kind, click.STRING), metavar=metavar, help=text, multiple=row.default == ()
    )


def _default(row: Row) -> str:
    """Return the default in words; "" if there is none to show."""
    if isinstance(row.default, bool):
        return "on by default" if row.default else ""
    if row.default in (None, "", ()):
        return ""
    if row.kind == "share":
        return f"default {100 * row.default:g}%"
    if isinstance(row.default, list):
        return f"default {','.join(map(str, row.default))}"
    return f"default {row.default:g}" if isinstance(row.default, float) else f"default {row.default}"


def given(params: type[Params], values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a model that the user gave; the others keep their defaults."""
    return {row.name: values[row.name] for row in rows(params) if values.get(row.name) is not None}
