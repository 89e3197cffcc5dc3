"""Partitions on the executors of a Spark cluster. The only file that imports pyspark; see `crowdveil.engine` for what to add."""

from __future__ import annotations

import os
import re
import shutil
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from crowdveil.engine.error_marshalling import call_marked, iterate_marked, restored
from crowdveil.engine.hadoop import HadoopFiles
from crowdveil.engine.local import TICK_S
from crowdveil.errors import InputError, MissingExtraError, Option, ParameterError
from crowdveil.progress import Progress, no_progress

Frame = Any
"""A data frame of Spark: rows that lie on the cluster. What is done with one is said here and done there."""
Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Group = Callable[[pa.Table], pa.Table]
T = TypeVar("T")

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # Few rows may take long: groups are not put together because they are small.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    # Packs of rows are large: few of them are a piece.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 1024**2),
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What our queries run with. They have a session of their own beside that of the user, whose settings stay as they are."""
TASKS_A_SLOT = 4
"""Tasks that a grouping has for each that can run at a time: enough to even out, and few enough to cost nothing."""
_OWN = {
    "spark.app.name": "crowdveil",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}
"""What a session that we start ourselves has besides."""


class SparkEngine:
    """A session of Spark, and what partitions need of it: read, map, group, gather, write.

    Parameters
    ----------
    session
        The user's session, or one of our own. Queries run in a new session beside it, on the same executors.
    """

    def __init__(self, session: Any) -> None:
        if not hasattr(session, "newSession") or type(session).__module__.startswith("pyspark.sql.connect"):
            raise ParameterError(
                Option("spark"),
                "wanted a session of the classic kind, but got another; make it with SparkSession.builder.master(...).",
            )
        self.session = session.newSession()
        for name, value in SETTINGS.items():
            self.session.conf.set(name, value)
        self.context = self.session.sparkContext
        self.session.conf.set("spark.sql.shuffle.partitions", str(TASKS_A_SLOT * self.slots))
        self.files = HadoopFiles(self.context)
        self._views: list[str] = []

    @property
    def slots(self) -> int:
        """Tasks that run at a time."""
        return max(int(self.context.defaultParallelism), 1)

    # Data in

    def read(self, data: Any) -> Frame:
        """Rows of a path as Spark takes it (a CSV has text in all columns), or of a data frame of the user's session."""
        if not isinstance(data, str | Path):
            name = f"crowdveil_{uuid.uuid4().hex}"
            data.createOrReplaceGlobalTempView(name)
            self._views.append(name)
            return self.session.table(f"global_temp.{name}")
        path = str(data)
        if not self.files.exists(path):
            raise InputError(path, "there is no such file.")
        plain = re.sub(r"\.(gz|bz2|zst)$", "", path.rstrip("/").lower())
        if plain.endswith((".csv", ".tsv", ".txt")):
            separator = "\t" if plain.endswith(".tsv") else self._separator(path)
            options = {"header": True, "sep": separator, "mode": "FAILFAST", "escape": '"', "enforceSchema": False}
            return self.act(lambda: self.session.read.options(**options).csv(path))
        return self.act(lambda: self.session.read.parquet(path))

    def _separator(self, path: str) -> str:
        """The sign that stands most often in the first line."""
        first = self.session.read.text(path).limit(1).collect()
        if not first:
            raise InputError(path, "the file is empty; wanted a header and at least one row.")
        line: str = first[0][0]
        return max(",;\t|", key=line.count)

    def table(self, table: pa.Table) -> Frame:
        """A small table from here, for all executors."""
        return self.session.createDataFrame(table)

    @staticmethod
    def schema(frame: Frame) -> pa.Schema:
        """The columns of a frame, as partitions see them."""
        from pyspark.sql.pandas.types import to_arrow_schema

        schema: pa.Schema = to_arrow_schema(frame.schema, timezone="UTC")
        return schema

    # Work

    def sql(self, text: str, **frames: Frame) -> Frame:
        """A query over frames, which stand in it as {name}."""
        # Spark would name frames by itself, and forget the names after the query; and with a name it forgets the kept rows.
        names = {}
        for place, frame in frames.items():
            names[place] = f"crowdveil_{uuid.uuid4().hex}"
            frame.createOrReplaceTempView(names[place])
        return self.session.sql(text.format(**names))

    def map_rows(self, frame: Frame, function: Batches, schema: pa.Schema) -> Frame:
        """The rows that a function makes of pieces of the rows, wherever they lie; it is sent to each executor once."""
        sent = self.context.broadcast(function)
        with _quiet():
            return frame.mapInArrow(lambda pieces: iterate_marked(sent.value, pieces), _spark_schema(schema))

    def map_groups(self, frame: Frame, key: str, function: Group, schema: pa.Schema, groups: int) -> Frame:
        """The rows that a function makes of all rows with one value in column `key`; there are about so many `groups`."""
        sent = self.context.broadcast(function)
        # Groups go to tasks by a hash: with twice as many tasks few groups must share one.
        tasks = min(max(2 * groups, self.slots), 20_000)
        placed = frame.repartition(tasks, key)
        with _quiet():
            return placed.groupBy(key).applyInArrow(lambda table: call_marked(sent.value, table), _spark_schema(schema))

    @contextmanager
    def kept(self, frame: Frame) -> Iterator[Frame]:
        """Keep rows on the disks of the executors once they are made, as several queries need them."""
        from pyspark import StorageLevel

        frame.persist(StorageLevel.DISK_ONLY)
        try:
            yield frame
        finally:
            frame.unpersist()

    # Data out

    def gather(self, frame: Frame, progress: Progress = no_progress) -> pa.Table:
        """Few rows, here."""
        with _quiet():
            table: pa.Table = self.act(frame.toArrow, progress)
        return table

    def write(self, frame: Frame, path: str, by: str | None = None, progress: Progress = no_progress) -> None:
        """Write rows as a folder of Parquet files, by the values of a column if one is given; whole or not at all."""
        writer = frame.write.mode("overwrite")
        self.act(lambda: (writer.partitionBy(by) if by else writer).parquet(path), progress)

    def act(self, action: Callable[[], T], progress: Progress = no_progress) -> T:
        """Do what reaches the cluster, and stay beside it: progress is told in tasks, and an interrupt ends it there too."""
        group = f"crowdveil-{uuid.uuid4().hex}"

        def work() -> T:
            self.context.setJobGroup(group, "crowdveil", interruptOnCancel=True)
            return action()

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(work)
            try:
                while wait([done], TICK_S).not_done:
                    self._tell(group, progress)
                return done.result()
            except KeyboardInterrupt:
                self.context.cancelJobGroup(group)
                raise
            except Exception as error:
                raise restored(error) from error

    def _tell(self, group: str, progress: Progress) -> None:
        tracker = self.context.statusTracker()
        stages = [tracker.getStageInfo(s) for j in tracker.getJobIdsForGroup(group)
                  if (job := tracker.getJobInfo(j)) for s in job.stageIds]  # fmt: skip
        known = [stage for stage in stages if stage is not None]
        total = sum(stage.numTasks for stage in known)
        if total:
            progress(min(sum(stage.numCompletedTasks for stage in known), total), total)

    def close(self) -> None:
        """Forget what the user's session was asked to show us."""
        for name in self._views:
            self.session.catalog.dropGlobalTempView(name)
        self._views.clear()


