"""The guides that show output are run as they stand, and must say what comes out.

A fenced block of `python` or `sh` is run, and the next block of `text` must be what it printed. A block whose first line names a
file (`csv flows.csv`) is that file. Blocks of `console` show what cannot be run here. What stands between `<!-- name -->` and
`<!-- end -->` is made by the function `name` below. `python tests/test_guides.py` writes the guides again from what comes out.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil import measure, read_flows
from crowdveil.methods.base import trips_within
from crowdveil.solve.od.boxes import BoxSolution, BoxSpace
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.targets import origins_near, target_volumes

DOCS = Path(__file__).resolve().parents[1] / "docs"
WORKED = DOCS / "worked-example.md"
TUTORIALS = {"tutorial": DOCS / "tutorial-nyc-taxi.md", "land-use": DOCS / "tutorial-land-use.md"}
PICTURES = {
    "tutorial": {"origin-sizes.png": "nyc-origin-sizes.png", "destinations-confidential.png": "nyc-destinations.png"},
    "land-use": {"profiles.png": "land-use-profiles.png", "land-use.png": "land-use.png"},
}
"""Pictures that the commands of a tutorial draw, and their names among the pictures of the docs."""
_BLOCK = re.compile(r"^```([a-z]+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
_MADE = re.compile(r"<!-- ([a-z ]+) -->\n.*?<!-- end -->", re.S)
_NUMBER = re.compile(r"(?<!area-)\b\d[\d,]*(?:\.\d+)?\b")
"""Where several partitions are equally good, another one may be taken one day: the tutorial's numbers may be a little off."""

Line = tuple[int, int]
"""A piece of the solution: its cost A and the volume S that it suppresses; at a price λ it costs A + λS."""


def rendered(page: Path, folder: Path) -> str:
    """A guide with the output that its blocks have when they are run in a folder, one after the other."""
    text, names, said = page.read_text(), {"__name__": "guide"}, ""

    def run(block: re.Match[str]) -> str:
        nonlocal said
        kind, name, body = block.groups()
        if name is not None:
            (folder / name).write_text(body)
        elif kind == "python":
            said = _python(body, names)
        elif kind == "sh":
            said = _shell(body, folder)
        elif kind == "text":
            return f"```text\n{said}```"
        return block.group()

    with contextlib.chdir(folder):
        return _BLOCK.sub(run, text)


def _python(body: str, names: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(body, "guide", "exec"), names)
    return out.getvalue()


def _shell(body: str, folder: Path) -> str:
    lines = body.replace("\\\n", " ").splitlines()
    return "".join(_command(line) if re.fullmatch(r"crowdveil [^|>]*", line) else _bash(line, folder) for line in lines)


def _command(line: str) -> str:
    """A command in this process, which is quicker than one of its own."""
    from crowdveil.cli.main import main

    out, before = io.StringIO(), (sys.argv, signal.getsignal(signal.SIGTERM))
    sys.argv = shlex.split(line)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
        main()
    sys.argv, _ = before[0], signal.signal(signal.SIGTERM, before[1])
    return out.getvalue()


