"""Checks that all backends share: guarantees on written files, k against the data, warnings for the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crowdveil import guarantees as library
from crowdveil.errors import GuaranteeViolatedError, InputError, Option, ParameterError, Text
from crowdveil.guarantees import Finding, Guarantee, guarantee_from_manifest
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.omx import is_omx
from crowdveil.io.tiling import Tiling
from crowdveil.io.written_release import WrittenRelease
from crowdveil.methods.base import Facts, Method, RowSemantics
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.partition import Partition
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.trips import Trips
from crowdveil.params import Params
from crowdveil.registry import find_method


def check(
    written: WrittenRelease,
    guarantees: tuple[Guarantee, ...],
    original: Flows | Trajectories | None = None,
    source: Ints | None = None,
) -> list[tuple[Guarantee, Finding]]:
    """Check each guarantee on the written files, and against the `original` if it is given.

    `source` is the original trajectory of each written one.
    """
    if original is None:
        return [(guarantee, guarantee.check(written)) for guarantee in guarantees]
    if isinstance(original, Trajectories):
        return [(guarantee, guarantee.check_with_trajectories(written, original, source)) for guarantee in guarantees]
    return [(guarantee, _check_with_flows(guarantee, written, original)) for guarantee in guarantees]


def _check_with_flows(guarantee: Guarantee, written: WrittenRelease, original: Flows) -> Finding:
    """Check a guarantee with the original flows; where it holds by the files alone, return that finding."""
    found = guarantee.check_with_flows(written, original)
    if not (found.holds and found.with_original):
        return found
    alone = guarantee.check(written)
    return alone if alone.holds else found


def structural_guarantees(method: Method, params: Params, *, repeated: bool = False) -> tuple[Guarantee, ...]:
    """Return the guarantees of every release of flows or trajectories; some rows are `repeated` from an earlier release."""
    if method.takes is Flows:
        k = getattr(params, "k", None)
        volumes: dict[RowSemantics, tuple[Guarantee, ...]] = {
            "exact": (library.TrueVolumes(people_of=k, repeats_within=k if repeated else None),),
            "overlapping": (library.BoundedVolumes(),), "noisy": (),
        }  # fmt: skip
        return (library.WellFormedFlows(), *volumes[method.row_semantics])
    return (library.WellFormedTrajectories(),)


def stated_guarantees(manifest: Manifest) -> tuple[Guarantee, ...]:
    """Return the guarantees that a manifest states; raise where it lacks one that its method gives with its parameters."""
    stated = tuple(guarantee_from_manifest(entry.name, entry.parameters) for entry in manifest.guarantees)
    name = manifest.method.name
    if name == DERIVED:
        return _guarantees_of_derived(manifest, stated)
    try:
        method = find_method(name)
        params = method.params.checked(manifest.method.parameters)
    except ParameterError:
        raise InputError(
            f"the manifest names the method {name} with parameters that this version does not know. Use the version "
            "that it names."
        ) from None
    for needed in (*method.guarantees(params, _facts(manifest)), *structural_guarantees(method, params)):
        alike = (g for g in stated if type(g) is type(needed))
        if not any(_without_data(g) == _without_data(needed) for g in alike):
            raise GuaranteeViolatedError(
                f"the manifest does not state the guarantee {needed.name} that the method {name} gives with its parameters; "
                "it was changed, so do not publish the release."
            )
    return stated


DERIVED = "derive"
"""The method that the manifest of a derived release names."""


def _guarantees_of_derived(manifest: Manifest, stated: tuple[Guarantee, ...]) -> tuple[Guarantee, ...]:
    """Return the guarantees of a derived release; raise where it lacks one that every such release has."""
    kinds = {type(guarantee) for guarantee in stated}
    groups = [
        g for g in stated if isinstance(g, library.FlowKAnonymity) and (g.k, g.k_unit) == (manifest.k, manifest.k_unit)
    ]
    if not groups or not {library.SumsOfParent, library.WellFormedFlows} <= kinds or manifest.parent is None:
        raise GuaranteeViolatedError(
            "the manifest does not state a guarantee that every derived release has; it was changed, so do not publish it."
        )
    return stated


def _facts(manifest: Manifest) -> Facts:
    """Return the facts about the data on which guarantees depend, from a manifest; places are not compared."""
    counted = manifest.input.options.get("min_tiles_of")
    return Facts(
        manifest.k_unit, _has_weights(manifest), step_s=manifest.step_seconds, tz=manifest.time_zone, counted_tiles=counted
    )  # fmt: skip


def _has_weights(manifest: Manifest) -> bool:
    """Return whether trips have weights: then their column is an input option, and the cost has the loss by rounding.

    Flows in memory need no option.
    """
    rounded = "flows_rounded_to_0_percent" in manifest.cost
    in_memory = manifest.input.data.kind == "model"
    if not in_memory and rounded != (manifest.input.options.get("weight") is not None):
        raise GuaranteeViolatedError(
            "the manifest contradicts itself on whether trips have weights; it was changed, so do not publish the release."
        )
    return rounded


def _without_data(guarantee: Guarantee) -> dict[str, Any]:
    """Return the parameters of a guarantee that follow from those of the method."""
    return guarantee.model_dump(exclude=set(guarantee.from_data))


def validate_release_tables(written: WrittenRelease) -> None:
    """Raise unless the tables of a release are well-formed; for those that show their content."""
    form = library.WellFormedFlows() if written.is_flows else library.WellFormedTrajectories()
    require_not_violated([(form, form.check(written))])


def without_exact_figures(manifest: Manifest) -> Manifest:
    """Return the manifest of a noisy release without exact figures of the data, which would undo the noise."""
    data = manifest.input.data.model_copy(update={"people_about": None})
    nothing: dict[str, Any] = {"notes": [], "dropped": {}, "dropped_percent": None, "data": data}
    trials = manifest.risk and [trial.model_copy(update={"risk_percent_before": None}) for trial in manifest.risk]
    cost = {name: value for name, value in manifest.cost.items() if name != "suppressed_volume_percent"}
    return manifest.model_copy(
        update={"risk": trials, "input": manifest.input.model_copy(update=nothing), "cost": cost}
    )


def add_run_warnings(
    method: Method,
    data: Flows | Trajectories,
    params: Params,
    cost: Mapping[str, Any],
    notes: ReadNotes,
    *,
    seed_given: bool,
) -> None:
    """Add warnings to the notes of a run, from its cost as the manifest has it.

    On Spark, `data` is what all partitions have in common.
    """
    if seed_given and method.row_semantics == "noisy":
        notes.add(
            "the noise was drawn with the seed that was given: who knows the seed can remove the noise, so keep it secret."
        )
    if hasattr(params, "k") and data.k_unit != "people":
        notes.add(
            Text(
                "people are not known, so k counts {k_unit} (name the column of people with {user}).",
                k_unit=data.k_unit,
            )
        )
    elif what_k_counts(data, params) != data.k_unit:
        notes.add("k counts trajectories, as asked: all of a group may be one person's.")
    rounded_off = cost.get("flows_rounded_to_0_percent")
    if rounded_off is not None:
        notes.add(
            "weights are added up exactly, and the sums of published flows are rounded to whole trips; methods choose by flows "
            f"rounded alike: {rounded_off} % of the flows become 0 trips, and their people still count; all volumes together "
            f"differ from the weights by {cost['rounding_loss_percent']} % (each time step by at most half a trip)."
        )
    if isinstance(data, Flows):
        warn_if_out_of_date(data.partition, cost, notes)
    if not cost.get("published_flows", cost.get("published_trajectories")):
        changes = what_to_change(data, params)
        notes.add(f"nothing could be published{f'; choose {changes}' if changes else ''}.")


OUT_OF_DATE_POINTS, OUT_OF_DATE_TIMES = 5, 1.5
"""A partition is out of date if more is suppressed than in its release, by these points of a percent and by this factor."""


def warn_if_out_of_date(partition: Partition | None, cost: Mapping[str, Any], notes: ReadNotes) -> None:
    """Add a warning if far more trips are suppressed than in the release that the areas come from."""
    now, before = cost.get("suppressed_volume_percent"), getattr(partition, "suppressed_percent", None)
    if now is None or before is None:
        return
    if now > before + OUT_OF_DATE_POINTS and now > OUT_OF_DATE_TIMES * before:
        notes.add(
            f"{now} % of the trips are suppressed, against {before} % in the release that the areas come from: the areas are "
            "out of date. Make a new partition from recent data."
        )


def what_k_counts(data: Flows | Trajectories, params: Params) -> str:
    """Return what k counts: people where they are known, unless trajectories are asked for; else trips or trajectories."""
    return "trajectories" if getattr(params, "count_trajectories", False) else data.k_unit


def check_zones_given(method: Method, data: Any, zones: Any) -> None:
    """Require zones that do not come from the data, if the method needs them: those of a file, a model in memory, or a matrix."""
    in_data = (
        not isinstance(data, Flows | Trips) and not is_omx(data) and (zones is None or Tiling.of(zones) is not None)
    )
    if method.needs_zones and in_data:
        raise ParameterError(
            Option("zones"),
            f"Expected zones from a file, since {method.name} must not show which ones have trips. Give it, or "
            "points as voronoi:FILE.",
        )


def check_k_feasible(data: Flows | Trajectories, params: Params) -> None:
    """Raise if k is larger than the number of people, or of what k counts, in all of the data."""
    counts = what_k_counts(data, params)
    exact = not isinstance(data, Flows) or data.total_people_is_exact
    refuse_large_k(params, data.total_people if counts == data.k_unit else len(data), counts, exact=exact)


def refuse_large_k(params: Params, crowd: int, counts: str, *, exact: bool = True) -> None:
    """Raise if k is larger than the group of all, or than an upper bound of its size."""
    k = getattr(params, "k", None)
    if isinstance(k, int) and crowd < k:
        most = "" if exact else "at most "
        raise InputError(
            Option("k"), f"Expected at most the {counts} in the data, {most}{crowd:,}, got {k:,}. Choose a smaller k."
        )


_CHANGES = {
    "k": "a smaller k",
    "min_volume": "a smaller min_volume",
    "epsilon": "a larger epsilon",
    "block": "a larger block",
    "min_tiles": "a smaller min_tiles",
    "max_area_km2": "a larger max_area_km2",
    "knowledge": "a smaller knowledge",
    "time_interval_s": "a longer time_interval_s",
    "tile_size_m": "a larger tile_size_m",
    "min_pair_people": "a smaller min_pair_people",
    "max_radius_m": "a larger max_radius_m",
    "max_distance_m": "a larger max_distance_m",
    "max_time_s": "a longer max_time_s",
    "space_threshold_m": "a larger space_threshold_m",
    "time_threshold_s": "a longer time_threshold_s",
    "min_n_swaps": "a smaller min_n_swaps",
}
"""The change to each parameter, by its name, that leaves more to publish."""


def what_to_change(data: Flows | Trajectories, params: Params) -> str:
    """Return the changes that may help, as they follow "choose"; "" where there are none."""
    changes = [text for name, text in _CHANGES.items() if _can_change(params, name)]
    if isinstance(data, Flows):
        changes.append("larger zones")
        if data.step_s is not None:
            changes.append("longer time steps")
    return " or ".join(part for part in (", ".join(changes[:-1]), *changes[-1:]) if part)


def _can_change(params: Params, name: str) -> bool:
    """Return whether a parameter exists, has a value, and is not yet at its limit."""
    field = type(params).model_fields.get(name)
    value = getattr(params, name, None)
    if field is None or value is None:
        return False
    limits = [getattr(bound, sign) for bound in field.metadata for sign in ("ge", "le") if hasattr(bound, sign)]
    if name.startswith("min_") or name in ("k", "knowledge"):
        return value not in limits
    return True
