"""Options of a run, declared once: the command line, Python, run files, the service and Spark are drawn from them; and seeds."""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from crowdveil.errors import Option, ParameterError, Text
from crowdveil.params import Params


def _location(value: Any) -> Any:
    """Return a path or URL as it was given; paths of Spark are no paths of this machine, so that they are not resolved."""
    if value is None or (isinstance(value, str | Path) and str(value)):
        return value
    raise ValueError("the path of a file or a folder")


def _location_field(metavar: str) -> Any:
    return Field(None, json_schema_extra={"metavar": metavar})


def _text_field() -> Any:
    return Field(None, min_length=1, max_length=200, strict=True)


Location = Annotated[str | Path | None, BeforeValidator(_location)]
"""A file or folder, by its path, or on a cluster by its URL."""


DECISION = ("title", "purpose", "recipient")
"""Options that the manifest and the report repeat as the publisher gives them."""


class ReleaseOptions(Params):
    """Options of every run, wherever it is started."""

    seed: int | None = Field(None, ge=0, lt=2**63, strict=True, title="Random seed")
    """Seed for a reproducible run. Keep it secret: it repeats every random choice. Default: fresh random numbers."""
    format: Literal["parquet", "csv"] | None = Field(None, title="File format")
    """File format of the tables. Default: that of the input."""
    export: Literal["flowmap", "omx", "all"] | None = None
    """Also write flows for other tools: flowmap.gl and kepler.gl, or matrices (OMX) in which suppressed cells are NaN."""
    attack: bool = Field(True, strict=True, title="Attack the release first")
    """Attack the release before it is published; the run fails if an attack succeeds more often than the guarantee allows."""
    report: bool = Field(True, strict=True, title="Write the report")
    """Write report.html into the release."""
    title: str | None = _text_field()
    """Name of the data set, the title of the report. It is published."""
    purpose: str | None = _text_field()
    """Purpose of the release, for the report. It is published."""
    recipient: str | None = _text_field()
    """Recipients of the release, for the report. It is published."""

    @property
    def exports(self) -> tuple[str, ...]:
        """The further files of flows that are asked for."""
        return ("flowmap", "omx") if self.export == "all" else () if self.export is None else (self.export,)

    def table_format(self, data: Any, data_name: str | None) -> Literal["parquet", "csv"]:
        """Return the format of tables: as asked for, or that of the name of the data file, or that of the input."""
        if self.format is not None:
            return self.format
        named = data_name or (data if isinstance(data, str | Path) else "")
        return "csv" if re.search(r"\.(csv|tsv|txt)(\.\w+)?$", str(named).lower()) else "parquet"


class EngineOptions(Params):
    """Where the work is done."""

    engine: Literal["local", "spark"] = "local"
    """Run on this machine, or on a cluster with Spark (needs the extra spark, and Java)."""
    master: str | None = Field(None, json_schema_extra={"metavar": "URL"})
    """Master of the Spark session, such as yarn. Default: local[*]."""
    table: str | None = Field(None, pattern=r"\w[\w.\-]*", json_schema_extra={"metavar": "FORMAT"})
    """On Spark: read the input as a table: catalog for a name in Spark's catalog, or the format of a connector for a path, such
    as delta or iceberg."""


class AuditOptions(Params):
    """Options of a run of flows with a ledger."""

    keep_unchanged: bool = Field(False, strict=True, title="Keep unchanged rows")
    """With a ledger: repeat the earlier value of a row in which fewer than k people have changed."""
    independent: bool = Field(False, strict=True, title="Records that differ are other trips")
    """With a ledger: state that records that differ from earlier releases of the same period are other trips. The ledger
    and the manifest keep the statement."""


class LedgerOptions(Params):
    """The ledger of releases."""

    ledger: Location = _location_field("FOLDER")
    """Confidential folder of earlier releases. This one is audited against them before it is published, and added to them."""


class RunOptions(LedgerOptions, AuditOptions, EngineOptions, ReleaseOptions):
    """Options of a run that is started here."""

    overwrite: bool = Field(False, strict=True)
    """Replace an earlier release in the folder."""
    pairing: Location = _location_field("FILE")
    """Write the original of each published trajectory to this confidential file outside the release (.csv or .parquet)."""


def refuse_table_without_spark(table: str | None) -> None:
    """Raise if data is to be read as a table of Spark, but without Spark."""
    if table is not None:
        raise ParameterError(
            Option("table"), Text("it is for tables of Spark. Add {engine}.", engine=Option("engine", "spark"))
        )


BITS = 128


def fresh() -> int:
    """Return entropy of the operating system, a new value for each call."""
    return secrets.randbits(BITS)


def derive_seed(seed: int, purpose: str) -> int:
    """Return a seed for another purpose: its draws reveal nothing about draws made with `seed` itself."""
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return int.from_bytes(digest[: BITS // 8], "big")


ATTACKS = "attacks"
"""The purpose of the attacks' seed: their draws are not those of the method."""


def drawn_seed(seed: int | None) -> int:
    """Return the seed of a run: the given one, or fresh entropy."""
    return fresh() if seed is None else seed