def _bash(line: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env={**os.environ, "PATH": path}, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


class Example:
    """The matrix of the worked example, solved step by step by the code of the methods."""

    k = 5

    def __init__(self, folder: Path) -> None:
        for _, name, body in _BLOCK.findall(WORKED.read_text()):
            if name:
                (folder / name).write_text(body)
        self.flows = read_flows(folder / "flows.csv", zones=folder / "zones.csv")
        self.system = RegionSpace.trees(self.flows)
        self.tree = self.system.origins.tree
        self.name = ["".join(sorted(self.flows.zones.ids[self.tree.node_tiles(n)])) for n in range(len(self.tree))]
        self.matrix = Matrix.of(self.flows, 0, self.system)
        self.total, self.budget = self.matrix.total, trips_within(0.1, self.matrix.total)
        self.boxes = BoxSpace.of(self.flows, 0, self.system, self.k)
        self.targets = [(t, *self._origins(t)) for t in target_volumes(self.k, self.total)]
        self.target, self.dual_space, self.dual = min(
            self.targets, key=lambda t: t[2].cost / (self.total - t[2].suppressed)
        )
        choice, _ = self.dual_space.solve_exactly(self.dual, self.dual.choice, self.budget)
        self.exact = self.dual_space.solution_of(choice)

    def _origins(self, target: float) -> tuple[BoxSpace, BoxSolution]:
        boxes = BoxSpace.of_origins(self.matrix, origins_near(self.matrix, target), self.k)
        return boxes, boxes.solve_for_budget(self.budget)

    def box(self, origin: int, destination: int) -> str:
        return f"{self.name[origin]}→{self.name[destination]}"

    def joint_boxes(self, choice: Any) -> list[str]:
        found = self.boxes.outcome(choice, left=False)
        return [self.box(o, d) for o, d in zip(found.origin, found.destination, strict=True)]

    def dual_boxes(self, choice: Any) -> list[str]:
        found = self.dual_space.outcome(choice, left=False)
        return [self.box(o, d) for o, d in zip(found.origin, found.destination, strict=True)]

    def joint_at(self, price: Fraction | None) -> tuple[Line, list[str]]:
        cost, suppressed, choice = self.boxes.solve_at(price)
        return (cost, suppressed), self.joint_boxes(choice)

    def dual_at(self, price: Fraction | None) -> tuple[Line, list[str]]:
        cost, suppressed, choice = self.dual_space.solve_at(price)
        return (cost, suppressed), self.dual_boxes(choice)


Solve = Callable[[Fraction | None], tuple[Line, list[str]]]


def _meet(left: Line, right: Line) -> Fraction:
    return Fraction(right[0] - left[0], left[1] - right[1])


def _worth(line: Line, price: Fraction) -> Fraction:
    return line[0] + price * line[1]


def _pieces(at: Solve, left: Line, right: Line) -> list[Line]:
    """All pieces between two, the left one included."""
    if left == right:
        return []
    price = _meet(left, right)
    found = at(price)[0]
    if _worth(found, price) == _worth(right, price):
        return [left]
    return _pieces(at, left, found) + _pieces(at, found, right)


def _search(at: Solve, budget: int) -> list[tuple[Line, Line, Fraction, Line]]:
    """The search for the price, without guesses: two pieces, where they meet, and what is best there."""
    left, right, steps = at(Fraction(0))[0], at(None)[0], []
    while True:
        price = _meet(left, right)
        found = at(price)[0]
        steps.append((left, right, price, found))
        if _worth(found, price) == _worth(right, price):
            return steps
        left, right = (left, found) if found[1] <= budget else (found, right)


def _table(head: str, rows: Iterable[Iterable[object]]) -> str:
    columns = head.split(" | ")
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (columns, ["---"] * len(columns), *rows))


def _shown(price: Fraction) -> str:
    return str(price) if price.denominator == 1 else f"{price} = {float(price):.4g}"


def matrix(e: Example) -> str:
    ids = e.flows.zones.ids
    volume = np.zeros((len(ids), len(ids)), int)
    volume[e.flows.origin, e.flows.destination] = e.flows.volume
    rows = [(f"**{ids[i]}**", *(v or "" for v in row), row.sum()) for i, row in enumerate(volume)]
    return _table(f"from \\ to | {' | '.join(ids)} | all", [*rows, ("**all**", *volume.sum(0), volume.sum())])


def boxes(e: Example) -> str:
    size, volume = e.tree.size, np.zeros((len(e.tree), len(e.tree)), int)
    tiles = [set(e.tree.node_tiles(n).tolist()) for n in range(len(e.tree))]
    for a in range(len(e.tree)):
        for b in range(len(e.tree)):
            inside = [o in tiles[a] and d in tiles[b] for o, d in zip(e.flows.origin, e.flows.destination, strict=True)]
            volume[a, b] = e.flows.volume[inside].sum()
    tight = set(zip(e.boxes.origin.tolist(), e.boxes.destination.tolist(), strict=True))

    def cell(a: int, b: int) -> str:
        if volume[a, b] < e.k:
            return f"*{volume[a, b]}*" if volume[a, b] else ""
        text = f"{volume[a, b]} · {(size[a] + size[b]) * volume[a, b]}"
        return text if (a, b) in tight else f"({text})"

    rows = [(f"**{e.name[a]}**", *(cell(a, b) for b in range(len(e.tree)))) for a in range(len(e.tree))]
    return _table(f"from \\ to | {' | '.join(e.name)}", rows)


