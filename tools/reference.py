"""Pages of the reference: the command line from click, Python from docstrings, and REST from the API's description."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import crowdveil
from crowdveil.cli.main import COMMANDS, cli, load_command
from crowdveil.reading import FlowReading, TrajectoryReading
from crowdveil.run.options import RunOptions

_INPUT_OPTIONS = {*FlowReading.model_fields, *TrajectoryReading.model_fields}
_METHOD_GROUP = "anonymize"
_PYTHON = {
    "Anonymize and check": ("anonymize", "verify", "write_report", "plot", "measure", "measure_queries", "attack"),
    "Several releases": (
        "derive", "ledger_init", "ledger_list", "ledger_check", "ledger_add", "ledger_explain", "ledger_verify", "ledger_retire",
    ),
    "Compare": ("compare", "compare_inputs", "sweep", "sweep_trajectories"),
    "Analyze": ("reconstruct", "profiles", "land_use", "topics", "topic_number", "quadtree_heatmap"),
    "Read and write": (
        "read_flows", "read_trips", "trips_to_flows", "read_trajectories", "read_zones", "read_voronoi", "write_flows",
        "write_zones", "write_trajectories", "keep_zones", "keep_trips", "split_zones", "split_trips",
        "build_hierarchy", "filter_trajectories",
    ),
    "List what is registered": ("methods", "describe", "all_methods", "all_measures", "all_analyses", "all_attacks"),
    "Classes": (
        "Flows", "Trips", "Trajectories", "Zones", "Hierarchy", "FlowRelease", "TrajectoryRelease", "CrowdveilError",
        "CrowdveilWarning",
    ),
}  # fmt: skip
"""Public names by subject; a test compares them with `crowdveil.__all__`."""


def cli_page() -> str:
    """Return the page of the command line: every command with its examples and options."""
    lines = [
        "# Command line\n",
        "Every command, with its examples and options. `crowdveil COMMAND --help` prints the same. Exit codes: 0 done, "
        "1 a guarantee is violated or a check failed, 2 bad input or usage (one sentence, and nothing is written).\n",
        "| command | what it does |",
        "| --- | --- |",
        *(f"| [`crowdveil {name}`](#crowdveil-{name}) | {text} |" for name, text in COMMANDS.items()),
        "",
    ]
    context = click.Context(cli, info_name="crowdveil", max_content_width=110)
    for name in COMMANDS:
        lines += _command(load_command(name), click.Context(load_command(name), parent=context, info_name=name), 2)
    return "\n".join(lines)


def _command(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands."""
    yield f"{'#' * level} {context.command_path}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```console\n{context.command_path} {usage}\n```\n"
    yield from _help(inspect.cleandoc(command.help or ""))
    listed = [p for p in command.get_params(context) if isinstance(p, click.Option) and "--help" not in p.opts]
    own = [option for option in listed if option.name not in _INPUT_OPTIONS]
    if own:
        yield _options(own)
    if len(own) < len(listed):
        yield "It also takes the [input options](reading-options.md).\n"
    if context.info_name == _METHOD_GROUP:
        yield "Each [method](methods/README.md) is a command with its own parameters, and with the options of every run:\n"
        yield _run_options()
    elif isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from _command(below, click.Context(below, parent=context, info_name=name), level + 1)


def _help(text: str) -> Iterator[str]:
    """Yield paragraphs; examples, which click keeps as they are, become blocks of code."""
    for paragraph in text.split("\n\n"):
        kept, _, rest = paragraph.partition("\b\n") if paragraph.startswith("\b") else ("", "", "")
        if rest:
            lines = [line.strip() for line in rest.splitlines()]
            code = "\n".join(line for line in lines if line not in ("Example:", "Examples:"))
            yield f"```console\n{code}\n```\n"
        elif not kept:
            yield " ".join(paragraph.split()) + "\n"


def _options(options: list[click.Option]) -> str:
    lines = ["| option | meaning |", "| --- | --- |"]
    for option in options:
        names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
        metavar = f" `{option.metavar}`" if option.metavar and not option.is_flag else ""
        default = f" [default {option.default}]" if option.show_default and option.default is not None else ""
        text = f"{option.help or ''}{default}{' (required)' if option.required else ''}"
        cells = (f"{cell}".replace("|", "\\|") for cell in (names + metavar, text))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _run_options() -> str:
    from crowdveil.cli.options import options_of

    return _options(options_of(RunOptions))


def python_page() -> str:
    """Return the page of the public Python names, from their docstrings."""
    lines = [
        "# Python\n",
        "Everything public is in the package `crowdveil`. Options have the names of the command line, with underscores.\n",
        "```python\nimport crowdveil\n\nprint(len(crowdveil.all_methods()), 'methods')\n```\n",
    ]
    for subject, names in _PYTHON.items():
        lines += [f"## {subject}\n", *(text for name in names for text in _public(name))]
    return "\n".join(lines)


