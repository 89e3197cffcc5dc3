"""Run commands on a server: what a command needs to have `--server`.

A command adds `server_options()` to its options, and calls `remote_target(values)`, which gives the server that the job is sent
to, or None for this machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import show_sentences
from crowdveil.errors import Name, Option, ParameterError
from crowdveil.guarantees.base import require_not_violated
from crowdveil.io.atomic import check_file, check_target, new_file, new_folder, scratch_folder
from crowdveil.io.written_release import MANIFEST_FILE
from crowdveil.io.zones import VORONOI, is_voronoi
from crowdveil.params import Params
from crowdveil.progress import progress_bar
from crowdveil.run import pipeline, releases
from crowdveil.run.options import AuditOptions, ReleaseOptions, RunOptions
from crowdveil.server.client import Remote, remote, with_paths

_PRIVATE = "this private file must not lie on a server; leave it out, or run it here."
ONLY_HERE: dict[Option | Name, str] = {
    Option(
        "ledger"
    ): "a ledger of this machine is not used on a server, which has those of its sources; name a source with "
    f"{Option('source')}, or run it here.",
    Name("pairing"): _PRIVATE,
}
"""Options of a run that a server does not take, and why."""
LARGEST = 1 << 50
"""No limit of size for a result: the server has one."""


def server_options() -> list[click.Option]:
    """Return `--server` and `--detach`."""
    return [
        click.Option(["--server"], envvar="CROWDVEIL_SERVER", metavar="URL",
                     help="Run it on this server, with the token in CROWDVEIL_TOKEN. [CROWDVEIL_SERVER]"),
        click.Option(["--detach"], is_flag=True, help="With --server: print the job's id and leave; see crowdveil server jobs."),
    ]  # fmt: skip


def source_option() -> click.Option:
    """Return `--source`, for commands whose result is audited on a server."""
    return click.Option(["--source"], metavar="NAME",
                        help="With --server: source of the data, whose ledger on the server the result is audited against. "
                        "[that of the token]")  # fmt: skip


def take_source(values: dict[str, Any], server: RemoteTarget | None) -> dict[str, Any]:
    """Return the parameter of the source of a job; remove it from `values`."""
    source = values.pop("source", None)
    if source is None:
        return {}
    if server is None:
        raise ParameterError(
            Option("source"), f"it is for a run on a server. Name a ledger of this machine with {Option('ledger')}."
        )
    return {"source": source}


def not_before_a_name(ctx: click.Context) -> None:
    """Refuse these options before the name of a method or an analysis, where they would have no effect."""
    if ctx.invoked_subcommand is not None:
        for option in ("server", "detach"):
            if ctx.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
                raise click.UsageError(f"give --{option} after {ctx.invoked_subcommand}, not before it.", ctx)


@dataclass(frozen=True)
class RemoteTarget:
    """A server to run a command on."""

    server: Remote
    detach: bool

    def run(
        self,
        collection: str,
        name: str,
        parameters: dict[str, Any],
        files: Mapping[str, Any],
        done: Callable[[dict[str, Any], Path], None],
        *,
        fetch: bool = True,
    ) -> dict[str, Any] | None:
        """Send a job, follow it, and hand its result over as a file; return None if it is detached.

        `files` are paths by field; a folder is sent as a zip file. `done` gets the job and the fetched file.
        """
        with with_paths(files), progress_bar("sending") as (progress, stage), _sendable(files) as ready:
            job = self.server.start(collection, name, parameters, ready, progress)
            if self.detach:
                click.echo(job["id"])
                show_sentences([f"the job is queued; fetch its result with crowdveil server jobs {job['id']} -o OUT."])
                return None
            job = self.server.follow(job["id"], progress, stage)
            if fetch:
                stage("fetching")
                fetched(self.server, job, done, progress)
        show_sentences(job["summary"]["notes"])
        return job

    def run_for_table(
        self,
        collection: str,
        name: str,
        parameters: dict[str, Any],
        files: Mapping[str, Any],
        output: str | None,
        *,
        overwrite: bool,
        plot: str | None = None,
        made: str = "",
        as_json: bool = False,
    ) -> list[str] | None:
        """Run a job whose result is a table, and with `plot` a picture; both are called `made` in the result.

        Return the lines to print: JSON with `as_json`, otherwise the job's own; None if it is detached.
        """
        form, shown = form_of(output, as_json=as_json), list[str]()
        for target in (output, plot):  # before anything is sent
            if target is not None:
                check_file(Path(target).absolute(), overwrite=overwrite)

        def take(_job: dict[str, Any], result: Path) -> None:
            table = result
            if plot is not None:
                table = put_files(result, {f"{made}.{form}": output, f"{made}.png": plot}, overwrite=overwrite)
            elif output is not None:
                put_file(result, Path(output), overwrite=overwrite)
            if as_json:
                shown.append(table.read_text(encoding="utf-8").rstrip("\n"))

        fetch = as_json or output is not None or plot is not None
        job = self.run(collection, name, {**parameters, "format": form}, files, take, fetch=fetch)
        return None if job is None else shown if as_json else job["summary"]["lines"]


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


def remote_target(values: dict[str, Any]) -> RemoteTarget | None:
    """Return the server that a command runs on, None for this machine; remove its options from `values`."""
    url, detach = values.pop("server", None), values.pop("detach", False)
    if not url:
        if detach:
            raise ParameterError(
                Option("detach"), f"Expected a server to leave the job to. Name it with {Option('server')}."
            )
        return None
    return RemoteTarget(remote(url), detach)


@contextmanager
def _sendable(files: Mapping[str, Any]) -> Iterator[dict[str, Path]]:
    """Yield files as they are, and folders packed."""
    from crowdveil.io.archive import pack  # here, since few commands run on a server

    with scratch_folder() as folder:
        ready: dict[str, Path] = {}
        for field, given in files.items():
            path = Path(given)
            if path.is_dir():
                packed = Path(folder) / f"{field}.zip"
                pack(path, packed)
                path = packed
            ready[field] = path
        yield ready


def split_files(model: type[Params], values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into plain values and those that name an existing file; of voronoi:FILE both parts are needed."""
    zones = values.get("zones")
    if is_voronoi(zones) and Path(zones.removeprefix(VORONOI)).is_file():
        plain, files = split_files(model, {n: v for n, v in values.items() if n != "zones"})
        return plain | {"zones": VORONOI}, files | {"zones": zones.removeprefix(VORONOI)}
    files = {
        n: v
        for n, v in values.items()
        if n in model.model_fields
        and model.model_fields[n].annotation is Any
        and isinstance(v, str | Path)
        and Path(v).is_file()
    }
    return {n: v for n, v in values.items() if n not in files}, files


