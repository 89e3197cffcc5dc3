"""Open Matrix files (OMX, HDF5), the format of transport models: one matrix per time step.

An HDF5 file is checked before its data is read: a data set can refer to any file of the machine, or load a plugin. Refused are
external storage, external links, virtual data sets, filters that need a plugin, and soft links. All other data is in the file.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, OutputError, Text, counted, import_extra
from crowdveil.io.notes import ReadNotes
from crowdveil.io.od_grouping import note_fractions
from crowdveil.io.times import iso_times, read_seconds
from crowdveil.io.zones import sort_by_id
from crowdveil.model.arrays import Floats, Indices, Ints
from crowdveil.model.flows import WEIGHT_UNITS, Flows, rounded
from crowdveil.model.time_axis import DAY_S, shortest_step
from crowdveil.model.zones import Zones

MAX_OBJECTS = 200_000
MAX_CHUNK_BYTES = 256 << 20
MAX_VALUES = 4_000_000_000
MAX_TEXT_BYTES = 4096
"""Bytes of one text of fixed length."""
_FILTERS = {1, 2, 3, 5, 6, 32000}
"""Deflate, shuffle, checksums, n-bit, scale-offset, and LZF of h5py; other filters are plugins."""


def check_hdf5(file: Any, path: Path) -> None:
    """Raise unless an open h5py file holds only plain groups and its own data sets of numbers or texts."""
    import h5py

    root = h5py.h5g.open(file.id, b"/")
    seen, left = {_address(h5py.h5o.get_info(root))}, [root]
    while left:
        group = left.pop()
        for name in group:
            if group.links.get_info(name).type != h5py.h5l.TYPE_HARD:
                raise _refused(path, "links")
            info = h5py.h5o.get_info(group, name)
            if _address(info) in seen:
                continue
            seen.add(_address(info))
            if len(seen) > MAX_OBJECTS:
                raise _refused(path, f"more than {MAX_OBJECTS:,} objects")
            if info.type == h5py.h5o.TYPE_GROUP:
                left.append(h5py.h5g.open(group, name))
            elif info.type == h5py.h5o.TYPE_DATASET:
                _check_dataset(h5py.h5d.open(group, name), path)
            else:
                raise _refused(path, "named types")


def _address(info: Any) -> tuple[int, int]:
    return info.fileno, info.addr


def _check_dataset(dataset: Any, path: Path) -> None:
    """Check a data set. Its storage comes first, because other queries may open other files."""
    import h5py

    created = dataset.get_create_plist()
    layout = created.get_layout()
    own = layout in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED)
    if not own or created.get_external_count():
        raise _refused(path, "data in other files")
    if any(created.get_filter(i)[0] not in _FILTERS for i in range(created.get_nfilters())):
        raise _refused(path, "data that need a plugin")
    kind = dataset.get_type()
    if kind.committed() or not _is_plain(kind):
        raise _refused(path, "values that are neither numbers nor texts")
    shape = dataset.shape
    if len(shape) > 2 or math.prod(shape) > MAX_VALUES:
        raise _refused(path, f"a data set of more than {MAX_VALUES:,} values")
    if layout == h5py.h5d.CHUNKED and math.prod(created.get_chunk()) * kind.get_size() > MAX_CHUNK_BYTES:
        raise _refused(path, f"chunks of more than {MAX_CHUNK_BYTES >> 20} MiB")


def _is_plain(kind: Any) -> bool:
    import h5py

    if isinstance(kind, h5py.h5t.TypeStringID):
        return bool(kind.is_variable_str() or kind.get_size() <= MAX_TEXT_BYTES)
    # Numbers of other sizes are decoded bit by bit, which is slow, and no tool writes them.
    return isinstance(kind, h5py.h5t.TypeIntegerID | h5py.h5t.TypeFloatID) and kind.get_size() in (1, 2, 4, 8)


def _refused(path: Path, what: str) -> InputError:
    return InputError(path, f"the file holds {what} (not supported). Write plain matrices.")


OMX_VERSION = b"0.2"
LOOKUP = "zone_id"
MAX_CELLS = 4_000_000_000
MAX_ZONES = 1_000_000
_ROWS_AT_ONCE = 256


def _h5py() -> Any:
    return import_extra("h5py", "h5py", "omx", "reading and writing OMX")


def is_omx(data: Any) -> bool:
    """Return whether data is the path of an OMX file, or of matrices in one, such as file.omx#AM,PM."""
    return isinstance(data, str | Path) and omx_file(data).suffix.lower() == ".omx"


def omx_file(data: str | Path) -> Path:
    """Return the path of an OMX file without the names of matrices."""
    return _split(data)[0]


def _split(data: str | Path) -> tuple[Path, list[str]]:
    """Return the path of a file and the names of matrices behind #."""
    path, sign, names = str(data).rpartition("#")
    if not sign or Path(data).exists() or not path.lower().endswith(".omx"):
        return Path(data), []
    return Path(path), [name.strip() for name in names.split(",")]


