"""Checks that all backends share: guarantees on written files, k against the data, warnings for the user."""

from __future__ import annotations

from functools import partial
from typing import Any

from crowdveil.advice import what_to_change
from crowdveil.errors import InputError
from crowdveil.guarantees import (
    BoundedVolumes,
    Finding,
    Guarantee,
    TrueVolumes,
    WellFormedFlows,
    WellFormedTrajectories,
)
from crowdveil.guarantees.base import refuse_broken
from crowdveil.io.notes import ReadNotes
from crowdveil.io.parallel import side_by_side
from crowdveil.io.written import WrittenRelease
from crowdveil.method import Method, RowSemantics
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params


def check(
    written: WrittenRelease,
    guarantees: tuple[Guarantee, ...],
    original: Flows | Trajectories | None = None,
    source: Ints | None = None,
) -> list[tuple[Guarantee, Finding]]:
    """Check each guarantee on the written files, and against the `original` if it is given; `source` is the original of each
    written trajectory.
    """
    if original is None:
        checks = [partial(guarantee.check, written) for guarantee in guarantees]
    elif isinstance(original, Trajectories):
        checks = [partial(guarantee.check_from, written, original, source) for guarantee in guarantees]
    else:
        checks = [partial(guarantee.check_with, written, original) for guarantee in guarantees]
    return list(zip(guarantees, side_by_side(*checks), strict=True))


_VOLUMES: dict[RowSemantics, tuple[Guarantee, ...]] = {
    "exact": (TrueVolumes(),),
    "overlapping": (BoundedVolumes(),),
    "noisy": (),
}


def structural_guarantees(method: Method) -> tuple[Guarantee, ...]:
    """Return the guarantees of every release of flows or trajectories."""
    if method.takes is Flows:
        return (WellFormedFlows(), *_VOLUMES[method.row_semantics])
    return (WellFormedTrajectories(),)


def validate_release_tables(written: WrittenRelease) -> None:
    """Raise unless the tables of a release are well-formed; for those that show their content."""
    form = WellFormedFlows() if written.is_flows else WellFormedTrajectories()
    refuse_broken([(form, form.check(written))])


def without_exact_figures(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of a noisy release without exact figures of the data, which would undo the noise."""
    cost, read_from = manifest["cost"], manifest["input"]
    return manifest | {
        "input": read_from | {"notes": [], "dropped": {}},
        "cost": {name: value for name, value in cost.items() if name != "suppressed_volume_percent"},
    }


def add_run_warnings(
    method: Method, data: Flows | Trajectories, params: Params, published: int, notes: ReadNotes, *, seed_given: bool
) -> None:
    """Note what a user easily overlooks."""
    if seed_given and method.row_semantics == "noisy":
        notes.say("the noise was drawn with the seed that was given, which can remove it: keep the seed secret.")
    if hasattr(params, "k") and data.counts != "people":
        notes.say(f"people are not known, so k counts {data.counts} (name the column of people with --user).")
    elif what_k_counts(data, params) != data.counts:
        notes.say("k counts trajectories, as asked: all of a group may be one person's.")
    if isinstance(data, Flows) and data.weight is not None and len(data):
        percent = round(100 * float((data.volume == 0).mean()))
        notes.say(
            f"weights are added up exactly, and then rounded to whole trips: {percent} % of the flows become 0 trips, and their "
            "people still count."
        )
    if published == 0:
        changes = what_to_change(data, params)
        notes.say(f"nothing could be published{f'; choose {changes}' if changes else ''}.")


def what_k_counts(data: Flows | Trajectories, params: Params) -> str:
    """Return what k counts: people where they are known, unless trajectories are asked for; else trips or trajectories."""
    return "trajectories" if getattr(params, "count_trajectories", False) else data.counts


def check_k_feasible(data: Flows | Trajectories, params: Params) -> None:
    """Raise if k is larger than the number of people, or of what k counts, in all of the data."""
    counts = what_k_counts(data, params)
    exact = not isinstance(data, Flows) or data.crowd_is_exact
    refuse_large_k(params, data.crowd if counts == data.counts else len(data), counts, exact=exact)


def refuse_large_k(params: Params, crowd: int, counts: str, *, exact: bool = True) -> None:
    """Raise if k is larger than the group of all, or than an upper bound of its size."""
    k = getattr(params, "k", None)
    if isinstance(k, int) and crowd < k:
        most = "" if exact else "at most "
        raise InputError(
            f"k: wanted at most the {counts} in the data, {most}{crowd:,}, but got {k:,}; choose a smaller k."
        )
