"""Run tasks on a server: send them as jobs, follow these, and put their results in place."""

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
from crowdveil.errors import Option, ParameterError, Text
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io import archive
from crowdveil.io.atomic import check_file, check_target, new_file, new_folder, scratch_folder
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, check_picture
from crowdveil.io.written_release import MANIFEST_FILE
from crowdveil.io.zones import VORONOI, is_voronoi
from crowdveil.run import releases
from crowdveil.server.client import Remote, remote, with_paths
from crowdveil.verbs.base import ALL_FILES, Outcome, SourceOptions, Task, Verb

LARGEST = 1 << 50
"""No limit of size for a result: the server has one."""


def server_options(verb: Verb, name: str | None = None) -> list[click.Option]:
    """Return `--server` and `--detach` where servers run the verb, and `--source` where its result is audited there."""
    if not verb.collection:
        return []
    options = [
        click.Option(["--server"], envvar="CROWDVEIL_SERVER", metavar="URL",
                     help="Run it on this server, with the token in CROWDVEIL_TOKEN. [CROWDVEIL_SERVER]"),
        click.Option(["--detach"], is_flag=True, help="With --server: print the job's id and leave; see crowdveil server jobs."),
    ]  # fmt: skip
    if name is not None and any(issubclass(model, SourceOptions) for model in verb.remote(name)):
        options.append(
            click.Option(["--source"], metavar="NAME",
                         help="With --server: source of the data, whose ledger on the server the result is audited against. "
                         "[that of the token]")
        )  # fmt: skip
    return options


@dataclass(frozen=True)
class RemoteTarget:
    """A server to run tasks on, and whether to leave after sending."""

    server: Remote
    detach: bool


def remote_target(values: dict[str, Any]) -> RemoteTarget | None:
    """Return the server that a command runs on, None for this machine; remove its options from `values`."""
    url, detach = values.pop("server", None), values.pop("detach", False)
    if url:
        return RemoteTarget(remote(url), bool(detach))
    for option, given in (("detach", detach), ("source", values.get("source"))):
        if given:
            raise ParameterError(Option(option), Text("Expected a server with it, got none. Name one with {server}."))
    return None


def send(target: RemoteTarget, verb: Verb, task: Task, *, as_json: bool = False) -> Outcome | None:
    """Run a task as a job, and put its result in place; return None if the job is detached."""
    values, files = _sent(verb, task)
    output = verb.output(task.name)
    if output.form is not None:
        values["format"] = output.format_of(task.output)
        if as_json and values["format"] != "json":
            raise ParameterError(
                Option("json"),
                Text("a server makes one form of a result. Give {json} or another form with {output}, not both."),
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
            show_sentences([f"the job is queued; fetch its result with crowdveil server jobs {job['id']} -o OUT."])
            return None
        job = server.follow(job["id"], progress, stage)
        if as_json or task.output is not None or task.plot is not None:
            stage("fetching")
            fetched(server, job, put, progress)
    notes = ReadNotes([*task.notes.texts, *job["summary"]["notes"]])
    return Outcome(notes, job["summary"]["lines"], lambda: json.loads(found[0]))


def _sent(verb: Verb, task: Task) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a task into the parameters and the files of a job; refuse what stays on this machine."""
    fields = {name for model in verb.models(task.name) for name in model.model_fields}
    roles = {file.role: file for file in verb.files(task.name)}
    for option in task.values:
        if option not in fields:
            raise ParameterError(Option(option), "It is for a run on this machine. Omit it, or run without a server.")
    files: dict[str, Any] = {}
    for role, given in task.files.items():
        several = list(given) if isinstance(given, tuple) else [given]
        if not roles[role].sent or len(several) > 1:
            raise ParameterError(
                Option(role), "A server takes one file of each kind. Give fewer, or run without a server."
            )
        files[role] = several[0]
    values = dict(task.values)
    for option in verb.fields(task.name).keys() & values.keys() - roles.keys():
        path = str(values[option]).removeprefix(VORONOI) if is_voronoi(values[option]) else values[option]
        if isinstance(path, str | Path) and Path(path).is_file():
            files[option] = path
            values[option] = VORONOI
            if path == task.values[option]:
                del values[option]
    return values, files


def _check_targets(verb: Verb, task: Task) -> None:
    """Raise unless results can be written, before anything is sent."""
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
    """Fetch a result to a temporary file, and hand it over."""
    refuse_unapproved(job)
    with scratch_folder() as folder:
        result = Path(folder) / "result"
        server.fetch(job, result, progress)
        done(job, result)


def refuse_unapproved(job: dict[str, Any]) -> None:
    """Raise where a result must be approved by another first, or was rejected."""
    review = job.get("review") or {}
    if review.get("state") == "awaiting":
        raise ParameterError(
            "the job is done and awaiting review; when another token has approved it, fetch it with crowdveil server jobs "
            f"{job['id']} -o OUT."
        )
    if review.get("state") == "rejected":
        raise ParameterError(f"the result was rejected in its review{_comment(review)}. Run it again otherwise.")


def _comment(review: dict[str, Any]) -> str:
    """Return the comment of a review, as a part of a sentence."""
    said = " ".join(str(review.get("comment") or "").split()).rstrip(".")
    return f" ({said})" if said else ""


@contextmanager
def _sendable(files: Mapping[str, Any]) -> Iterator[dict[str, Path]]:
    """Yield files as they are, and folders packed."""
    with scratch_folder() as folder:
        ready: dict[str, Path] = {}
        for field, given in files.items():
            path = Path(given)
            if path.is_dir():
                packed = Path(folder) / f"{field}.zip"
                archive.pack(path, packed)
                path = packed
            ready[field] = path
        yield ready


def unpack(packed: Path, folder: Path) -> None:
    """Unpack a result of any size: the server has a limit."""
    archive.unpack(packed, folder, LARGEST)


def put_file(result: Path, target: Path, *, overwrite: bool) -> None:
    """Put a result in place: all of it or nothing."""
    with new_file(target, overwrite=overwrite) as file:
        shutil.copyfile(result, file)


def put_files(packed: Path, targets: Mapping[str, str | Path | None], *, overwrite: bool) -> Path:
    """Put files of a zip file in place where they are wanted; the first of them as it was unpacked."""
    unpacked = packed.with_name("unpacked")
    unpack(packed, unpacked)
    for made, target in targets.items():
        if target is not None:
            put_file(unpacked / made, Path(target), overwrite=overwrite)
    return unpacked / next(iter(targets))


def put_folder(packed: Path, target: Path, *, overwrite: bool, mark_file: str) -> None:
    """Unpack a result into a folder: all of it or nothing. A release and a heat map are verified from their files before."""
    with new_folder(target, overwrite=overwrite, mark_file=mark_file) as folder:
        unpack(packed, folder)
        if mark_file == MANIFEST_FILE or is_heat_map(folder):
            require_not_violated(releases.verify(folder))
