"""`crowdveil server jobs` and `crowdveil server review`: jobs on a server, and results of others that await review."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import show_lines, show_sentences
from crowdveil.cli.remote import fetched, put_file, put_folder
from crowdveil.engine.progress import progress_bar
from crowdveil.errors import Option, ParameterError
from crowdveil.io.atomic import new_file
from crowdveil.server.client import LOCAL_SERVER, Remote, remote
from crowdveil.verbs.table import VERBS

_server_option = click.option(
    "--server", envvar="CROWDVEIL_SERVER", default=LOCAL_SERVER, metavar="URL",
    help=f"Address of the server. [CROWDVEIL_SERVER, or {LOCAL_SERVER}]",
)  # fmt: skip


@click.command()
@click.argument("task", metavar="[ID]", required=False)
@click.option("-o", "--output", metavar="OUT", help="Wait for the job, and write its result to this folder or file.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@click.option("--cancel", is_flag=True, help="Cancel the job, and remove its files.")
@_server_option
def jobs(task: str | None, output: str | None, overwrite: bool, cancel: bool, server: str) -> None:
    """List your jobs on a server; or show the progress of one, fetch its result, or cancel it.

    \b
    Examples:
      crowdveil server jobs
      crowdveil server jobs 30c2ad9df0f9470abfd8198b4cb4f86a
      crowdveil server jobs 30c2ad9df0f9470abfd8198b4cb4f86a -o out/
      crowdveil server jobs 30c2ad9df0f9470abfd8198b4cb4f86a --cancel
    """
    client = remote(server)
    if task is None:
        if cancel or output is not None:
            raise ParameterError("Expected the id of a job, got none. Name it.")
        for job in client.jobs():
            show_lines(_lines_of(job)[:1])
    elif cancel:
        if output is not None:
            raise ParameterError(Option("cancel"), "a cancelled job has no result. Leave out -o.")
        click.echo(f"{task}: {client.cancel(task)['state']}")
    elif output is None:
        show_lines(_lines_of(client.job(task)))
    else:
        get(client, task, Path(output), overwrite=overwrite)


def get(client: Remote, task: str, output: Path, *, overwrite: bool) -> None:
    """Wait for a job, and write its result."""

    def put(job: dict[str, Any], result: Path) -> None:
        made = VERBS[job["kind"]].output(job["name"])
        if made.form is None or (job["result"]["name"].endswith(".zip") and output.suffix != ".zip"):
            # A folder without a mark has a table and a picture of it.
            put_folder(result, output, overwrite=overwrite, mark_file=made.mark or f"{made.stem}.png")
        else:
            put_file(result, output, overwrite=overwrite)

    with progress_bar("waiting") as (progress, stage):
        job = client.follow(task, progress, stage)
        stage("fetching")
        fetched(client, job, put, progress)
    show_sentences(job["summary"]["notes"])
    click.echo(f"{output}: {VERBS[job['kind']].output(job['name']).note}")
    show_lines(job["summary"]["lines"])


def _lines_of(job: dict[str, Any]) -> list[str]:
    progress, total, review = job["progress"], job["progress"]["total"], job.get("review") or {}
    running, state = job["state"] == "running", review.get("state", "")
    stage = f", {progress['stage']}" if running else ""
    share = f", {100 * progress['done'] // total} %" if running and total else ""
    reviewed = {"awaiting": ", awaiting review", "approved": ", approved", "rejected": ", rejected"}.get(state, "")
    lines = [f"{job['id']}: {job['state']}{stage}{share}{reviewed} ({job['kind']} {job['name']})"]
    if job["error"] is not None:
        lines.append(f"  {job['error']['message']}")
    if job["state"] != "done":
        return lines
    if state == "awaiting":
        return [*lines, "  another token must approve it before it can be fetched (crowdveil server review)"]
    if state == "rejected":
        return [*lines, f"  rejected by {review['by']}: {review['comment'] or 'no comment'}"]
    return [*lines, f"  fetch it before {job['expires_at']} with crowdveil server jobs {job['id']} -o OUT"]


@click.group()
def review() -> None:
    """Approve or reject results of others, with a token in CROWDVEIL_TOKEN that has the scope review.

    \b
    Examples:
      crowdveil server review list
      crowdveil server review report 30c2ad9df0f9470abfd8198b4cb4f86a -o report.html
      crowdveil server review approve 30c2ad9df0f9470abfd8198b4cb4f86a
      crowdveil server review reject 30c2ad9df0f9470abfd8198b4cb4f86a --comment "k is too small for this area"
    """


@review.command("list")
@_server_option
def list_reviews(server: str) -> None:
    """List results that await review."""
    found = remote(server).reviews()
    for one in found:
        click.echo(f"{one['id']}: {one['kind']} {one['name']} of {one['submitter']}, done {one['ended_at']}")
    if not found:
        click.echo("no result awaits review.")


@review.command("report")
@_server_option
@click.argument("task", metavar="ID")
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write: a page, or the manifest.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
def fetch_report(task: str, output: str, overwrite: bool, server: str) -> None:
    """Fetch the report of a result that awaits review."""
    target = Path(output)
    with remote(server).review_report(task) as answer, new_file(target, overwrite=overwrite) as file:
        file.write_bytes(answer.read())
    click.echo(f"{output}: written")


def _add_decision(verb: str, done: str, text: str) -> None:
    @review.command(verb, help=text)
    @_server_option
    @click.option("--comment", default="", metavar="TEXT", help="Message to the submitter. [none]")
    @click.argument("task", metavar="ID")
    def decide(task: str, comment: str, server: str) -> None:
        remote(server).decide(task, verb, comment)
        click.echo(f"{task}: {done}")


_add_decision("approve", "approved", "Approve a result, so that its submitter can fetch it. This cannot be undone.")
_add_decision("reject", "rejected", "Reject a result, so that nobody can fetch it. This cannot be undone.")