@contextmanager
def spark_engine(spark: Any = None, master: str | None = None) -> Iterator[SparkEngine]:
    """An engine on the user's session, or on one that is started here and stopped at the end."""
    engine = SparkEngine(spark if spark is not None else _start(master))
    try:
        yield engine
    finally:
        engine.close()
        if spark is None:
            engine.session.stop()


def _start(master: str | None) -> Any:
    """A session of our own, on all cores of this machine by default. What spark-submit set already stays as it is."""
    try:
        from pyspark import SparkConf
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark", str(Option("engine", "spark"))) from None
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise ParameterError(
            f"{Option('engine', 'spark')} needs Java 17 or newer: install it, or set JAVA_HOME to where it is."
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf()
    if SparkSession.getActiveSession() is not None:
        raise ParameterError(
            Option("engine", "spark"), f"a session of Spark runs here already; give it as {Option('spark')}."
        )
    if master is not None:
        conf.set("spark.master", master)
    settings = {"spark.master": "local[*]", **_OWN}
    if conf.get("spark.master", "local[*]").startswith("local"):
        # Executors of this machine see the same files, so they take this very code.
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    for name, value in settings.items():
        if not conf.contains(name):
            conf.set(name, value)
    try:
        with _no_words_of_java():
            return SparkSession.builder.config(conf=conf).getOrCreate()
    except PySparkRuntimeError:
        raise ParameterError(
            Option("engine", "spark"), "Java did not start; install Java 17 or newer, or set JAVA_HOME to where it is."
        ) from None
    except Exception as error:
        raise ParameterError(
            Option("engine", "spark"),
            f"no session could be started on {conf.get('spark.master')} ({type(error).__name__}); check {Option('master')}.",
        ) from error


@contextmanager
def _no_words_of_java() -> Iterator[None]:
    """Give what is started inside nowhere to write its warnings: whoever runs a command reads sentences there."""
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
    """Without pyspark's warnings of a pandas that it was not tried with: no data passes through pandas here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