def read_omx(
    data: str | Path, *, zones: Zones | None = None, lookup: str | None = None, notes: ReadNotes | None = None
) -> Flows:
    """Read flows from an OMX file, or from matrices in it, such as file.omx#AM,PM: several are successive periods of a day.

    Zero and missing (NaN) cells are no flows; fractions are rounded.
    """
    h5py, notes = _h5py(), notes if notes is not None else ReadNotes()
    path, chosen = _split(data)
    if not path.exists():
        raise InputError(path, "there is no such file. Check its path.")
    try:
        with h5py.File(path, "r") as file:
            check_hdf5(file, path)
            if "data" not in file or not len(file["data"]):
                raise InputError(path, "the file holds no matrices. Expected at least one.")
            _check_groups(path, file)
            t, names, timed = _matrices(path, list(file["data"]), chosen, notes)
            index, known = _zones_of(path, file, zones, lookup, notes)
            cells = [_cells(path, name, file["data"][name], len(index)) for name in names]
            parts = [_rounded_cells(index[origin], index[destination], amount) for origin, destination, amount in cells]
            fractional = any(bool((amount != np.floor(amount)).any()) for _, _, amount in cells)
    except (OSError, LookupError, AttributeError, TypeError, ValueError, RuntimeError):
        raise InputError(path, "the file is broken or is no OMX. Write it again.") from None
    when = np.repeat(t, [len(v) for _, _, v in parts])
    if fractional:
        note_fractions(notes, "cells")
    volume = np.concatenate([part[2] for part in parts])
    origin, destination = (np.concatenate([part[end] for part in parts])[volume > 0] for end in (0, 1))
    when, volume = when[volume > 0], volume[volume > 0]
    if len(volume) == 0:
        raise InputError(path, "all cells are zero or missing. Expected at least one flow.")
    step_s = shortest_step(t, "UTC") if timed else None
    return Flows.from_rows(known, when, origin, destination, volume, step_s=step_s)


def _check_groups(path: Path, file: Any) -> None:
    """Raise unless matrices are two-dimensional numbers of at most `MAX_CELLS` cells, and lookups are lists."""
    cells = 0
    for matrix in file["data"].values():
        if len(matrix.shape) != 2 or matrix.dtype.kind not in "iuf":
            raise InputError(
                path, "the file is broken or is no OMX: a matrix is not a table of numbers. Write it again."
            )
        cells += int(matrix.size)
    if cells > MAX_CELLS:
        raise InputError(
            path, f"the matrices have more than {MAX_CELLS:,} cells in total. Give fewer, or flows as a table."
        )
    for lookup in file["lookup"].values() if "lookup" in file else ():
        if len(lookup.shape) != 1 or lookup.shape[0] > MAX_ZONES:
            raise InputError(
                path, f"a lookup is not a list of at most {MAX_ZONES:,} zones. Expected one id for each row."
            )


def _matrices(path: Path, names: list[str], chosen: list[str], notes: ReadNotes) -> tuple[Ints, list[str], bool]:
    """Return the times of the matrices to read, their names, and whether they have times."""
    unknown = [name for name in chosen if name not in names]
    if unknown or len(set(chosen)) < len(chosen):
        raise InputError(
            path,
            f"Expected names of matrices, each once, got {', '.join(chosen)}. Choose from {', '.join(names[:12])}, as in "
            f"{path.name}#{names[0]}.",
        )
    chosen = chosen or names
    times = read_seconds(pa.array(chosen, pa.string()), str(path)) if all("-" in n for n in chosen) else None
    if times is not None and not times.bad.any():
        return times.values, chosen, True
    if len(chosen) == 1:
        return np.zeros(1, np.int64), chosen, False
    if chosen is names:
        raise InputError(
            path,
            f"names of {counted(len(names), 'matrix', 'matrices')} are not times. Choose one, or several as successive periods, "
            f"as in {path.name}#{','.join(names[:2])}.",
        )
    periods = np.arange(len(chosen)) * DAY_S
    listed = ", ".join(
        f"{name} is {iso}" for name, iso in zip(chosen, iso_times(periods, "UTC").to_pylist(), strict=True)
    )
    notes.add(f"matrices are read as successive periods: {listed}.")
    return periods, chosen, True