def anonymize(server: RemoteTarget, request: pipeline.Request, reading: type[Params], source: dict[str, Any]) -> None:
    """Run a request on a server; the release is verified here again before it gets its name."""
    run_options = RunOptions.checked(request.options)
    for subject, reason in ONLY_HERE.items():
        if getattr(run_options, subject.name) not in (None, "auto"):
            raise ParameterError(subject, reason)
    target = Path(request.output)
    check_target(target.absolute(), overwrite=run_options.overwrite, mark_file=MANIFEST_FILE)
    options, files = split_files(reading, request.reading)
    named = {} if request.data_name is None else {"data_name": request.data_name}
    sent = {*ReleaseOptions.model_fields, *AuditOptions.model_fields}
    of_run = {n: v for n, v in request.options.items() if n in sent and v is not None}
    parameters = {**request.parameters, **options, **of_run, **named, **source}
    job = server.run(
        "methods", request.method, parameters, {"data": request.data, **files},
        lambda _, result: put_folder(result, target, overwrite=run_options.overwrite, mark_file=MANIFEST_FILE),
    )  # fmt: skip
    if job is not None:
        click.echo(f"{target}: verified and written")
        click.echo("\n".join(job["summary"]["lines"]))


def unpack(packed: Path, folder: Path) -> None:
    """Unpack a result of any size: the server has a limit."""
    from crowdveil.io import archive  # here, since few commands run on a server

    archive.unpack(packed, folder, LARGEST)


def put_file(result: Path, target: Path, *, overwrite: bool) -> None:
    """Put a result in place: all of it or nothing."""
    with new_file(target, overwrite=overwrite) as file:
        shutil.copyfile(result, file)


def put_files(packed: Path, targets: Mapping[str, str | None], *, overwrite: bool) -> Path:
    """Put files of a zip file in place where they are wanted; the first of them as it was unpacked."""
    unpacked = packed.with_name("unpacked")
    unpack(packed, unpacked)
    for made, target in targets.items():
        if target is not None:
            put_file(unpacked / made, Path(target), overwrite=overwrite)
    return unpacked / next(iter(targets))


def put_folder(packed: Path, target: Path, *, overwrite: bool, mark_file: str) -> None:
    """Unpack a result into a folder: all of it or nothing. A release and a heat map are verified from their files before."""
    from crowdveil.analysis.heatmap_manifest import is_heat_map  # here, since few commands run on a server

    with new_folder(target, overwrite=overwrite, mark_file=mark_file) as folder:
        unpack(packed, folder)
        if mark_file == MANIFEST_FILE or is_heat_map(folder):
            require_not_violated(releases.verify(folder))


def form_of(output: str | None, *, as_json: bool) -> str:
    """Return the format of a result, from the ending of the file that it goes to; raise unless it is JSON where that is shown."""
    endings = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json"}
    form = "json" if output is None else endings[Path(output).suffix.lower()]
    if as_json and form != "json":
        raise ParameterError(
            Option("json"),
            f"a server makes one form of a result. Give {Option('json')} or another form with {Option('output')}, not both.",
        )
    return form
