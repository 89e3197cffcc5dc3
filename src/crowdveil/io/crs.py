"""Coordinate reference systems named in files: only safe forms, none that makes a library open another file."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from crowdveil.errors import InputError

WGS84 = "OGC:CRS84"
MAX_TEXT = 100_000
_NAMED = re.compile(
    r"[A-Za-z]{2,12}:[A-Za-z0-9]{1,12}"
    r"|urn:(ogc|x-ogc):def:crs:[A-Za-z]{2,12}:[0-9.]{0,12}:[A-Za-z0-9]{1,12}"
    r"|https?://www\.opengis\.net/def/crs/[A-Za-z]{2,12}/[0-9.]{1,12}/[A-Za-z0-9]{1,12}"
)
"""An authority and a code in the usual spellings; the URL is a name and is never requested."""
_TEXT = re.compile(r"\s*[A-Z][A-Z0-9_]{3,20}\s*\[")
"""The beginning of WKT."""
_OTHER_FILES = re.compile(
    r"PARAMETERFILE|\+init|\+file|\+(nadgrids|geoidgrids|grids|xy_grids|z_grids)=(?!@null[\s\"'])", re.IGNORECASE
)


def parse_crs(given: Any, name: str) -> Any:
    """Return a coordinate system from an authority's code, WKT or PROJJSON; raise for anything else."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    if isinstance(given, CRS):
        return given
    given = _projjson(given)
    text = json.dumps(given) if isinstance(given, dict) else given
    if not isinstance(text, str) or len(text) > MAX_TEXT or _OTHER_FILES.search(text + " "):
        raise _unknown(name)
    if isinstance(given, dict):
        if '"source_crs"' in text:  # bound to a transformation, which may name a file
            raise _unknown(name)
    elif not (_NAMED.fullmatch(text) or _TEXT.match(text)):
        raise _unknown(name)
    try:
        return CRS.from_user_input(given)
    except (CRSError, UnicodeError, ValueError, TypeError, RecursionError):
        raise _unknown(name) from None


def _projjson(given: Any) -> Any:
    """Parse PROJJSON in text, as older versions of geopandas write it; return anything else unchanged."""
    if isinstance(given, str) and len(given) <= MAX_TEXT and given.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            return json.loads(given)
    return given


def _unknown(name: str) -> InputError:
    return InputError(name, "unknown coordinate system. Name one by its code, such as EPSG:4326.")
