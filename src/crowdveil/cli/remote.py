"""Run tasks on a server: send them as jobs, follow these, and save their results."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from crowdveil.analysis.heatmap_manifest import is_heat_map
from crowdveil.cli.console import show_sentences
from crowdveil.engine.progress import progress_bar
from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io import archive
from crowdveil.io.atomic import check_file, check_target, new_file, new_folder, scratch_folder
from crowdveil.io.manifest import manifest_path
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, check_picture
from crowdveil.io.written_release import MANIFEST_FILE
from crowdveil.io.zones import VORONOI, is_voronoi
from crowdveil.run import releases
from crowdveil.server.client import Remote, remote, with_paths
from crowdveil.verbs.base import ALL_FILES, PACKED, Outcome, SourceOptions, Task, Verb

LARGEST = 1 << 50
"""Practically no limit for the size of a result; the server has one."""


def server_options(verb: Verb, name: str | None = None) -> list[click.Option]:
    """Return `--server` and `--detach` if servers run the verb, and `--source` if they audit its results."""
    if not verb.collection:
        return []
    options = [
        click.Option(["--server"], envvar="CROWDVEIL_SERVER", metavar="URL",
                     help="Run on this server, with the token in CROWDVEIL_TOKEN. [CROWDVEIL_SERVER]"),
        click.Option(["--detach"], is_flag=True, help="With --server: print the job id and exit; see crowdveil server jobs."),
    ]  # fmt: skip
    if name is not None and any(issubclass(model, SourceOptions) for model in verb.remote(name)):
        options.append(
            click.Option(["--source"], metavar="NAME",
                         help="With --server: source of the data; the result is audited against its ledger on the server. "
                         "[that of the token]")
        )  # fmt: skip
    return options


@dataclass(frozen=True)
class RemoteTarget:
    """A server to run tasks on, and whether to exit after sending."""

    server: Remote
    detach: bool


def remote_target(values: dict[str, Any]) -> RemoteTarget | None:
    """Return the server of a command, None for this machine; remove its options from `values`."""
    url, detach = values.pop("server", None), values.pop("detach", False)
    if url:
        return RemoteTarget(remote(url), bool(detach))
    if detach:
        raise without_server("detach")
    return None


def without_server(option: str) -> ParameterError:
    """Return the error for an option that needs a server."""
    return ParameterError(Option(option), Text("Expected a server, got none. Name one with {server}."))


def send(target: RemoteTarget, verb: Verb, task: Task, *, as_json: bool = False) -> Outcome | None:
    """Run a task as a job and save its result; return None if the job is detached."""
    values, files = _sent(verb, task)
    output = verb.output(task.name)
    if output.form is not None:
        values["format"] = output.format_of(task.output)
        if as_json and values["format"] != "json":
            raise ParameterError(
                Option("json"),
                Text(
                    "Expected one format of the result, got two. Give {json} or another format with {output}, not both."
                ),
            )
    if task.plot is not None:
        values["plot"] = True
    _check_targets(verb, task)
    found: list[str] = []

    def put(_job: dict[str, Any], result: Path) -> None:
        if output.form is None or values["format"] == ALL_FILES:
            put_folder(result, Path(str(task.output)), overwrite=task.overwrite, mark_file=output.mark)
            return
        table = result
        if task.plot is not None:
            made = {f"{output.stem}.{values['format']}": task.output, f"{output.stem}.png": task.plot}
            table = put_files(result, made, overwrite=task.overwrite)
        elif task.output is not None:
            put_file(result, Path(task.output), overwrite=task.overwrite)
        if as_json:
            found.append(table.read_text(encoding="utf-8"))

    server = target.server
    with with_paths(files), progress_bar("sending") as (progress, stage), _sendable(files) as ready:
        job = server.start(verb.collection, task.name, values, ready, progress)
        if target.detach:
            click.echo(job["id"])
            show_sentences([f"the job is queued. Fetch its result with crowdveil server jobs {job['id']} -o OUT."])
            return None
        job = server.follow(job["id"], progress, stage)
        if as_json or task.output is not None or task.plot is not None:
            stage("fetching")
            fetched(server, job, put, progress)
    notes = ReadNotes([*task.notes.texts, *job["summary"]["notes"]])
    return Outcome(notes, job["summary"]["lines"], lambda: json.loads(found[0]))


def _sent(verb: Verb, task: Task) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a task into the parameters and files of a job; reject those for this machine alone."""
    fields = {name for model in verb.models(task.name) for name in model.model_fields}
    roles = {file.role: file for file in verb.files(task.name)}
    for option in task.values:
        if option not in fields:
            raise _only_here(option)
    files: dict[str, Any] = {}
    for role, value in task.files.items():
        if not roles[role].sent:
            raise _only_here(role)
        several = list(value) if isinstance(value, tuple) else [value]
        if len(several) > 1:
            raise ParameterError(
                Option(role),
                "Expected one file of each kind for a server, got several. Give one, or run without a server.",
            )
        if Path(several[0]).is_dir() and not set(PACKED) & set(roles[role].endings):
            raise InputError(
                several[0], "Expected one file for a server, got a folder. Give a file, or run without a server."
            )
        files[role] = several[0]
    values, accepted = dict(task.values), verb.fields(task.name)
    for option in accepted.keys() & values.keys() - roles.keys():
        voronoi = is_voronoi(values[option])
        path = values[option].removeprefix(VORONOI) if voronoi else values[option]
        if not isinstance(path, str | Path):
            continue
        if Path(path).is_file() or (Path(path).is_dir() and set(PACKED) & set(accepted[option])):
            files[option] = path
            if voronoi:
                values[option] = VORONOI
            else:
                del values[option]
    return values, files


