"""`crowdveil serve`: the service on one machine, or its front for several."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click

from crowdveil.attribute_docs import attribute_docs
from crowdveil.cli.options import LazyOption, given, options_of
from crowdveil.server.settings import PREVIEWS, Settings, default_folder
from crowdveil.server.tokens import Limits

_NUMBERS: dict[str, tuple[Any, str]] = {"int": (click.IntRange, "N"), "float": (click.FloatRange, "X")}
_SETTINGS = {setting.name: setting for setting in fields(Settings) if setting.default_factory is MISSING}


def setting_options(*names: str) -> list[click.Option]:
    """Return the options of settings of the service."""
    return [setting_option(name) for name in names]


def setting_option(name: str, text: str = "") -> click.Option:
    """Return the option of a setting of the service, with its default in units of the option; its help unless it is given."""
    own, default, kind = dict(_SETTINGS[name].metadata), _SETTINGS[name].default, str(_SETTINGS[name].type).split()[0]
    option, unit = own.pop("option", f"--{name.replace('_', '-')}"), own.pop("unit", 1)
    bounds = {bound: own.pop(bound) for bound in ("min", "max", "min_open") if bound in own}
    if kind in _NUMBERS:
        own = {"metavar": _NUMBERS[kind][1], **own, "type": _NUMBERS[kind][0](**bounds)}
    elif kind == "Path":
        own["type"] = click.Path(path_type=Path)
    elif "choices" in own:
        own["type"] = click.Choice(own.pop("choices"))
    if default not in (None, MISSING):
        own["default"] = type(default)(default / unit) if unit != 1 else default
    own["is_flag"] = kind == "bool" or None
    return LazyOption([option, name], lambda: text or attribute_docs(Settings)[name], **own)


def place_options() -> list[click.Option]:
    """Return the options of the data directory and the database: the same for the server, its workers and its tokens."""
    return setting_options("data", "database_url")


def place(values: dict[str, Any], at_once: int | None = None, **more: Any) -> Settings:
    """Return settings from their options among `values`; for a service that runs `at_once` jobs, with the memory of one."""
    found = {name: values[name] for name in _SETTINGS if values.get(name) is not None}
    for name, value in found.items():
        unit = _SETTINGS[name].metadata.get("unit", 1)
        found[name] = value * unit if unit != 1 else value.absolute() if isinstance(value, Path) else value
    if at_once is not None and "memory_bytes" not in found:
        from crowdveil.server.workers.memory import default_memory

        found["memory_bytes"] = default_memory(at_once)
    return Settings(**{"data": default_folder().absolute(), **found, **more})


def print_confinement() -> None:
    """Print what confines jobs on this machine, and what that leaves open."""
    from crowdveil.server.workers.sandbox import check_confinement, confinement

    click.echo(f"jobs are confined by: {confinement() or 'nothing'}")
    if (warning := check_confinement(local=True)) is not None:
        click.echo(warning)


@click.command(params=[*options_of(Limits), *setting_options(*_SETTINGS)])
@click.option(
    "--check", is_flag=True, help="Print what confines jobs on this machine and what that leaves open, and end."
)
def command(check: bool, **values: Any) -> None:
    """Run jobs for others: an API over HTTP, a queue, and workers, with nothing else to install.

    Users of this machine need no token. For others, make tokens first (crowdveil token create NAME), and put a proxy
    with TLS in front. Limits are those of tokens that have none of their own.

    \b
    Examples:
      crowdveil serve
      crowdveil serve --data-dir /srv/crowdveil --workers 4 --keep-hours 2
      crowdveil serve --four-eyes
      crowdveil serve --host 0.0.0.0 --database-url postgresql://crowdveil@db/crowdveil --data-dir /shared/crowdveil
    """
    from crowdveil.server.serve import serve

    if check:
        print_confinement()
        return
    settings = place(values, values["workers"] + PREVIEWS, limits=Limits.checked(given(Limits, values)))
    serve(settings, click.echo, [_add_mobidatalab_routes])


def _add_mobidatalab_routes(app: Any) -> None:
    """Add the routes of mdl-anonymizer. They import the extra `server`, whose absence is reported before."""
    from crowdveil.compat.mobidatalab.routes import add_routes

    add_routes(app)
