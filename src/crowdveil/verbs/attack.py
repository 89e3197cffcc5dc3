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
from crowdveil.io.manifest import Manifest, read_manifest
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
    OF_METHODS,
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
    """Attack trajectories before and after anonymization, or a release of flows.

    `name` is an attack, or `all`. For trajectories, `data` are the original ones. With the folder of a `release` (or a
    `TrajectoryRelease`), the same adversary tries to re-identify the same people in it; `pairing`, if it was kept, has the
    original of each published trajectory. For flows, `data` is the folder of the release, or a `FlowRelease`. `options` are the
    attack's parameters and input options. `output` writes the result as JSON, CSV or Parquet. Numbers about trajectories are
    exact and confidential.

    The attack `releases` takes the folder of a release as `data`, another one (or a list) as `release`, and their trips or flows
    as `original`, to count recovered ones. The attack `trajectory-recovery` takes original trajectories as `data`, and a release
    of their flows as `release`, if there is one. The attack `dominance` takes a release of flows as `data`, or original
    trajectories with a `release` and its `pairing`.

    >>> crowdveil.attack("location", "cabs.csv", "out", knowledge=3, tile_m=500)["location"]  # doctest: +SKIP
    """
    notes = ReadNotes() if notes is None else notes
    takes = _attack_takes(name, data)
    attacks = named_attacks(name, takes)
    if original is not None and takes is not PublishedReleases:
        raise ParameterError(Option("original"), "only the attack releases compares with an original. Leave it out.")
    if pairing is not None and takes in (PublishedReleases, AggregatedTrajectories):
        raise ParameterError(Option("pairing"), "releases of flows have no pairing. Leave it out.")
    if takes is PublishedReleases:
        reading, parameters = split_options(options, FlowReading)
        if reading and original is None:
            raise ParameterError(
                Option(next(iter(reading))), Text("Expected the original with this option, got none. Add {original}.")
            )
    elif takes is FlowRelease:
        if release is not None or pairing is not None:
            raise ParameterError("release", "an attack on flows reads a single release. Give its folder as the input.")
        reading, parameters = dict[str, Any](), options
    else:
        reading, parameters = split_options(options, TrajectoryReading)
        if pairing is not None and release is None:
            raise ParameterError(Option("pairing"), "Expected a release with the pairing, got none. Name its folder.")
    params = attack_params(attacks, name, parameters)
    if output is not None:
        check_ending(Path(output), ".json")
    with new_files(output, overwrite=overwrite) as (file,):
        stage("reading")
        found: AttackResults | ExposureResults
        of_flows: dict[type, Callable[[], Published | PublishedReleases | AggregatedTrajectories | Groups]] = {
            PublishedReleases: lambda: _published_releases(data, release, original, reading, notes),
            AggregatedTrajectories: lambda: _aggregated(data, release, reading, notes),
            FlowRelease: lambda: _published(data),
            Groups: lambda: _groups(data, release, pairing, reading, notes),
        }
        if takes in of_flows:
            published = of_flows[takes]()
            stage(name)
            found = attack_flow_release(published, attacks, params)
        else:
            before, after, k = _before_and_after(data, release, pairing, reading, notes)
            stage(name)
            found = attack_trajectories(before, after, attacks, params, k, progress)
        if file is not None:
            found.write(file)
    return found


def _attack_takes(name: str, data: Any) -> type:
    """Return the type of data that an attack takes; for `all`, the type of the data."""
    if name != ALL:
        return find_attack(name).takes
    return FlowRelease if _is_release(data) or isinstance(data, FlowRelease) else Trajectories


def _published(data: Any) -> Published:
    """Open a release of flows, with its k and row semantics."""
    if isinstance(data, FlowRelease):
        return Published(data)
    if not isinstance(data, str | Path):
        raise InputError("input", "Expected the folder of a release of flows, got other data. Name the folder.")
    manifest, written = releases.sound_release(Path(data))
    if not written.is_flows:
        raise InputError(
            data,
            Text(
                "Expected flows, got a release of trajectories. Give the original trajectories, and this as {release}."
            ),
        )
    return _over_zones(manifest, written, Zones.from_ids(written.tile_names))


def _over_zones(manifest: Manifest, written: WrittenRelease, zones: Zones) -> Published:
    release = load_flow_release_alone(written, zones, manifest.step_seconds, manifest.time_zone)
    return Published(release, _k_of(manifest), row_semantics_of(manifest))


def _published_releases(
    data: Any, others: Any, original: Any, options: dict[str, Any], notes: ReadNotes
) -> PublishedReleases:
    """Open releases of flows over the tiles of all of them, and the original, if there is one."""
    listed = [data, *(others if isinstance(others, list | tuple) else [] if others is None else [others])]
    if len(listed) < 2 or not all(isinstance(folder, str | Path) for folder in listed):
        raise InputError("input", "Expected the folders of two or more releases of flows, got fewer. Name them.")
    opened = [releases.sound_release(Path(folder)) for folder in listed]
    for folder, (_, written) in zip(listed, opened, strict=True):
        if not written.is_flows:
            raise InputError(folder, "Expected a release of flows, got one of trajectories. Leave it out.")
    if len({_fold_of(manifest) for manifest, _ in opened}) > 1:
        raise InputError(
            "input",
            Text("Expected releases with the same folding of time ({fold}), got different ones. Leave some out."),
        )
    zones = Zones.from_ids(sorted({tile for _, written in opened for tile in written.tile_names}))
    flows = None
    if original is not None:
        reading = FlowReading.checked(original_input_options(opened[0][0], options))
        flows = read(Flows, original, reading, notes)
    return PublishedReleases(
        tuple(str(folder) for folder in listed), tuple(_over_zones(*one, zones) for one in opened), flows
    )


