"""Directive `registry`: sections about everything of one kind that is registered, such as all methods."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from crowdveil import registry
from crowdveil.compat.mobidatalab import names as mobidatalab
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.params import Params, rows
from crowdveil.reading import FlowReading, TrajectoryReading


def methods() -> str:
    """Return a section for each method of this package."""
    return "\n".join(_method(registry.find_method(name)) for name in registry.METHODS)


def _method(method: Method) -> str:
    takes, files = (
        ("OD flows", "trips.parquet --zones zones.geojson") if method.takes is Flows else ("trajectories", "cabs.csv")
    )
    other = mobidatalab.METHODS.get(method.name, mobidatalab.NONE)
    names = ", ".join((*method.aliases, *other.names))
    lines = [
        f"## {method.name}\n",
        f"Takes {takes}. Status: **{method.status}**.{f' Also known as {names}.' if names else ''}\n",
        f"```console\ncrowdveil anonymize {method.name} {method.example or files} -o out/\n```\n",
        _docstring(method.doc),
        _parameters(method.params),
    ]
    if other.parameters:
        renamed = (f"`{theirs}` is `{ours}`" for theirs, ours in other.parameters.items())
        lines.append(f"In run files of mdl-anonymizer: {', '.join(renamed)}.\n")
    return "\n".join(lines)


def attacks() -> str:
    """Return a section for each attack: what the adversary knows, how it is matched, and the parameters."""
    return "\n".join(
        f"### {attack.name}\n\n{_docstring(attack.doc)}\n{_parameters(attack.params)}"
        for attack in registry.all_attacks().values()
    )


def analyses() -> str:
    """Return a section for each analysis with its parameters."""
    return "\n".join(
        f"### {analysis.name}\n\n{_docstring(analysis.doc)}\n{_parameters(analysis.params)}"
        for analysis in registry.all_analyses().values()
    )


def distances() -> str:
    """Return a table of the distances of trajectories, and one of their aggregations."""
    table = mobidatalab.AGGREGATIONS
    lists = {
        "Distances": [(f"`{d.name}`", d.summary, ", ".join(d.aliases)) for d in registry.all_distances().values()],
        "Aggregations": [
            (f"`{name}`", a.summary, ", ".join(table[name].names)) for name, a in registry.all_aggregations().items()
        ],
    }
    return "\n".join(
        f"### {title}\n\n{_table(('name', 'definition', 'in other tools'), cells)}" for title, cells in lists.items()
    )


def reading() -> str:
    """Return the options of reading trips and flows, and those of reading trajectories."""
    return f"### Trips and flows\n\n{_parameters(FlowReading)}\n### Trajectories\n\n{_parameters(TrajectoryReading)}"


def routes() -> str:
    """Return a table of the service's routes, from its OpenAPI description."""
    from crowdveil.server.app import make_app
    from crowdveil.server.service import open_service
    from crowdveil.server.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        paths = make_app(open_service(Settings(data_dir=folder))).openapi()["paths"]
    cells = (
        (f"`{verb.upper()} {path}`", route.get("summary", ""))
        for path, verbs in paths.items()
        for verb, route in verbs.items()
    )
    return _table(("route", "what it does"), cells)


def _docstring(text: str) -> str:
    """Return a docstring as Markdown, with its sections as bold lines."""
    return re.sub(r"^(\w[\w ]*)\n-+$", r"**\1**\n", text.strip(), flags=re.M) + "\n"


def _parameters(params: type[Params]) -> str:
    cells = (
        (
            f"`{row.option}`",
            ", ".join(x for x in (" | ".join(row.choices) or row.kind, row.unit, row.bounds) if x),
            "" if row.default is None else f"`{row.default}`",
            row.help,
        )
        for row in rows(params)
    )
    return _table(("option", "values", "default", "meaning"), cells)


def _table(head: tuple[str, ...], cells: Iterable[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *(tuple(str(c).replace("|", "\\|") for c in line) for line in cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


class Registry(SphinxDirective):
    """Insert the sections of one kind."""

    required_arguments = 1
    kinds: ClassVar[dict[str, Callable[[], str]]] = {
        made.__name__: made for made in (methods, attacks, analyses, distances, reading, routes)
    }

    def run(self) -> list[nodes.Node]:
        """Parse the Markdown of a kind."""
        return self.parse_text_to_nodes(self.kinds[self.arguments[0]](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("registry", Registry)
    return {"parallel_read_safe": True}