def penalties(e: Example) -> str:
    tree = e.tree
    out = tree.subtree_sums(np.bincount(e.flows.origin, e.flows.volume, tree.tiles).astype(int))
    best, rows = {}, []
    for node in range(len(tree)):
        own = int((e.target - out[node]) ** 2)
        children = np.flatnonzero(tree.parent == node)
        parts = sum(best[c] for c in children.tolist()) if len(children) else None
        best[node] = own if parts is None else min(own, parts)
        verdict = "a tile" if parts is None else "cut" if parts < own else "whole"
        rows.append((e.name[node], out[node], own, "" if parts is None else parts, verdict))
    return _table("node | leaves it | (15 − v)² | its parts, best | so it is", rows)


def targets(e: Example) -> str:
    seen: dict[tuple[str, ...], list[object]] = {}
    for target, boxes, solved in e.targets:
        origins = tuple(e.name[o] for o in boxes.given)
        if origins in seen:
            seen[origins][0] = f"{str(seen[origins][0]).split(' to ')[0]} to {target:g}"
        else:
            error = solved.cost / (e.total - solved.suppressed)
            seen[origins] = [f"{target:g}", ", ".join(origins), solved.cost, solved.suppressed, f"{error:.3f}"]
    return _table("v_target | origins | A | S | Ḡ = A / (68 − S)", seen.values())


def forest(e: Example) -> str:
    space, splits = e.dual_space, e.dual_space.splits
    names = [e.box(o, d) for o, d in zip(space.origin[:-1], space.destination[:-1], strict=True)] + ["the forest"]
    rows = []
    for i in range(len(space) - 1):
        (above,) = (
            box for box, split in enumerate(splits.offsets[:-1])
            if i in splits.link[splits.link_offsets[split] : splits.link_offsets[splits.offsets[box + 1]]]
        )  # fmt: skip
        lost = splits.lost[splits.offsets[i] : splits.offsets[i + 1]].tolist() or ["cannot be split"]
        rows.append((names[i], space.volume[i], space.cost[i], *lost, names[above]))
    return _table("box | v | cost | suppressed by splitting it | part of", rows)


def _piece_table(at: Solve) -> str:
    first, last = at(Fraction(0))[0], at(None)[0]
    lines = [*_pieces(at, first, last), last]
    rows, low = [], Fraction(0)
    for i, line in enumerate(lines):
        rows.append((_shown(low), *line, ", ".join(at(low)[1])))
        assert at(low)[0] == line
        if i + 1 < len(lines):
            low = _meet(line, lines[i + 1])
    return _table("from λ = | A | S | published", rows)


def _search_table(at: Solve, budget: int) -> str:
    rows = []
    for left, right, price, found in _search(at, budget):
        last = _worth(found, price) == _worth(right, price)
        then = (
            "none is below: the right one"
            if last
            else "the new right one"
            if found[1] <= budget
            else "the new left one"
        )
        rows.append(
            (
                left,
                right,
                _shown(price),
                f"{float(_worth(right, price)):g}",
                found,
                f"{float(_worth(found, price)):g}",
                then,
            )
        )
    return _table("left (A, S) | right (A, S) | they meet at λ = | at | best there | A + λS | it is", rows)


def dual_pieces(e: Example) -> str:
    return _piece_table(e.dual_at)


def dual_search(e: Example) -> str:
    return _search_table(e.dual_at, e.budget)


def joint_pieces(e: Example) -> str:
    return _piece_table(e.joint_at)


def joint_search(e: Example) -> str:
    return _search_table(e.joint_at, e.budget)


