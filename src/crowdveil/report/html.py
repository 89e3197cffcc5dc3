"""The HTML report of a release: one self-contained file with scripts, styles and data.

`public_report` has only the files of a release and its manifest as input, so that it cannot contain original data.
`private_report` shows the original too, is confidential and is marked so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any

from crowdveil.io.parallel import run_parallel
from crowdveil.io.written_release import WrittenRelease
from crowdveil.report.attack_table import attack_rows
from crowdveil.report.first_page import title_of
from crowdveil.report.first_page_html import first_page_html
from crowdveil.report.markup import escape
from crowdveil.report.page_html import page_html
from crowdveil.report.page_model import MANY, PageModel, PrivateContext
from crowdveil.report.questions import answers

_PAGE = "crowdveil.report.page"
_CONFIDENTIAL = "Confidential, do not publish: this report shows the original data"


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
    script, style = asset("report.js"), asset("report.css")
    attacks, name = attack_rows(written, manifest), title_of(written, manifest)
    parts: tuple[Callable[[], Any], ...] = (
        lambda: _page_model(written, manifest, private),
        lambda: answers(written, manifest),
        lambda: first_page_html(name, written, manifest, attacks, private),
    )
    many = written.is_flows and len(written.data) > MANY
    page, found, first = run_parallel(*parts) if many else [part() for part in parts]
    title = f"{'CONFIDENTIAL – ' if private else ''}{name}: report of a release"
    mark = f'<p class="mark" role="note">{_CONFIDENTIAL}</p>\n' if private else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(_policy(script, style))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body class="{"private" if private else ""}">
{mark}<a class="skip" href="#main">Skip to the report</a>
{first}<main id="main">
{page_html(page, manifest, attacks, found, private)}</main>
<script type="application/json" id="data">{_data(page.data)}</script>
<script>{script}</script>
</body>
</html>"""


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