def _public(name: str) -> Iterator[str]:
    thing = getattr(crowdveil, name)
    yield f"### {name}\n"
    if inspect.isclass(thing):
        yield f"`class crowdveil.{name}`\n"
    else:
        parameters = ", ".join(_parameter(p) for p in inspect.signature(thing).parameters.values())
        yield f"`crowdveil.{name}({parameters})`\n"
    yield markdown(inspect.getdoc(thing) or "")
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        yield from _members(thing)


def _parameter(parameter: inspect.Parameter) -> str:
    star = "*" * ({"VAR_POSITIONAL": 1, "VAR_KEYWORD": 2}.get(parameter.kind.name, 0))
    plain = isinstance(parameter.default, str | int | float | bool | type(None) | tuple)
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}" if plain else "=…"
    return f"{star}{parameter.name}{default}"


def _members(thing: type) -> Iterator[str]:
    shown = {
        name: inspect.getdoc(member)
        for name, member in vars(thing).items()
        if not name.startswith("_") and (callable(member) or isinstance(member, property | classmethod | staticmethod))
    }
    rows = [f"| `{name}` | {text.splitlines()[0]} |" for name, text in shown.items() if text]
    if rows:
        yield "\n".join(["| member | what it is |", "| --- | --- |", *rows]) + "\n"


def markdown(doc: str) -> str:
    """Return a docstring as Markdown: sections as lists, examples as blocks of code."""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", doc, flags=re.M)
    lines = [_with_code(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        entries = re.sub(r"^(\S.*)\n((?:[ ]{4}.*\n?)+)", _entry, body, flags=re.M)
        lines.append(f"**{title}**\n\n{_with_code(entries)}")
    return "\n".join(lines)


def _entry(found: re.Match[str]) -> str:
    names = ", ".join(f"`{name.strip()}`" for name in found[1].split(","))
    return f"- {names}: {' '.join(found[2].split())}\n"


def _with_code(text: str) -> str:
    """Put runs of `>>>` lines into blocks of code."""
    code = re.compile(r"(?:^>>> .*\n?(?:^\.\.\. .*\n?)*)+", re.M)

    def block(found: re.Match[str]) -> str:
        return f"```pycon\n{found[0].strip()}\n```\n".replace("  # doctest: +SKIP", "")

    return code.sub(block, text).strip() + "\n"


def rest_page() -> str:
    """Return the page of the service's routes, from its OpenAPI description."""
    from crowdveil.server.app import make_app
    from crowdveil.server.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        described = make_app(Settings(Path(folder)).open()).openapi()
    lines = [
        "# REST API\n",
        "Routes of `crowdveil serve`. `GET /openapi.json` has the same with the schema of every parameter; "
        "[the service](service.md#use-it-over-http) explains jobs, tokens and limits.\n",
        '```console\ncurl -H "Authorization: Bearer $CROWDVEIL_TOKEN" -F data=@trips.parquet -F zones=@zones.geojson \\\n'
        "     -F 'parameters={\"k\": 10}' https://crowdveil.example.org/methods/joint/jobs\n```\n",
    ]
    by_tag: dict[str, list[str]] = {}
    for path, verbs in described["paths"].items():
        for verb, route in verbs.items():
            by_tag.setdefault(route.get("tags", ["other"])[0], []).extend(_route(verb, path, route))
    for tag, routes in by_tag.items():
        lines += [f"## {tag}\n", *routes]
    answers = sorted({(s, r["description"]) for v in described["paths"].values() for o in v.values()
                      for s, r in o["responses"].items() if s >= "400"})  # fmt: skip
    lines += ["## Error answers\n", "An error is JSON with `code` and `message`, one sentence.\n"]
    lines += ["| status | meaning |", "| --- | --- |", *(f"| {status} | {text} |" for status, text in answers), ""]
    return "\n".join(lines)


def _route(verb: str, path: str, route: dict[str, Any]) -> Iterator[str]:
    yield f"### {verb.upper()} {path}\n"
    yield f"{route.get('summary', '').rstrip('.')}.\n"
    parameters = route.get("parameters", [])
    if parameters:
        rows = [f"| `{p['name']}` | {p['in']} | {p.get('description', '')} |" for p in parameters]
        yield "\n".join(["| parameter | in | meaning |", "| --- | --- | --- |", *rows]) + "\n"
    form = route.get("requestBody", {}).get("content", {}).get("multipart/form-data", {}).get("schema", {})
    if "properties" in form:
        yield f"A form with the fields {', '.join(f'`{name}`' for name in form['properties'])}.\n"
    good = ", ".join(s for s in route["responses"] if s < "400")
    bad = ", ".join(s for s in route["responses"] if s >= "400")
    yield f"Answers {good}; errors {bad}.\n"