def all_methods(e: Example) -> str:
    found = []
    for name in ("suppression", "atg-dual", "atg-exact", "joint"):
        lost = measure("flows.csv", name, zones="zones.csv")
        values = [float(lost[m].pooled) for m in ("flows", "S", "G", "Ḡ", "E")]
        suppressed = round(values[1] * e.total)
        found.append((f"`{name}`", f"{values[0]:g}", f"{suppressed} ({100 * values[1]:.1f} %)", f"{values[2]:g}",
                      f"{values[3]:.3f}", f"{values[4]:.3f}"))  # fmt: skip
    return _table("method | rows | suppressed | G = A | Ḡ | E", found)


MADE: dict[str, Callable[[Example], str]] = {
    "matrix": matrix, "boxes": boxes, "penalties": penalties, "targets": targets, "forest": forest,
    "dual pieces": dual_pieces, "dual search": dual_search, "joint pieces": joint_pieces, "joint search": joint_search,
    "all methods": all_methods,
}  # fmt: skip


def worked_example(folder: Path) -> str:
    """The worked example as it should read."""
    text, example = rendered(WORKED, folder), Example(folder)
    with contextlib.chdir(folder):
        return _MADE.sub(lambda made: f"<!-- {made[1]} -->\n{MADE[made[1]](example)}\n<!-- end -->", text)


def tutorial(name: str, folder: Path, data: Path) -> str:
    """A tutorial as it should read; the data lies in its folder, under the name that the tutorial has for it."""
    (folder / "nyc_taxi").symlink_to(data / "nyc_taxi")
    return rendered(TUTORIALS[name], folder)


def sentences(e: Example) -> list[str]:
    """What the worked example says in words, with the numbers put in."""
    cell = {(o, d): int(v) for o, d, v in zip(e.flows.origin, e.flows.destination, e.flows.volume, strict=True)}
    small = sum(v for v in cell.values() if v < e.k)
    of_dual, of_joint = _search(e.dual_at, e.budget)[-1], _search(e.joint_at, e.budget)[-1]
    (left_a, left_s), (a, s), price, _ = of_dual
    found = e.boxes.solve_for_budget(e.budget)
    assert (found.multiplier, found.cost, found.suppressed) == (of_joint[2], *of_joint[1])
    assert (e.dual.multiplier, e.dual.cost, e.dual.suppressed) == (price, a, s)
    before, rest = e.joint_boxes(found.choice), e.budget - found.suppressed
    e.boxes.spend_slack(found, rest)
    after, spent = e.joint_boxes(found.choice), e.boxes.cost_of(found.choice)
    cost = {e.box(o, d): (int(v), int(c)) for o, d, v, c in
            zip(e.boxes.origin, e.boxes.destination, e.boxes.volume, e.boxes.cost, strict=True)}  # fmt: skip
    (was,), (now,) = set(before) - set(after), set(after) - set(before)
    gap = {
        "dual": 100 * float(a / e.dual.lower_bound(e.budget) - 1),
        "exact": 100 * (a / e.exact.cost - 1),
        "joint": 100 * float(spent / found.lower_bound(e.budget) - 1),
    }
    (coarse,) = set(e.dual_boxes(e.dual.choice)) - set(e.dual_boxes(e.exact.choice))
    (fine,) = set(e.dual_boxes(e.exact.choice)) - set(e.dual_boxes(e.dual.choice))
    c = cost
    return [
        f"{e.total} trips go between them", f"{e.budget} trips, since {e.total / 10:g} is rounded down",
        f"{len(e.boxes)} boxes are left", f"{small} trips are suppressed, {100 * small / e.total:.0f} %",
        f"With v_target = {e.target:g}:", f"keeps the budget of {e.budget}",
        f"C and D to CD costs {c['CD→CD'][1]} whole, and {c['CD→D'][1]} + {c['CD→CD'][0] - c['CD→D'][0]}λ",
        f"λ < {Fraction(c['CD→CD'][1] - c['CD→D'][1], c['CD→CD'][0] - c['CD→D'][0])}",
        f"λ = {price}, two pieces cost the same: {left_a} + {left_s} · {price} = {a} + {s} · {price} = "
        f"{float(_worth((a, s), price)):g}. The left one suppresses {left_s} trips",
        f"{a}, with {s} trips suppressed",
        f"{a} − {price} · ({e.budget} − {s}) = {float(e.dual.lower_bound(e.budget)):g}", f"at most {gap['dual']:.3f} % from",
        f"{e.budget - s} trips of the budget were left", f"({e.exact.cost}, {e.exact.suppressed}): {fine} in place of {coarse} "
        f"saves {a - e.exact.cost} and suppresses {e.exact.suppressed - s}", f"`atg-dual` was {gap['exact']:.4f} % above it",
        f"AB→AB holds {c['AB→AB'][0]} trips and costs {c['AB→AB'][1]}",
        f"A→AB ({c['A→AB'][0]} trips, {c['A→AB'][1]}) and B→A ({c['B→A'][0]}, {c['B→A'][1]}). "
        f"Together {c['A→AB'][1] + c['B→A'][1]}",
        f"A→B ({c['A→B'][0]}, {c['A→B'][1]}) and AB→A ({c['AB→A'][0]}, {c['AB→A'][1]}). Together {c['A→B'][1] + c['AB→A'][1]}",
        f"to A→B and B→A: {c['A→B'][1] + c['B→A'][1]}, and the {cell[0, 0]} trips from A to A are suppressed",
        f"at λ = {found.multiplier} costs {found.cost} and suppresses {found.suppressed}", f"{rest} trips are left",
        f"{was} ({c[was][1]}) becomes {now} ({c[now][1]}), and the {c[was][0] - c[now][0]} trips to D are suppressed",
        f"That makes {spent}, with all {e.budget} trips used",
        f"{found.cost} − {found.multiplier} · {rest} = {found.lower_bound(e.budget)}, "
        f"so the certified gap is {gap['joint']:.3f} %",
        f"From A, {cell[0, 0]} trips to A and {cell[0, 2]} to C are left over: {cell[0, 0] + cell[0, 2]}",
        f"{cell[2, 1]} + {cell[2, 2]} from C, and {cell[3, 0]} + {cell[3, 3]} from D",
        f"From B {cell[1, 2]} + {cell[1, 3]} = {cell[1, 2] + cell[1, 3]} are left",
        f"{e.budget} trips are suppressed, which is at least k", f"it is not 0 (here it is {cell[1, 3]})",
        f"the smallest crowd in `flows.csv` is {min(c[box][0] for box in after)}",
        f"{e.budget} of {e.total - e.budget} + {e.budget} trips are suppressed, {100 * e.budget / e.total:.1f} %",
    ]  # fmt: skip


