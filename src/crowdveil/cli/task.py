"""`crowdveil task ID`: show, fetch or cancel a job on a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdveil.cli.console import show_sentences
from crowdveil.cli.remote_jobs import fetched, put_file, put_folder
from crowdveil.errors import Option, ParameterError
from crowdveil.io.written_release import MANIFEST_FILE
from crowdveil.progress import progress_bar
from crowdveil.remote import LOCAL_SERVER, Remote, remote


@click.command()
@click.argument("task", metavar="ID")
@click.option("-o", "--output", metavar="OUT", help="Wait for its end, and write the result here: a folder or a file.")
@click.option("--overwrite", is_flag=True, help="Replace what exists.")
@click.option("--cancel", is_flag=True, help="Cancel it, and remove its files.")
@click.option("--server", envvar="CROWDVEIL_SERVER", default=LOCAL_SERVER, metavar="URL",
              help=f"The server that has it. [CROWDVEIL_SERVER, or {LOCAL_SERVER}]")  # fmt: skip
def command(task: str, output: str | None, overwrite: bool, cancel: bool, server: str) -> None:
    """Show how far a job on a server is, fetch its result, or cancel it.

    \b
    Examples:
      crowdveil task 30c2ad9df0f9470abfd8198b4cb4f86a
      crowdveil task 30c2ad9df0f9470abfd8198b4cb4f86a -o out/
      crowdveil task 30c2ad9df0f9470abfd8198b4cb4f86a --cancel
    """
    client = remote(server)
    if cancel:
        if output is not None:
            raise ParameterError(Option("cancel"), "a job that is ended has no result; leave out -o.")
        click.echo(f"{task}: {client.cancel(task)['state']}")
    elif output is None:
        click.echo("\n".join(_lines_of(client.job(task))))
    else:
        get(client, task, Path(output), overwrite=overwrite)


def get(client: Remote, task: str, output: Path, *, overwrite: bool) -> None:
    """Wait for a job, and write its result."""

    def put(job: dict[str, Any], result: Path) -> None:
        if job["kind"] == "anonymize":
            put_folder(result, output, overwrite=overwrite, mark_file=MANIFEST_FILE)
        elif job["result"]["name"].endswith(".zip") and output.suffix != ".zip":
            put_folder(result, output, overwrite=overwrite, mark_file="")
        else:
            put_file(result, output, overwrite=overwrite)

    with progress_bar("waiting") as (progress, stage):
        job = client.follow(task, progress, stage)
        stage("fetching")
        fetched(client, job, put, progress)
    show_sentences(job["summary"]["notes"])
    click.echo(f"{output}: {'verified and written' if job['kind'] == 'anonymize' else 'written'}")
    click.echo("\n".join(job["summary"]["lines"]))


def _lines_of(job: dict[str, Any]) -> list[str]:
    progress, total = job["progress"], job["progress"]["total"]
    at = f", {progress['stage']}" if job["state"] == "running" else ""
    far = f", {100 * progress['done'] // total} %" if job["state"] == "running" and total else ""
    stands = {"awaiting": ", awaiting review", "approved": ", approved", "rejected": ", rejected"}
    seen = stands.get((job.get("review") or {}).get("state", ""), "")
    lines = [f"{job['id']}: {job['state']}{at}{far}{seen} ({job['kind']} {job['name']})"]
    if job["error"] is not None:
        lines.append(f"  {job['error']['message']}")
    review = (job.get("review") or {}).get("state", "") if job["state"] == "done" else ""
    if review == "awaiting":
        lines.append("  another token must approve it before it can be fetched (crowdveil review)")
    elif review == "rejected":
        lines.append(f"  rejected by {job['review']['by']}: {job['review']['comment'] or 'no comment'}")
    elif job["state"] == "done":
        lines.append(f"  fetch it before {job['expires_at']} with crowdveil task {job['id']} -o OUT")
    return lines
