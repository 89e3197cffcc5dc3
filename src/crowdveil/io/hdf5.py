"""A look at an HDF5 file before anything of it is read: a data set there can be any file of the machine, or a program.

Data can lie in other files (external storage, external links, virtual data sets), and be unpacked by plugins. All of that is
refused, and so are links by name: what is left lies in the file itself.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from crowdveil.errors import InputError

OBJECTS_MOST = 200_000
CHUNK_BYTES_MOST = 256 << 20
VALUES_MOST = 4_000_000_000
TEXT_BYTES_MOST = 4096
"""Bytes of one text of fixed length."""
_FILTERS = {1, 2, 3, 5, 6, 32000}
"""Deflate, shuffle, checksums, n-bit, scale-offset, and LZF, which h5py brings; others are loaded as plugins."""


def check_hdf5(file: Any, path: Path) -> None:
    """Raise unless an open file (h5py) holds nothing but plain groups and data sets of numbers or texts of its own."""
    import h5py

    first = h5py.h5g.open(file.id, b"/")
    seen, left = {_place(h5py.h5o.get_info(first))}, [first]
    while left:
        group = left.pop()
        for name in group:
            if group.links.get_info(name).type != h5py.h5l.TYPE_HARD:
                raise _refused(path, "links")
            about = h5py.h5o.get_info(group, name)
            if _place(about) in seen:
                continue
            seen.add(_place(about))
            if len(seen) > OBJECTS_MOST:
                raise _refused(path, f"more than {OBJECTS_MOST:,} objects")
            if about.type == h5py.h5o.TYPE_GROUP:
                left.append(h5py.h5g.open(group, name))
            elif about.type == h5py.h5o.TYPE_DATASET:
                _check_dataset(h5py.h5d.open(group, name), path)
            else:
                raise _refused(path, "types of its own")


def _place(about: Any) -> tuple[int, int]:
    return about.fileno, about.addr


def _check_dataset(dataset: Any, path: Path) -> None:
    """Where its data lie comes first: to ask for anything else may open other files."""
    import h5py

    how = dataset.get_create_plist()
    layout = how.get_layout()
    if layout == h5py.h5d.VIRTUAL or how.get_external_count():
        raise _refused(path, "data in other files")
    if layout not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
        raise _refused(path, "data in other files")
    if any(how.get_filter(i)[0] not in _FILTERS for i in range(how.get_nfilters())):
        raise _refused(path, "data that need a plugin")
    kind = dataset.get_type()
    if kind.committed() or not _is_plain(kind):
        raise _refused(path, "values that are neither numbers nor texts")
    shape = dataset.shape
    if len(shape) > 2 or _product(shape) > VALUES_MOST:
        raise _refused(path, f"more than {VALUES_MOST:,} values in one place")
    if layout == h5py.h5d.CHUNKED and _product(how.get_chunk()) * kind.get_size() > CHUNK_BYTES_MOST:
        raise _refused(path, f"pieces of more than {CHUNK_BYTES_MOST >> 20} MiB")


def _is_plain(kind: Any) -> bool:
    import h5py

    if isinstance(kind, h5py.h5t.TypeStringID):
        return bool(kind.is_variable_str() or kind.get_size() <= TEXT_BYTES_MOST)
    # Numbers of other sizes than a machine has are put together bit by bit, which is slow, and nobody writes them.
    return isinstance(kind, h5py.h5t.TypeIntegerID | h5py.h5t.TypeFloatID) and kind.get_size() in (1, 2, 4, 8)


def _product(sizes: Any) -> int:
    return math.prod(int(s) for s in sizes)


def _refused(path: Path, what: str) -> InputError:
    return InputError(path, f"the file holds {what}, which are not read; write plain matrices.")
