"""Run partitions on the executors of a Spark cluster. The only file that imports pyspark; see `crowdveil.engine`."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from crowdveil.engine import LocalEngine, use
from crowdveil.engine.local import TICK_S
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.errors import (
    CrowdveilError,
    InputError,
    MissingExtraError,
    Option,
    ParameterError,
    Text,
    as_json,
    from_json,
)

Frame = Any
"""A data frame of Spark: rows on the cluster, evaluated there."""
BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
GroupFunction = Callable[[pa.Table], pa.Table]
T = TypeVar("T")

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # A few rows may take long, so small groups are not coalesced.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    # Serialized batches are large: few of them are a chunk.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 1024**2),
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""Settings of queries. They run in a new session, so that the settings of the user's session do not change."""
TASKS_A_SLOT = 4
"""Tasks of a grouping per slot: enough to balance load, and few enough to cost nothing."""
_OWN = {
    "spark.app.name": "crowdveil",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
"""Settings of a session that is started here."""
_MARK = "crowdveil-error:"
_CSV = InputError("a row of the CSV has too few or too many values. Fix it, or its quotes.")
_KNOWN: tuple[tuple[str, CrowdveilError], ...] = (
    (
        "No module named 'crowdveil'",
        ParameterError(
            Option("engine", "spark"), "the workers' Python has no crowdveil. Pack it for them, as docs/spark.md says."
        ),
    ),
    ("MALFORMED_RECORD_IN_PARSING", _CSV),
    ("MALFORMED_CSV_RECORD", _CSV),
    (
        "Illegal Parquet type",
        InputError("a column has a type that Spark cannot read, such as times in nanoseconds. Write microseconds."),
    ),
    ("PATH_NOT_FOUND", InputError("there is no such file or folder. Name one that exists.")),
    ("UNABLE_TO_INFER_SCHEMA", InputError("there is no data in the folder. Expected CSV or Parquet files.")),
    (
        "CANNOT_READ_FILE_FOOTER",
        InputError("the file is broken or of another format. Expected CSV (.csv) or Parquet."),
    ),
)
"""Errors of Spark that a user can fix, by their error class or a part of their text."""


@dataclass(frozen=True)
class SparkTable:
    """A table that Spark reads through one of its connectors.

    Attributes
    ----------
    name
        Its name in Spark's catalog, or its path.
    format
        "catalog" for a name; the format of the connector for a path.
    """

    name: str
    format: str

    @classmethod
    def of(cls, data: Any, table: str | None) -> Any:
        """Return the data as a table of a format; unchanged without one, or if it is no name."""
        return cls(str(data), table) if table is not None and isinstance(data, str | Path) else data


class SparkEngine:
    """A Spark session with the operations of partitions: read, map, group, collect.

    Parameters
    ----------
    session
        The user's session, or one started here. Queries run in a new session on the same executors.
    """

    def __init__(self, session: Any) -> None:
        if not hasattr(session, "newSession") or type(session).__module__.startswith("pyspark.sql.connect"):
            raise ParameterError(
                Option("spark"),
                "Expected a classic session, not Spark Connect. Create it with SparkSession.builder.master(...).",
            )
        self.session = session.newSession()
        for name, value in SETTINGS.items():
            self.session.conf.set(name, value)
        self.context = self.session.sparkContext
        self.session.conf.set("spark.sql.shuffle.partitions", str(TASKS_A_SLOT * self.slots))
        self._views: list[str] = []

    @property
    def slots(self) -> int:
        """Number of tasks that run in parallel."""
        return max(int(self.context.defaultParallelism), 1)

    # Data in

    def read(self, data: Any) -> Frame:
        """Return the rows of a path (a CSV has text in all columns), a table, or a data frame of the user's session."""
        if isinstance(data, SparkTable):
            return self._read_table(data)
        if not isinstance(data, str | Path):
            name = f"crowdveil_{uuid.uuid4().hex}"
            data.createOrReplaceGlobalTempView(name)
            self._views.append(name)
            return self.session.table(f"global_temp.{name}")
        return self.act(lambda: self._read_files(str(data)))

    def _read_files(self, path: str) -> Frame:
        plain = re.sub(r"\.(gz|bz2|zst)$", "", path.rstrip("/").lower())
        if not plain.endswith((".csv", ".tsv", ".txt")):
            return self.session.read.parquet(path)
        separator = "\t" if plain.endswith(".tsv") else self._separator(path)
        options = {"header": True, "sep": separator, "mode": "FAILFAST", "escape": '"', "enforceSchema": False}
        return self.session.read.options(**options).csv(path)

    def _read_table(self, table: SparkTable) -> Frame:
        reader = self.session.read
        by_name = table.format == "catalog"
        try:
            return self.act(
                lambda: reader.table(table.name) if by_name else reader.format(table.format).load(table.name)
            )
        except Exception as error:
            wanted = "a table of Spark's catalog" if by_name else f"a path in the format {table.format}"
            raise InputError(
                table.name,
                Text(
                    "Expected {wanted}, but Spark cannot read it ({kind}). Check the name, {table}, and that the connector's "
                    "jar is on Spark's class path.",
                    wanted=wanted,
                    kind=type(error).__name__,
                ),
            ) from error

    def _separator(self, path: str) -> str:
        """Return the most frequent delimiter in the first line."""
        first = self.session.read.text(path).limit(1).collect()
        if not first:
            raise InputError(path, "the file is empty. Expected a header and at least one row.")
        line: str = first[0][0]
        return max(",;\t|", key=line.count)

    def table(self, table: pa.Table) -> Frame:
        """Return a small local table as a frame."""
        return self.session.createDataFrame(table)

    @staticmethod
    def schema(frame: Frame) -> pa.Schema:
        """Return the Arrow schema of a frame."""
        from pyspark.sql.pandas.types import to_arrow_schema

        # Releases before 4.2 have no such parameter, and take UTC.
        zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
        schema: pa.Schema = to_arrow_schema(frame.schema, **zone)
        return schema

    # Work

    def sql(self, text: str, **frames: Frame) -> Frame:
        """Return a query over frames, which appear in it as {name}."""
        # Spark's own names of frames end with the query, and the persisted rows with them.
        names = {}
        for name, frame in frames.items():
            names[name] = f"crowdveil_{uuid.uuid4().hex}"
            frame.createOrReplaceTempView(names[name])
        return self.session.sql(text.format(**names))

    def map_rows(self, frame: Frame, function: BatchFunction, schema: pa.Schema) -> Frame:
        """Map a function over chunks of the rows where they are; it is sent to each executor once."""
        sent = self.context.broadcast(function)
        with _quiet():
            return frame.mapInArrow(lambda chunks: marshal_errors_of_chunks(sent.value, chunks), _spark_schema(schema))

    def map_groups(self, frame: Frame, key: str, function: GroupFunction, schema: pa.Schema, groups: int) -> Frame:
        """Map a function over all rows of one value in column `key`; `groups` is their approximate number."""
        sent = self.context.broadcast(function)
        # Groups are hashed to tasks: with twice as many tasks few groups share one.
        tasks = min(max(2 * groups, self.slots), 20_000)
        placed = frame.repartition(tasks, key)
        with _quiet():
            return placed.groupBy(key).applyInArrow(
                lambda table: _on_executor(sent.value, table), _spark_schema(schema)
            )

    @contextmanager
    def kept(self, frame: Frame) -> Iterator[Frame]:
        """Persist rows on the disks of the executors in the block, for several queries."""
        from pyspark import StorageLevel

        frame.persist(StorageLevel.DISK_ONLY)
        try:
            yield frame
        finally:
            frame.unpersist()

    # Data out

    def gather(self, frame: Frame, progress: Progress = no_progress) -> pa.Table:
        """Collect few rows as a local table."""
        with _quiet():
            table: pa.Table = self.act(frame.toArrow, progress)
        return table

    def act(self, action: Callable[[], T], progress: Progress = no_progress) -> T:
        """Run an action on the cluster; report progress in tasks, and cancel its jobs on an interrupt."""
        group = f"crowdveil-{uuid.uuid4().hex}"

        def work() -> T:
            self.context.setJobGroup(group, "crowdveil", interruptOnCancel=True)
            return action()

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(work)
            try:
                while wait([done], TICK_S).not_done:
                    if progress is not no_progress:  # asking Java takes time of the driver
                        self._report(group, progress)
                return done.result()
            except KeyboardInterrupt:
                self.context.cancelJobGroup(group)
                raise
            except Exception as error:
                raise unmarshal_error(error) from error

    def _report(self, group: str, progress: Progress) -> None:
        tracker = self.context.statusTracker()
        stages = [tracker.getStageInfo(s) for j in tracker.getJobIdsForGroup(group)
                  if (job := tracker.getJobInfo(j)) for s in job.stageIds]  # fmt: skip
        known = [stage for stage in stages if stage is not None]
        total = sum(stage.numTasks for stage in known)
        if total:
            progress(min(sum(stage.numCompletedTasks for stage in known), total), total)

    def close(self) -> None:
        """Drop the views of the user's frames."""
        for name in self._views:
            self.session.catalog.dropGlobalTempView(name)
        self._views.clear()


@contextmanager
def spark_engine(spark: Any = None, master: str | None = None) -> Iterator[SparkEngine]:
    """Yield an engine on the user's session, or on one that is started here and stopped at the end."""
    _check_packages()
    engine = SparkEngine(spark if spark is not None else _start(master))
    try:
        yield engine
    finally:
        engine.close()
        if spark is None:
            engine.session.stop()


def _on_executor(function: GroupFunction, table: pa.Table) -> pa.Table:
    """Map a function on one thread: a task has one processor, and the cluster decides how many run at a time."""
    with use(LocalEngine(1)):
        return marshal_errors(function, table)


def _check_packages() -> None:
    """Raise unless pyspark is installed, and pandas, which PySpark imports in functions over Arrow tables."""
    for package in ("pyspark", "pandas"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "spark", Option("engine", "spark"))


def _start(master: str | None) -> Any:
    """Start a session, on all cores of this machine by default. Settings of spark-submit take precedence."""
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise ParameterError(
            Text(
                "{engine} needs Java 17 or newer: install it, or set JAVA_HOME to its folder.",
                engine=Option("engine", "spark"),
            )
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf()
    if SparkSession.getActiveSession() is not None:
        raise ParameterError(Option("engine", "spark"), "a Spark session is active already. Give it as spark=.")
    if master is not None:
        conf.set("spark.master", master)
    settings = {"spark.master": "local[*]", **_OWN}
    if conf.get("spark.master", "local[*]").startswith("local"):
        # Executors of this machine have the same files, so they import this code.
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    for name, value in settings.items():
        if not conf.contains(name):
            conf.set(name, value)
    try:
        with _silent_stderr():
            return SparkSession.builder.config(conf=conf).getOrCreate()
    except PySparkRuntimeError:
        raise ParameterError(
            Option("engine", "spark"), "Java did not start. Install Java 17 or newer, or set JAVA_HOME to its folder."
        ) from None
    except Exception as error:
        raise ParameterError(
            Option("engine", "spark"),
            Text(
                "no session could be started on {cluster} ({kind}). Check {master}.",
                cluster=conf.get("spark.master"),
                kind=type(error).__name__,
            ),
        ) from error


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Discard the warnings of processes started in the block; stderr is for the user's messages."""
    before = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress pyspark's warnings about untested pandas versions: no data passes through pandas here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def marshal_errors(function: Callable[[Any], T], argument: Any) -> T:
    """Call a function on an executor; only the text of its error reaches the driver, so it carries JSON."""
    try:
        return function(argument)
    except CrowdveilError as error:
        raise RuntimeError(_MARK + json.dumps(as_json(error.code, error.text))) from None


def marshal_errors_of_chunks(function: Callable[[Any], Iterator[T]], chunks: Any) -> Iterator[T]:
    """Yield the chunks of a generator; its errors are marshalled as by `marshal_errors`."""
    made = function(chunks)
    while (chunk := marshal_errors(lambda it: next(it, None), made)) is not None:
        yield chunk


def unmarshal_error(error: Exception) -> Exception:
    """Return an error of ours as it was raised on an executor, one of Spark that a user can fix, or the error itself."""
    text = str(error)
    _, mark, content = text.partition(_MARK)
    if mark:
        sent, _ = json.JSONDecoder().raw_decode(content)
        return from_json(sent)
    return next((known for words, known in _KNOWN if words in text), error)
