"""Attack trajectories, before and after they were anonymized, or a release of flows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crowdveil.attacks.adversary_view import AggregatedTrajectories
from crowdveil.attacks.base import AllAttackParams
from crowdveil.attacks.dominance import Groups
from crowdveil.attacks.od.published import Published
from crowdveil.attacks.od.releases import PublishedReleases
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.engine.progress import Progress, Stage, no_progress
from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.guarantees import FlowKAnonymity
from crowdveil.io.atomic import new_files
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.release_reader import load_flow_release_alone, load_trajectory_release
from crowdveil.io.tables import check_ending
from crowdveil.io.written_release import MANIFEST_FILE, WrittenRelease
from crowdveil.model.canonical import with_canonical_source
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.reading import FlowReading, TrajectoryReading, read
from crowdveil.registry import ATTACKS, EXPERIMENTS, find_attack
from crowdveil.report.attack_results import (
    ALL,
    AttackResults,
    ExposureResults,
    attack_flow_release,
    attack_params,
    attack_trajectories,
    named_attacks,
)
from crowdveil.run import releases
from crowdveil.run.manifest import original_input_options
from crowdveil.verbs.base import (
    FLOWS,
    PACKED,
    TABLES,
    InputFile,
    Outcome,
    Output,
    PlainReading,
    TableForm,
    Task,
    Verb,
    with_examples,
)
from crowdveil.verbs.opened import row_semantics_of, split_options, visible


@visible
def attack(
    name: str,
    data: Any,
    release: str | Path | TrajectoryRelease | Sequence[str | Path] | None = None,
    output: str | Path | None = None,
    *,
    pairing: Any = None,
    original: Any = None,
    overwrite: bool = False,
    notes: ReadNotes | None = None,
    progress: Progress = no_progress,
    stage: Stage = lambda name: None,
    **options: Any,
) -> AttackResults | ExposureResults:
    """Attack trajectories, before and after they were anonymized, or a release of flows.

    `name` is that of an attack, or `all`. For trajectories `data` are the original ones; with the folder of a `release` (or a
    `TrajectoryRelease`) the same adversary tries to re-identify the same people in it; `pairing`, where it was kept, gives the
    original of each published trajectory. For flows `data` is the folder of the release, or a `FlowRelease`. `options` are the
    attack's parameters and input options. With `output` the result is written as JSON, CSV or Parquet. Numbers of trajectories
    are exact, and so confidential.

    The attack `releases` takes the folder of a release as `data`, that of another one (or a list of them) as `release`, and the
    trips or flows that they were made of as `original`, to count what is recovered. The attack `trajectory-recovery` takes
    original trajectories as `data`, and a release of flows of them as `release`, if there is one.

    The attack `dominance` takes a release of flows as `data`, or original trajectories with a `release` and its `pairing`.

    >>> crowdveil.attack("location", "cabs.csv", "out", knowledge=3, tile_m=500)["location"]  # doctest: +SKIP
    """
    said = notes if notes is not None else ReadNotes()
    takes = _attack_takes(name, data)
    attacks = named_attacks(name, takes)
    if original is not None and takes is not PublishedReleases:
        raise ParameterError(Option("original"), "it is of the attack releases alone. Leave it out.")
    if takes is PublishedReleases:
        reading, parameters = split_options(options, FlowReading)
    elif takes is FlowRelease:
        if release is not None or pairing is not None:
            raise ParameterError(
                "release", "an attack on flows reads one release alone. Give its folder in place of the input."
            )
        reading, parameters = dict[str, Any](), options
    else:
        reading, parameters = split_options(options, TrajectoryReading)
        if pairing is not None and release is None:
            raise ParameterError(
                Option("pairing"), "it gives the originals of published trajectories. Give the release too."
            )
    params = attack_params(attacks, name, parameters)
    if output is not None:
        check_ending(Path(output), ".json")
    with new_files(output, overwrite=overwrite) as (file,):
        stage("reading")
        found: AttackResults | ExposureResults
        of_flows: dict[type, Callable[[], Published | PublishedReleases | AggregatedTrajectories | Groups]] = {
            PublishedReleases: lambda: _published_releases(data, release, original, reading, said),
            AggregatedTrajectories: lambda: _aggregated(data, release, pairing, reading, said),
            FlowRelease: lambda: _published(data),
            Groups: lambda: _groups(data, release, pairing, reading, said),
        }
        if takes in of_flows:
            published = of_flows[takes]()
            stage(name)
            found = attack_flow_release(published, attacks, params)
        else:
            before, after, k = _before_and_after(data, release, pairing, reading, said)
            stage(name)
            found = attack_trajectories(before, after, attacks, params, k, progress)
        if file is not None:
            found.write(file)
    return found


def _attack_takes(name: str, data: Any) -> type:
    """Return the type of data that an attack takes; for `all`, the type that is given."""
    if name != ALL:
        return find_attack(name).takes
    return FlowRelease if _is_release(data) or isinstance(data, FlowRelease) else Trajectories


def _published(data: Any) -> Published:
    """Open a release of flows, with its k and what its volumes are."""
    if isinstance(data, FlowRelease):
        return Published(data)
    if not isinstance(data, str | Path):
        raise InputError("input", "Expected the folder of a release of flows. Give that.")
    manifest, written = releases.sound_release(Path(data))
    if not written.is_flows:
        raise InputError(
            data,
            Text("it holds trajectories. Give the original trajectories, and this with {release}, to attack them."),
        )
    return _over_zones(manifest, written, Zones.from_ids(written.tile_names))


def _over_zones(manifest: Manifest, written: WrittenRelease, zones: Zones) -> Published:
    release = load_flow_release_alone(written, zones, manifest.step_seconds, manifest.time_zone)
    return Published(release, _k_of(manifest), row_semantics_of(manifest))


def _published_releases(
    data: Any, others: Any, original: Any, options: dict[str, Any], notes: ReadNotes
) -> PublishedReleases:
    """Open releases of flows over the tiles of all of them, and the original if given."""
    listed = [data, *(others if isinstance(others, list | tuple) else [] if others is None else [others])]
    if len(listed) < 2 or not all(isinstance(folder, str | Path) for folder in listed):
        raise InputError("input", "Expected the folders of two or more releases of flows. Give them.")
    opened = [releases.sound_release(Path(folder)) for folder in listed]
    for folder, (_, written) in zip(listed, opened, strict=True):
        if not written.is_flows:
            raise InputError(folder, "Expected releases of flows, but it holds trajectories. Leave it out.")
    if len({_fold_of(manifest) for manifest, _ in opened}) > 1:
        raise InputError(
            "input",
            Text("times of some releases are folded ({fold}). Expected releases that are folded alike, or none."),
        )
    zones = Zones.from_ids(sorted({tile for _, written in opened for tile in written.tile_names}))
    flows = None
    if original is not None:
        reading = FlowReading.checked(original_input_options(opened[0][0], options))
        flows = read(Flows, original, reading, notes)
    return PublishedReleases(
        tuple(str(folder) for folder in listed), tuple(_over_zones(*one, zones) for one in opened), flows
    )


def _aggregated(
    data: Any, release: Any, pairing: Any, options: dict[str, Any], notes: ReadNotes
) -> AggregatedTrajectories:
    """Read trajectories, and the release of flows that was made of them if given."""
    if pairing is not None:
        raise ParameterError(Option("pairing"), "a release of flows has no pairing. Leave it out.")
    reading = TrajectoryReading.checked(options)
    original, tz = read(Trajectories, data, reading, notes), reading.tz or "UTC"
    if release is None:
        return AggregatedTrajectories(original, tz)
    manifest, written = releases.sound_release(Path(release))
    if not written.is_flows:
        raise InputError(release, "Expected a release of flows, but it holds trajectories. Give one of flows, or none.")
    if _fold_of(manifest) is not None:
        raise InputError(release, Text("its times are folded ({fold}), so that its steps do not follow one another."))
    return AggregatedTrajectories(original, tz, written, _k_of(manifest))


def _groups(data: Any, release: Any, pairing: Any, options: dict[str, Any], notes: ReadNotes) -> Groups:
    """Return the rows of a release of flows, or the equivalence classes of a release of trajectories with its originals."""
    if release is None and (isinstance(data, FlowRelease) or _is_release(data)):
        published = _published(data)
        if published.release.k_unit != "people" or published.row_semantics == "noisy":
            raise InputError("input", "Expected flows with numbers of people; this release has none.")
        if not isinstance(data, FlowRelease) and "weight" in releases.sound_release(Path(data))[0].input.options:
            raise InputError("input", "Expected numbers of trips, but the volumes are weighted. Leave the attack out.")
        return Groups.of_rows(published.release, published.k)
    if release is None:
        raise InputError(
            Option("release"), "Expected a release of these trajectories. Name its folder, or give one of flows alone."
        )
    original, made, k = _before_and_after(data, release, pairing, options, notes)
    if made is None or made.source is None:
        raise InputError(Option("pairing"), "the people of a group are not known. Give the pairing of the release.")
    return Groups.of_classes(original, made, k)


def _is_release(data: Any) -> bool:
    return isinstance(data, str | Path) and (Path(data) / MANIFEST_FILE).is_file()


def _fold_of(manifest: Manifest) -> str | None:
    fold: str | None = manifest.input.options.get("fold")
    return fold


def _k_of(manifest: Manifest) -> int | None:
    return (manifest.guaranteed(FlowKAnonymity.name) or {}).get("k")


def _before_and_after(
    data: Any, release: Any, pairing: Any, options: dict[str, Any], notes: ReadNotes
) -> tuple[Trajectories, TrajectoryRelease | None, int | None]:
    """Read the original, the release, paired with it where that is known, and k."""
    k = None
    if release is not None and not isinstance(release, TrajectoryRelease):
        manifest, written = releases.sound_release(Path(release))
        if not isinstance(data, Trajectories):
            options = original_input_options(manifest, options)
        release, k = load_trajectory_release(written), manifest.k
    original = read(Trajectories, data, TrajectoryReading.checked(options), notes)
    if release is not None and pairing is not None:
        release = releases.with_pairing(release, pairing, original)
    elif release is not None:
        release = with_canonical_source(release, data, original)
    return original, release, k


_TRAJECTORIES = (Trajectories, AggregatedTrajectories, Groups)
_SUMMARY = "All attacks on what is given: trajectories, or a release of flows."


def _takes(name: str) -> type:
    """Return what an attack takes; all attacks take trajectories, and a release of flows in their place."""
    return Trajectories if name == ALL else find_attack(name).takes


def _options(name: str) -> tuple[type[Params], ...]:
    own = AllAttackParams if name == ALL else find_attack(name).params
    return (own, PlainReading) if _takes(name) in _TRAJECTORIES else (own,)


def _files(name: str) -> tuple[InputFile, ...]:
    if _takes(name) is PublishedReleases:
        original = "Trips or flows of the releases, to count what is recovered."
        return (
            InputFile("data", PACKED, "RELEASE_FOLDER"),
            InputFile("release", PACKED, "RELEASE_FOLDER...", several=True, required=False, argument=True),
            InputFile("original", FLOWS, help=original, required=False, sent=False),
        )
    if _takes(name) not in _TRAJECTORIES:
        return (InputFile("data", PACKED, "RELEASE_FOLDER"),)
    either = name in (ALL, "dominance")
    return (
        InputFile("data", (*TABLES, *PACKED) if either else TABLES, "TRAJECTORIES" + "_OR_RELEASE_FOLDER" * either),
        InputFile("release", PACKED, "FOLDER", "Look for the same people in this release too.", required=False),
        InputFile("pairing", TABLES, help="Table that says which published trajectory is whose.", required=False),
    )


def _run(task: Task) -> Outcome:
    found = attack(
        task.name, task.files["data"], task.files.get("release"), task.output, pairing=task.files.get("pairing"),
        original=task.files.get("original"), overwrite=task.overwrite, **task.reporting,
        **task.of(*_options(task.name), *_local(task.name)),
    )  # fmt: skip
    return Outcome(task.notes, [*found.lines(), *([CONFIDENTIAL] if found.confidential else [])], found.as_json)


def _local(name: str) -> tuple[type[Params], ...]:
    """Return the options of reading the original of several releases, which stays here."""
    return (FlowReading,) if _takes(name) is PublishedReleases else ()


def _about(name: str) -> dict[str, Any]:
    if name == ALL:
        return {"summary": _SUMMARY}
    attack, takes = find_attack(name), _takes(name)
    shown = "trajectories" if takes in _TRAJECTORIES else "releases" if takes is PublishedReleases else "release"
    return {"summary": attack.summary, "title": attack.title, "takes": shown}


def _help(name: str) -> str:
    """Return what the adversary knows, without the sections below it, and an example."""
    text = _SUMMARY if name == ALL else find_attack(name).doc.strip()
    trajectories, several = _takes(name) in _TRAJECTORIES, _takes(name) is PublishedReleases
    release = "flows-of-cabs/" if name == "trajectory-recovery" else "out/"
    example = f"cabs.csv --release {release} --tile-m 500" if trajectories else "hours/ days/" if several else "out/"
    if name == "dominance":
        example = "cabs.csv --release out/ --pairing pairing.parquet"
    return with_examples(text.split("\n\nNotes\n")[0].split("\n\nReferences\n")[0], f"attack {name}", example)


VERB = Verb(
    verb="attack",
    collection="attacks",
    summary="Find out what an adversary gets who knows a little: from trajectories, before and after, or from flows.",
    names=lambda: [ALL, *ATTACKS, *EXPERIMENTS],
    group=with_examples(
        "Estimate the re-identification risk: how likely an adversary with background knowledge finds a person.\n\n"
        "Trajectories are attacked in the original and in a release of it, flows in the release alone.",
        "attack",
        "location cabs.csv --knowledge 3 --tile-m 500",
        "all cabs.csv --release out/ --pairing pairing.parquet --tile-m 500",
        "homogeneity out/",
        "releases hours/ days/",
    ),
    find=lambda name: name if name == ALL else find_attack(name).name,
    run=_run,
    options=_options,
    local=_local,
    files=_files,
    output=lambda name: Output(
        "Results to write: .json, .csv or .parquet; for trajectories, a table has a row for each individual.",
        form=TableForm, json=True, stem="attack",
    ),
    hidden=lambda name: frozenset(("zones", "zone_id")) if _takes(name) in _TRAJECTORIES else frozenset(),
    about=_about,
    help=_help,
    example={"tile_m": 500},
)  # fmt: skip