def test_the_worked_example_says_what_comes_out(tmp_path: Path) -> None:
    assert worked_example(tmp_path) == WORKED.read_text()
    text = " ".join(WORKED.read_text().split())
    assert [s for s in sentences(Example(tmp_path)) if s not in text] == []


@pytest.mark.slow  # minutes of work; `make test` parses the commands (test_docs.py) and runs the worked example whole
@pytest.mark.realdata
@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_says_what_comes_out(name: str, realdata: Path, tmp_path: Path) -> None:
    made, written = tutorial(name, tmp_path, realdata), TUTORIALS[name].read_text()
    assert _NUMBER.sub("#", made).split() == _NUMBER.sub("#", written).split()
    pairs = zip(_NUMBER.findall(made), _NUMBER.findall(written), strict=True)
    assert [(new, old) for new, old in pairs if not math.isclose(_value(new), _value(old), rel_tol=0.1)] == []


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _copy_small(drawn: Path, picture: Path) -> None:
    """Copy a picture with 128 colors, so that pages load fast: at most 300 kB each."""
    from PIL import Image

    image = Image.open(drawn).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("worked", *TUTORIALS):
        with tempfile.TemporaryDirectory() as scratch:
            if name == "worked":
                WORKED.write_text(worked_example(Path(scratch)))
            else:
                from conftest import REAL_DATA

                TUTORIALS[name].write_text(tutorial(name, Path(scratch), REAL_DATA))
                for drawn, picture in PICTURES.get(name, {}).items():
                    _copy_small(Path(scratch) / drawn, DOCS / "pictures" / picture)
