"""Commands as the MobiDataLab document spells them, and the ASGI app."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from serving import Within, opened

from crowdveil.cli.main import ALIASES, COMMANDS
from crowdveil.compat.mobidatalab.commands import configured_server
from crowdveil.errors import ParameterError
from crowdveil.server.client import LOCAL_SERVER


def test_the_package_is_a_program() -> None:
    ran = subprocess.run([sys.executable, "-m", "crowdveil", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("crowdveil ")


def test_commands_have_the_names_of_the_document_too(command: Any) -> None:
    assert set(ALIASES.values()) <= set(COMMANDS)
    for name, ours in ALIASES.items():
        assert command(name, "--help").out.partition("\n")[2] == command(ours, "--help").out.partition("\n")[2]


def test_the_address_of_the_server_is_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert configured_server() == LOCAL_SERVER
    Path("server").mkdir()
    Path("server/config_api.json").write_text(json.dumps({"api_server": "http://127.0.0.1:1"}))
    assert configured_server() == "http://127.0.0.1:1"
    Path("config_api.json").write_text(json.dumps({"api_server": "http://127.0.0.1:2"}))
    assert configured_server() == "http://127.0.0.1:2"
    Path("config_api.json").write_text("{}")
    with pytest.raises(ParameterError, match="api_server"):
        configured_server()


def test_the_asgi_app_needs_tokens_and_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    import tempfile

    from crowdveil.cli.server import make_app
    from crowdveil.server import serve

    monkeypatch.setenv("CROWDVEIL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("CROWDVEIL_DATABASE_URL", raising=False)
    # The thread outlives the test, and would print among later ones that the folder is gone.
    monkeypatch.setattr(serve, "keep_tidy", lambda service: None)
    monkeypatch.setattr(tempfile, "tempdir", None)
    app = make_app()
    assert Within(app).get("/methods").status_code == 401  # also from this machine
    with opened(tmp_path / "data") as service:
        client = Within(app, Authorization=f"Bearer {service.tokens.create('anna')}")
    assert client.get("/methods").status_code == 200
    assert "/compute_measures/" in client.get("/openapi.json").json()["paths"]
