"""Times in a preview: the first values of the time column as they are read, and time zones near the data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from crowdveil.errors import CrowdveilError
from crowdveil.io.time_forms import TimeForm
from crowdveil.io.times import read_seconds
from crowdveil.model.projection import great_circle_m

VALUES_SHOWN = 5
NEAR_SHOWN = 8
_NEAR_FACTOR, _NEAR_KM = 2.0, 400.0
"""Zones of cities within twice the distance of the nearest, or within this distance, are near."""


def parsed_times(column: Any, values: dict[str, Any]) -> list[dict[str, str | None]]:
    """Return the first values of a time column, each as text and as local time; None where it cannot be read.

    The form of the times is learned from all values given here, and the first that are not empty are shown.
    """
    shown = [i for i, value in enumerate(column.to_pylist()) if value not in (None, "")][:VALUES_SHOWN]
    texts = [str(column[i].as_py()) for i in shown]
    try:
        read = read_seconds(column, "time", TimeForm(values.get("time_format")))
        zone = ZoneInfo(str(values.get("tz") or "UTC"))
        local = [None if read.bad[i] else _local(int(read.values[i]), zone if read.instants else None) for i in shown]
    except (CrowdveilError, OSError, ValueError, pa.ArrowInvalid):  # the reader of the whole file states what is wrong
        local = [None] * len(shown)
    return [{"text": text, "read": moment} for text, moment in zip(texts, local, strict=True)]


def _local(seconds: int, zone: ZoneInfo | None) -> str:
    """Return a time as people read it: 'Mon 2 Mar 2026, 08:05:00'."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    moment = moment.astimezone(zone) if zone is not None else moment
    return f"{moment:%a} {moment.day} {moment:%b %Y, %H:%M:%S}"


def near_time_zones(lon: float, lat: float) -> list[str]:
    """Return time zones whose cities are near a position, the nearest first; only a guess, since borders are not known."""
    names, places = list(_cities()), np.array(list(_cities().values())).reshape(-1, 2)
    km = great_circle_m(np.array(lon), np.array(lat), places[:, 0], places[:, 1]) / 1000
    cities = sorted(zip(km.tolist(), names, strict=True))
    most = max(_NEAR_FACTOR * cities[0][0], _NEAR_KM) if cities else 0.0
    return [name for distance, name in cities[:NEAR_SHOWN] if distance <= most]


@cache
def _cities() -> dict[str, tuple[float, float]]:
    """Return longitude and latitude of the city of each time zone, from the time zone database."""
    try:
        lines = files("tzdata.zoneinfo").joinpath("zone1970.tab").read_text(encoding="utf-8").splitlines()
    except (OSError, ModuleNotFoundError):
        return {}
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {row[2]: _position(row[1]) for row in rows if len(row) >= 3}


def _position(text: str) -> tuple[float, float]:
    """Return longitude and latitude of ±DDMM±DDDMM or ±DDMMSS±DDDMMSS."""
    split = max(text.rfind("+"), text.rfind("-"))
    return _degrees(text[split:], 3), _degrees(text[:split], 2)


def _degrees(text: str, digits: int) -> float:
    sign, rest = (-1 if text[0] == "-" else 1), text[1:]
    whole, minutes, seconds = rest[:digits], rest[digits : digits + 2], rest[digits + 2 :]
    return sign * (int(whole) + int(minutes) / 60 + int(seconds or 0) / 3600)
