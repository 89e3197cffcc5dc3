"""The HTML report of a release: one self-contained file with scripts, styles and data.

`public_report` has only the files of a release and its manifest as input, so that it cannot contain original data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from crowdveil.guarantees.base import Outcome
from crowdveil.io.manifest import Manifest
from crowdveil.io.written_release import WrittenRelease
from crowdveil.report import first_page
from crowdveil.report.attack_table import attack_rows
from crowdveil.report.flow_page import build_page_model as build_flows
from crowdveil.report.page_model import method_parameters
from crowdveil.report.questions import answers
from crowdveil.report.trajectory_page import build_page_model as build_trajectories

_PAGE = "crowdveil.report.page"
_COLORS = {Outcome.HOLDS: "good", Outcome.VIOLATED: "bad"}


def public_report(written: WrittenRelease, manifest: Manifest) -> str:
    """Return the report for the release's folder, from its files and manifest alone.

    It holds no time of its creation: equal releases give equal bytes.
    """
    attacks = attack_rows(written, manifest)
    page = (build_flows if written.is_flows else build_trajectories)(written, manifest)
    script, style = asset("report.js"), asset("report.css")
    facts = manifest.method.facts
    return _environment().get_template("report.html").render(
        **first_page.content(written, manifest, attacks),
        page=page,
        manifest=manifest,
        parameters=method_parameters(manifest),
        reading={"tz": manifest.time_zone, **manifest.input.options},
        answers=answers(written, manifest),
        attacks=attacks,
        facts=facts,
        diagnostics={name: value for name, value in facts.items() if not isinstance(value, dict)},
        nothing_published=not len(written.data),
        policy=_policy(script, style),
        script=script,
        style=style,
        data=_data(page.data),
    )  # fmt: skip


@cache
def _environment() -> Environment:
    """Return the templates. They escape every value that is not marked as safe."""
    environment = Environment(
        loader=PackageLoader("crowdveil.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # fmt: skip
    environment.filters |= {
        "shown": shown,
        "outcome": lambda outcome: outcome.upper() if outcome == Outcome.VIOLATED else outcome,
        "color": lambda outcome: _COLORS.get(outcome, "open"),
    }
    return environment


def shown(value: Any) -> str:
    """Format a parameter for readers."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(shown(inner) for inner in value)
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 1000 else str(value)


def _policy(script: str, style: str) -> str:
    """Return a policy that forbids requests, and all scripts and styles but these, whatever names the data has."""
    return (
        f"default-src 'none'; script-src {_hash_of(script)}; style-src {_hash_of(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def policy_in(page: str) -> str:
    """Return the content security policy of a report, for an HTTP header; without one, nothing may run."""
    declared = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"<>]{1,1000})">', page[:5000])
    policy = "" if declared is None else unescape(declared[1])
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