def _only_here(option: str) -> ParameterError:
    """Return the error for an option that servers do not accept."""
    return ParameterError(Option(option), "this option is for runs on this machine. Omit it, or run without a server.")


def _check_targets(verb: Verb, task: Task) -> None:
    """Raise before sending anything if results cannot be written."""
    output = verb.output(task.name)
    if task.plot is not None:
        check_picture(task.plot)
        check_file(Path(task.plot).absolute(), overwrite=task.overwrite)
    if task.output is None:
        return
    path = Path(task.output)
    if output.check is not None:
        output.check(path, overwrite=task.overwrite)
    elif output.form is None:
        check_target(path.absolute(), overwrite=task.overwrite, mark_file=output.mark)
    else:
        check_ending(path, *((".json",) if "json" in output.formats else ()))
        check_file(path.absolute(), overwrite=task.overwrite)


def fetched(server: Remote, job: dict[str, Any], done: Callable[[dict[str, Any], Path], None], progress: Any) -> None:
    """Fetch a result to a temporary file, and pass it on."""
    refuse_unapproved(job)
    with scratch_folder() as folder:
        result = Path(folder) / "result"
        server.fetch(job, result, progress)
        done(job, result)


def refuse_unapproved(job: dict[str, Any]) -> None:
    """Raise if a result awaits review or was rejected."""
    review = job.get("review") or {}
    if review.get("state") == "awaiting":
        raise ParameterError(
            "the job is done and awaits review. When another token has approved it, fetch it with crowdveil server jobs "
            f"{job['id']} -o OUT."
        )
    if review.get("state") == "rejected":
        raise ParameterError(
            f"the result was rejected in its review{_comment(review)}. Change the parameters and run it again."
        )


def _comment(review: dict[str, Any]) -> str:
    """Return the comment of a review in parentheses, "" if there is none."""
    comment = " ".join(str(review.get("comment") or "").split()).rstrip(".")
    return f" ({comment})" if comment else ""


@contextmanager
def _sendable(files: Mapping[str, Any]) -> Iterator[dict[str, Path]]:
    """Yield files, and releases as zip files."""
    with scratch_folder() as folder:
        ready: dict[str, Path] = {}
        for field, file in files.items():
            path = Path(file)
            if path.is_dir():
                manifest_path(path)  # a folder that is no release may hold anything, and stays here
                packed = Path(folder) / f"{field}.zip"
                archive.pack(path, packed)
                path = packed
            ready[field] = path
        yield ready


def unpack(packed: Path, folder: Path) -> None:
    """Unpack a result of any size."""
    archive.unpack(packed, folder, LARGEST)


def put_file(result: Path, target: Path, *, overwrite: bool) -> None:
    """Save a result, completely or not at all."""
    with new_file(target, overwrite=overwrite) as file:
        shutil.copyfile(result, file)


def put_files(packed: Path, targets: Mapping[str, str | Path | None], *, overwrite: bool) -> Path:
    """Save files of a zip file to their targets, and return the first unpacked one."""
    unpacked = packed.with_name("unpacked")
    unpack(packed, unpacked)
    for made, target in targets.items():
        if target is not None:
            put_file(unpacked / made, Path(target), overwrite=overwrite)
    return unpacked / next(iter(targets))


def put_folder(packed: Path, target: Path, *, overwrite: bool, mark_file: str) -> None:
    """Unpack a result into a folder, completely or not at all. Releases and heat maps are verified first."""
    with new_folder(target, overwrite=overwrite, mark_file=mark_file) as folder:
        unpack(packed, folder)
        if mark_file == MANIFEST_FILE or is_heat_map(folder):
            require_not_violated(releases.verify(folder))