def _zones_of(
    path: Path, file: Any, zones: Zones | None, lookup: str | None, notes: ReadNotes
) -> tuple[Indices, Zones]:
    """Return the zone index of each row of the matrices, and all zones."""
    lookups = list(file["lookup"]) if "lookup" in file else []
    if lookup is not None and lookup not in lookups:
        raise InputError(path, f"there is no lookup {lookup}; it has {', '.join(lookups) or 'none'}.")
    name = lookup or (LOOKUP if LOOKUP in lookups else lookups[0] if lookups else None)
    rows = int(file["data"][next(iter(file["data"]))].shape[0])
    if name is None and zones is not None:
        raise InputError(
            path, "Expected a lookup with the ids of the zones, got none. Add one, or leave the zones out."
        )
    if name is None:
        notes.add("the OMX file has no lookup: its zones are numbered from 1.")
        ids = [str(i + 1) for i in range(rows)]
    else:
        ids = [v.decode() if isinstance(v, bytes) else str(v) for v in file["lookup"][name][:].tolist()]
    if len(ids) != rows:
        raise InputError(path, f"the lookup has {len(ids):,} zones, but the matrices have {rows:,} rows.")
    repeated = rows - len(set(ids))
    if repeated:
        raise InputError(path, f"the lookup {name} repeats {counted(repeated, 'id')}. Expected each zone once.")
    if zones is None:
        zones = sort_by_id(Zones.from_ids(ids))
    index = np.array([zones.index_of(i) for i in ids], np.int32)
    if (index < 0).any():
        raise InputError(
            path,
            Text(
                "{missing} not among the zones. Name another lookup with {origin}.",
                missing=counted(int((index < 0).sum()), "zone of the lookup is", "zones of the lookup are"),
            ),
        )
    return index, zones


def _cells(path: Path, name: str, data: Any, zones: int) -> tuple[Ints, Ints, Floats]:
    """Return rows, columns and values of the cells above zero, read in bands of rows."""
    if data.shape != (zones, zones):
        raise InputError(path, f"matrix {name} is not square, or not of the size of the lookup.")
    bands = []
    for start in range(0, zones, _ROWS_AT_ONCE):
        band: Floats = np.asarray(data[start : start + _ROWS_AT_ONCE], np.float64)
        row, column = np.nonzero(np.nan_to_num(band, nan=0.0, posinf=np.inf, neginf=-np.inf))
        values = band[row, column]
        for bad, what in (
            (values < 0, "below zero"),
            (np.isinf(values), "infinite"),
            (values > 2**53, "too large"),
        ):
            if bad.any():
                raise InputError(path, f"{int(bad.sum()):,} cells of matrix {name} are {what}. Fix them.")
        bands.append((row + start, column, values))
    return tuple(np.concatenate([b[i] for b in bands]) for i in range(3))  # type: ignore[return-value]


def _rounded_cells(origin: Indices, destination: Indices, amount: Floats) -> tuple[Indices, Indices, Ints]:
    """Return cells in the order of the zones with whole volumes; the rest of each is carried over to the next one."""
    order = np.lexsort((destination, origin))
    whole = np.floor(amount[order])
    part = np.rint((amount[order] - whole) * WEIGHT_UNITS).astype(np.int64)
    volume = rounded(whole.astype(np.int64), part, np.array([0, len(order)]))
    return origin[order], destination[order], volume


def write_omx(flows: Flows, path: Path) -> None:
    """Write flows as OMX: one matrix per time step, named by its start; cells without a flow are 0."""
    n = len(flows.zones)
    if n * n * flows.steps > MAX_CELLS:
        raise OutputError(
            f"an OMX file of {flows.steps:,} matrices of {n:,} zones would be too large. Write Parquet instead."
        )
    names = ["flows"] if flows.step_s is None else iso_times(flows.t, flows.tz).to_pylist()

    def matrices() -> Iterator[tuple[str, Floats]]:
        for i, name in enumerate(names):
            rows = slice(flows.offsets[i], flows.offsets[i + 1])
            dense = np.zeros((n, n), np.float64)
            dense[flows.origin[rows], flows.destination[rows]] = flows.volume[rows]
            yield name, dense

    write_matrices(matrices(), {LOOKUP: flows.zones.ids.tolist()}, path)


def write_matrices(matrices: Iterable[tuple[str, Floats]], lookups: Mapping[str, Sequence[str]], path: Path) -> None:
    """Write square matrices by name, and the lookups of their rows and columns, as OMX."""
    h5py, n = _h5py(), len(next(iter(lookups.values())))
    # Written in memory first: the library crashes when the disk is full.
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        file.attrs["OMX_VERSION"] = OMX_VERSION
        file.attrs["SHAPE"] = np.array([n, n], np.int32)
        group = file.create_group("data")
        for name, dense in matrices:
            group.create_dataset(name, data=dense, compression="gzip", compression_opts=1, shuffle=True)
        listed = file.create_group("lookup")
        for name, ids in lookups.items():
            listed.create_dataset(name, data=_lookup(ids))
    path.write_bytes(content.getvalue())


def _lookup(ids: Sequence[str]) -> Any:
    """Return ids as numbers if all are, as other readers expect, else as bytes."""
    if all(i.isdecimal() and str(int(i)) == i and len(i) < 10 for i in ids):
        return np.array([int(i) for i in ids], np.int32)
    return np.array([i.encode() for i in ids])
