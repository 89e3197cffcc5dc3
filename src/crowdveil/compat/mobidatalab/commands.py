"""Commands of mdl-anonymizer: send its run files to its routes, and print the server's answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from crowdveil.compat.mobidatalab.runfiles import PAIRING, TILES, filter_input, lower_keys
from crowdveil.errors import OutputError
from crowdveil.io.atomic import new_file
from crowdveil.server.client import LOCAL_SERVER, checked_id, remote
from crowdveil.verbs.run_file import load, need

SENT: dict[str, tuple[str, dict[str, str]]] = {
    "anonymize-api": ("/anonymize/", {"input_dataset": "input_file"}),
    "analysis-api": ("/analyze/", {"input_dataset": "input_file"}),
    "measures-api": (
        "/compute_measures/",
        {"original_dataset": "original_dataset", "anonymized_dataset": "anonymized_dataset"},
    ),
    "filter-api": ("/filter/", {"input_dataset": ""}),
}
GET_TASK = "get-task"
COMMANDS = (*SENT, GET_TASK)
CONFIG_FILES = ("config_api.json", "server/config_api.json")
"""Files in which mdl-anonymizer's commands look for the address of the server, as `{"api_server": URL}`."""


def configured_server() -> str:
    """Return the address in a config_api.json of the current folder, or that of this machine."""
    for path in map(Path, CONFIG_FILES):
        if path.is_file():
            return str(need(path, load(path), "api_server"))
    return LOCAL_SERVER


_SERVER = click.Option(["--server"], envvar="CROWDVEIL_SERVER", default=configured_server, metavar="URL",
                       help=f"Address of the server. [CROWDVEIL_SERVER, config_api.json, or {LOCAL_SERVER}]")  # fmt: skip


def make_command(name: str) -> click.Command:
    """Return a command by its name in mdl-anonymizer."""
    if name == GET_TASK:
        return click.Command(
            name, callback=_get, help="Fetch the result of a task into the current folder.",
            params=[click.Option(["-t", "--task-id", "task"], required=True, metavar="ID", help="Id of the task."), _SERVER],
        )  # fmt: skip
    path, files = SENT[name]

    def send(run_file: str, server: str) -> None:
        content = lower_keys(Path(run_file), load(Path(run_file)))
        keys = {field: key or filter_input(content) for field, key in files.items()}
        named = {field: Path(need(Path(run_file), content, key)) for field, key in keys.items()} | _optional(content)
        answer = remote(server).send(path, {"config_file": json.dumps(content)}, named)
        click.echo(json.dumps(answer, indent=2))

    return click.Command(
        name, callback=send, help=f"Send a run file and its data to {path} of a server, and print the task's id.",
        params=[click.Option(["-f", "--file", "run_file"], required=True, metavar="FILE", help="Run file, JSON."), _SERVER],
    )  # fmt: skip


def _optional(content: dict[str, Any]) -> dict[str, Path]:
    """Return the further files of a run file, by their fields."""
    params = content.get("params")
    tiles = {k.lower(): v for k, v in params.items()}.get(TILES) if isinstance(params, dict) else None
    return {
        field: Path(path) for field, path in ((TILES, tiles), (PAIRING, content.get(PAIRING))) if isinstance(path, str)
    }


def _get(task: str, server: str) -> None:
    with remote(server).get(f"/task/?task_id={checked_id(task)}") as answer:
        named = re.search(
            r'filename="([A-Za-z0-9_][A-Za-z0-9_.-]{0,119})"', answer.headers.get("Content-Disposition", "")
        )
        if named is None:
            state: dict[str, Any] = json.loads(answer.read())
            click.echo(json.dumps({name: state.get(name) for name in ("status", "message")}, indent=2))
            return
        target = Path(named[1])
        if target.exists():
            raise OutputError(target, "the file exists. Remove it, or fetch the task from another folder.")
        with new_file(target, overwrite=False) as file, file.open("wb") as written:
            for chunk in answer.iter_raw():
                written.write(chunk)
    click.echo(f"{target}: written")
