"""Generate pages of the docs: `python tools/pages.py` writes them, `--check` fails if one is stale."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import reference
from crowdveil.attacks.dominance import Groups
from crowdveil.attacks.od.releases import PublishedReleases
from crowdveil.attacks.trajectory.aggregated import AggregatedTrajectories
from crowdveil.compat.mobidatalab import names as mobidatalab
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Row, rows
from crowdveil.reading import FlowReading, TrajectoryReading
from crowdveil.registry import METHODS, all_aggregations, all_attacks, all_distances, find_method

DOCS = Path(__file__).parents[1] / "docs"
_HEAD = "<!-- Generated from the code by `make docs`; change the code, not this page. -->\n"
_ATTACKED = {
    Trajectories: "trajectories",
    AggregatedTrajectories: "aggregates of trajectories",
    PublishedReleases: "two or more releases of flows",
    Groups: "a release of trajectories or flows",
}
_DOCSTRING = re.compile(r'"""(?:[^\\]|\\.)*?"""', re.DOTALL)
_STATUS = {
    "proven": "the guarantee follows from what the method does",
    "argued": "the guarantee rests on an argument with stated assumptions",
    "heuristic": "no privacy guarantee; only measured risk",
}


def pages() -> dict[Path, str]:
    """Return every generated page by its path under docs/. Only methods of this package have one."""
    own = [find_method(name) for name in METHODS]
    listed = {Path("methods") / f"{method.name}.md": _method_page(method) for method in own}
    others = {
        Path("reading-options.md"): _reading_page(),
        Path("distances.md"): _distances_page(),
        Path("attack-list.md"): _attacks_page(),
        Path("cli.md"): _HEAD + "\n" + reference.cli_page(),
        Path("python-api.md"): _HEAD + "\n" + reference.python_page(),
        Path("rest-api.md"): _HEAD + "\n" + reference.rest_page(),
    }
    readme = DOCS.parent / "README.md"
    inserted = {Path("..") / "README.md": _with_methods(readme.read_text(), own)} if readme.is_file() else {}
    return {Path("methods") / "README.md": _index(own), **listed, **others, **inserted}


def _with_methods(text: str, listed: list[Method]) -> str:
    """Return the README with its table of methods by input and status."""
    groups: dict[tuple[str, str], list[str]] = {}
    for method in listed:
        link = f"[`{method.name}`](docs/methods/{method.name}.md)"
        groups.setdefault((_takes(method), method.status), []).append(link)
    rows = [f"| {takes} | {status} | {', '.join(names)} |" for (takes, status), names in groups.items()]
    table = "\n".join(["| input | status | methods |", "| --- | --- | --- |", *rows])
    return re.sub(r"<!-- methods -->\n.*?<!-- end -->", f"<!-- methods -->\n{table}\n<!-- end -->", text, flags=re.S)


def _index(listed: list[Method]) -> str:
    example = _console("crowdveil methods", "crowdveil methods joint")
    lines = [_HEAD, "# Methods\n", f"{example}\n", "| method | input | status | summary |", "| --- | --- | --- | --- |"]
    for method in listed:
        lines.append(f"| [{method.name}]({method.name}.md) | {_takes(method)} | {method.status} | {method.summary} |")
    lines += ["", *(f"- *{status}*: {meaning}." for status, meaning in _STATUS.items())]
    return "\n".join(lines) + "\n"


def _console(*commands: str) -> str:
    return "\n".join(["```console", *commands, "```"])


def _opening(title: str, text: str, *commands: str) -> list[str]:
    """Return the first lines of a page: its title, what it is about, and commands as an example."""
    return [_HEAD, f"# {title}\n", f"{text}\n", _console(*commands) + "\n"]


def _takes(method: Method) -> str:
    return "OD flows" if method.takes is Flows else "trajectories"


def _method_page(method: Method) -> str:
    summary, _, rest = method.doc.strip().partition("\n")
    body = re.sub(r"^(\w[\w ]*)\n-+$", r"## \1\n", rest.strip(), flags=re.M)
    other = mobidatalab.METHODS.get(method.name, mobidatalab.NONE)
    also = (*method.aliases, *other.names)
    data = method.example or ("trips.parquet --zones zones.geojson" if method.takes is Flows else "cabs.csv")
    file, *options = data.split()
    given = "".join(f", {name[2:]}={value!r}" for name, value in zip(options[::2], options[1::2], strict=True))
    parts = [
        _HEAD,
        f"# {method.name}\n",
        f"{summary}\n",
        f"Takes {_takes(method)}. Status: **{method.status}** ({_STATUS[method.status]})."
        + (f" Also known as {', '.join(also)}." if also else "")
        + "\n",
        f"```console\ncrowdveil anonymize {method.name} {data} -o out/\n```\n",
        f"```py\nimport crowdveil\n\ncrowdveil.anonymize({method.name!r}, {file!r}, 'out'{given})\n```\n",
        f"{body}\n",
        "## Parameters\n",
        _table(rows(method.params)),
    ]
    if other.parameters:
        factors = {name: f" / {factor:g}" for name, factor in other.factors.items()}
        renamed = ", ".join(
            f"`{there}` is `{ours}`{factors.get(there, '')}" for there, ours in other.parameters.items()
        )
        parts.append(f"In run files of mdl-anonymizer: {renamed}.\n")
    parts.append("Input options are the same for all methods: [input options](../reading-options.md).\n")
    return "\n".join(parts)


def _reading_page() -> str:
    lines = _opening(
        "Input options",
        "The same for every method, on the command line, in run files (`[reading]`) and in Python.",
        "crowdveil anonymize joint trips.csv --zones zones.geojson --tz Europe/Paris --step 1h --drop-invalid -o hours/",
        "crowdveil anonymize swapmob cabs.csv --time-format '%d.%m.%Y %H:%M' --drop-invalid -o cabs/",
    )
    tables = ("## Trips and flows\n", _table(rows(FlowReading)), "## Trajectories\n", _table(rows(TrajectoryReading)))
    return "\n".join([*lines, *tables])


def _distances_page() -> str:
    lines = _opening(
        "Distances and aggregations of trajectories",
        "Values of `distance` and `aggregation` in [methods](methods/README.md) for trajectories. In Python "
        "`crowdveil.registry.find_distance(name)` and `crowdveil.solve.trajectory.distances.make_distance(data, name, weight)`; "
        "`many_to_many` computes the distances of many trajectories to many in blocks. [Which to choose](trajectories.md).",
        "crowdveil anonymize microaggregation cabs.csv --distance dtw --aggregation mean-trajectory -o out/ --pairing kept.csv",
        "crowdveil measure cabs.csv out/ --pairing kept.csv -m rmse:distance=dtw",
    )
    distances = [(kind.name, kind.summary, kind.aliases) for kind in all_distances().values()]
    table = mobidatalab.AGGREGATIONS
    aggregations = [(name, kind.summary, table[name].names) for name, kind in all_aggregations().items()]
    for title, listed in (("Distances", distances), ("Aggregations", aggregations)):
        lines += [f"## {title}\n", "| name | definition | in other tools |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {summary} | {', '.join(others)} |" for name, summary, others in listed] + [""]
    return "\n".join(lines)


def _attacks_page() -> str:
    lines = _opening(
        "List of attacks",
        "Background knowledge and matching rule of each adversary. [How to read the results](attacks.md).",
        "crowdveil attack location cabs.csv --knowledge 3 --tile-m 500",
        "crowdveil attack homogeneity out/",
    )
    for attack in all_attacks().values():
        what = _ATTACKED.get(attack.takes, "a release of flows")
        known = f" In scikit-mobility: {', '.join(attack.aliases)}." if attack.aliases else ""
        body = re.sub(r"^(\w[\w ]*)\n-+$", r"*\1.*", attack.doc.strip(), flags=re.M)
        lines += [f"## {attack.name}\n", f"On {what}.{known}\n", f"{body}\n", _table(rows(attack.params))]
    return "\n".join(lines)


def _table(parameters: list[Row]) -> str:
    lines = ["| name | option | values | default | meaning |", "| --- | --- | --- | --- | --- |"]
    for row in parameters:
        values = ", ".join(x for x in (" \\| ".join(row.choices) or row.kind, row.unit, row.bounds) if x)
        default = "" if row.default is None else f"`{row.default}`"
        lines.append(f"| `{row.name}` | `{row.option}` | {values} | {default} | {row.help} |")
    return "\n".join(lines) + "\n"


def stale() -> list[Path]:
    """Return pages whose file is missing, out of date, or of a removed method."""
    wanted = pages()
    old = [path for path, text in wanted.items() if not (DOCS / path).is_file() or (DOCS / path).read_text() != text]
    left = [p.relative_to(DOCS) for p in (DOCS / "methods").glob("*.md") if p.relative_to(DOCS) not in wanted]
    return old + left


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check list the stale ones."""
    if arguments == ["--check"]:
        old = stale()
        sys.stdout.write("".join(f"stale: docs/{path}\n" for path in old) or "generated pages are up to date\n")
        return 1 if old else 0
    for path, text in pages().items():
        (DOCS / path).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / path).write_text(text)
    for path in stale():
        (DOCS / path).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
