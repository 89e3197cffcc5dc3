"""Check an HDF5 file before its data is read: a data set can refer to any file of the machine, or load a plugin.

Refused are external storage, external links, virtual data sets, filters that need a plugin, and soft links. All remaining
data is in the file itself.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from crowdveil.errors import InputError

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
