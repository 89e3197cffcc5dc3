"""The HTML report of a release: one self-contained file with scripts, styles and data.

`public_report` has only the files of a release and its manifest as input, so that it cannot contain original data.
`private_report` shows the original too, is confidential and is marked so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any

import numpy as np

from crowdveil.guarantees.base import Outcome, tally
from crowdveil.io.written_release import WrittenRelease
from crowdveil.report.attack_table import attack_rows
from crowdveil.report.first_page import build_first_page
from crowdveil.report.page_model import PageModel, PrivateContext
from crowdveil.report.questions import answers

REPORT_FILE = "report.html"
_PAGE = "crowdveil.report.page"


def public_report(written: WrittenRelease, manifest: Mapping[str, Any]) -> str:
    """Return the report for the release's folder, from its files and manifest alone.

    It holds no time of its creation: equal releases give equal bytes.
    """
    return _page(written, dict(manifest), None)


def private_report(written: WrittenRelease, manifest: Mapping[str, Any], private: PrivateContext) -> str:
    """Return the confidential report with the original data and exact numbers."""
    return _page(written, dict(manifest), private)


def _page_model(written: WrittenRelease, manifest: dict[str, Any], private: PrivateContext | None) -> PageModel:
    """Return the page model; the modules of the other kind of release, and their analyses, are not loaded."""
    if written.is_flows:
        from crowdveil.report.flow_page import build_page_model as build_flows

        return build_flows(written, manifest, private)
    from crowdveil.report.trajectory_page import build_page_model as build_trajectories

    return build_trajectories(written, manifest, private)


def _page(written: WrittenRelease, manifest: dict[str, Any], private: PrivateContext | None) -> str:
    page = _page_model(written, manifest, private)
    script, style = asset("report.js"), asset("report.css")
    facts, attacks = manifest["method"].get("facts", {}), attack_rows(written, manifest)
    first = build_first_page(written, manifest, attacks, private)
    return str(
        _template().render(
            title=f"{first.title}: report of a release",
            first=first,
            attacks=attacks,
            policy=_policy(script, style),
            script=script,
            style=style,
            data=_data(page.data),
            private=private,
            page=page,
            manifest=manifest,
            facts={n: v for n, v in facts.items() if not isinstance(v, dict)},
            measured=facts.get("measured"),
            guarantees=manifest["guarantees"],
            violated=[p["name"] for p in manifest["guarantees"] if p["outcome"] == Outcome.VIOLATED],
            tally=tally([p["outcome"] for p in manifest["guarantees"]]),
            unchecked=[p for p in manifest["guarantees"] if p["outcome"] == Outcome.NOT_CHECKED],
            questions=answers(written, manifest, page.equal),
            files={role: entry for role, entry in manifest["files"].items() if role != "report"},
        )
    )


def _policy(script: str, style: str) -> str:
    """Return a policy without any request, and with this script and style only, whatever names the data has."""
    return (
        f"default-src 'none'; script-src {_hash_of(script)}; style-src {_hash_of(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def policy_in(page: str) -> str:
    """Return the content security policy of a report, for an HTTP header; without one, nothing may run."""
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"<>]{1,1000})">', page[:5000])
    policy = "" if found is None else unescape(found[1])
    return policy if re.fullmatch(r"default-src 'none';[ -~]*", policy) else "default-src 'none'"


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _data(data: dict[str, Any]) -> str:
    """Return JSON that cannot end its script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def asset(name: str) -> str:
    """Return a built file of the page."""
    return files(_PAGE).joinpath(name).read_text(encoding="utf-8").strip()


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: files(_PAGE).joinpath(name).read_text(encoding="utf-8")),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["number"] = lambda value: f"{value:,}" if isinstance(value, int | np.integer) else str(value)
    environment.filters["words"] = lambda name: str(name).replace("_", " ")
    environment.filters["value"] = _shown
    return environment.get_template("report.html.j2")


def _shown(value: Any) -> str:
    """Format a parameter for readers."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(_shown(inner) for inner in value)
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 1000 else str(value)
