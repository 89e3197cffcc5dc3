"""Part files of a release on a cluster's file system, with plain names."""

from __future__ import annotations

from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.progress import Progress


def write_part_files(engine: SparkEngine, rows: Frame, folder: str, progress: Progress) -> None:
    """Write rows as a folder of part files with plain names, in the order of the frame's partitions."""
    engine.write(rows, folder, progress=progress)
    _rename(engine, folder)


def _rename(engine: SparkEngine, folder: str) -> None:
    files = engine.files
    for name, _, _ in files.listed(folder):
        if name.startswith((".", "_")):
            files.remove(f"{folder}/{name}")
    for number, name in enumerate(files.names(folder)):
        files.move(f"{folder}/{name}", f"{folder}/part-{number:05}.parquet")