def _aggregated(data: Any, release: Any, options: dict[str, Any], notes: ReadNotes) -> AggregatedTrajectories:
    """Read trajectories, and the release of their flows, if there is one."""
    reading = TrajectoryReading.checked(options)
    original, tz = read(Trajectories, data, reading, notes), reading.tz or "UTC"
    if release is None:
        return AggregatedTrajectories(original, tz)
    manifest, written = releases.sound_release(Path(release))
    if not written.is_flows:
        raise InputError(release, "Expected a release of flows, got one of trajectories. Name another, or none.")
    if _fold_of(manifest) is not None:
        raise InputError(
            release, Text("Expected consecutive time steps, got folded ones ({fold}). Name another release.")
        )
    return AggregatedTrajectories(original, tz, written, _k_of(manifest))


def _groups(data: Any, release: Any, pairing: Any, options: dict[str, Any], notes: ReadNotes) -> Groups:
    """Return the rows of a release of flows, or the equivalence classes of published trajectories with their originals."""
    if release is None and (isinstance(data, FlowRelease) or _is_release(data)):
        published = _published(data)
        if published.release.k_unit != "people" or published.row_semantics == "noisy":
            raise InputError("input", "Expected flows with numbers of people, got none. Name another release.")
        if not isinstance(data, FlowRelease) and "weight" in read_manifest(Path(data)).input.options:
            raise InputError("input", "Expected numbers of trips, got weighted volumes. Leave the attack out.")
        return Groups.of_rows(published.release, published.k)
    if release is None:
        raise InputError(
            Option("release"),
            "Expected a release of these trajectories, got none. Name its folder, or attack a release of flows.",
        )
    original, made, k = _before_and_after(data, release, pairing, options, notes)
    if made is None or made.source is None:
        raise InputError(Option("pairing"), "Expected the pairing of the release, to count people, got none. Name it.")
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
    """Read the original; the release, paired with it if possible; and k."""
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
_SUMMARY = "Run all attacks on trajectories, or all on a release of flows."


def _takes(name: str) -> type:
    """Return the type of data that an attack takes; for `all`, trajectories (a release of flows is possible)."""
    return Trajectories if name == ALL else find_attack(name).takes


def _options(name: str) -> tuple[type[Params], ...]:
    own = AllAttackParams if name == ALL else find_attack(name).params
    return (own, PlainReading) if _takes(name) in _TRAJECTORIES else (own,)


def _files(name: str) -> tuple[InputFile, ...]:
    if _takes(name) is PublishedReleases:
        original = "Trips or flows behind the releases, to count recovered ones."
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
        InputFile("release", PACKED, "FOLDER", "Also search for the same people in this release.", required=False),
        InputFile("pairing", TABLES, help="Table with the original of each published trajectory.", required=False),
    )


def _run(task: Task) -> Outcome:
    found = attack(
        task.name, task.files["data"], task.files.get("release"), task.output, pairing=task.files.get("pairing"),
        original=task.files.get("original"), overwrite=task.overwrite, **task.reporting,
        **task.of(*_options(task.name), *_local(task.name)),
    )  # fmt: skip
    return Outcome(task.notes, [*found.lines(), *([CONFIDENTIAL] if found.confidential else [])], found.as_json)


def _local(name: str) -> tuple[type[Params], ...]:
    """Return the options of reading the original of several releases, which is never sent."""
    return (FlowReading,) if _takes(name) is PublishedReleases else ()


def _about(name: str) -> dict[str, Any]:
    if name == ALL:
        return {"summary": _SUMMARY}
    attack, takes = find_attack(name), _takes(name)
    shown = "trajectories" if takes in _TRAJECTORIES else "releases" if takes is PublishedReleases else "release"
    return {"summary": attack.summary, "title": attack.title, "takes": shown}


def _help(name: str) -> str:
    """Return the description of the adversary, without further sections, and an example."""
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
    summary="Estimate the re-identification risk of trajectories, before and after anonymization, or of flows.",
    names=lambda: [ALL, *ATTACKS, *EXPERIMENTS],
    group=with_examples(
        "Estimate the re-identification risk: how often an adversary with background knowledge finds a person.\n\n"
        "Attacks on trajectories compare the original with a release. Attacks on flows need the release alone.",
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
        "File to write: .json, .csv or .parquet. For trajectories, tables have a row for each person.",
        form=TableForm, json=True, stem="attack",
    ),
    hidden=lambda name: frozenset(("zones", "zone_id")) if _takes(name) in _TRAJECTORIES else OF_METHODS,
    about=_about,
    help=_help,
    example={"tile_m": 500},
)  # fmt: skip
