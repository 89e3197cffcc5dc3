"""What one token may take of the service, so that there is enough for the others: requests in a minute, previews at once, and
space on the disk. 0 means no limit. Counts of requests and previews are those of this process.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from math import ceil

from crowdveil.server.answers import ApiError
from crowdveil.server.queue.store import Store
from crowdveil.server.queue.upload_files import UploadFiles
from crowdveil.server.tokens import Caller

WAIT_S = 60.0
"""How long a preview waits for one of the places."""
FORGET_AT = 10_000
"""Buckets that are kept before full ones are forgotten."""


class Rates:
    """A bucket for each token: it holds what may be asked in a minute, and is filled again as time goes by."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def check(self, who: Caller) -> None:
        """Take one request out of the bucket; raises where it is empty."""
        most = who.limits.max_requests
        if not most:
            return
        with self._lock:
            at = self._clock()
            left, since = self._buckets.get(who.who, (float(most), at))
            left = min(float(most), left + (at - since) * most / 60)
            empty = left < 1
            self._buckets[who.who] = (left if empty else left - 1, at)
            if len(self._buckets) > FORGET_AT:
                self._buckets = {n: b for n, b in self._buckets.items() if at - b[1] < 60}
        if empty:
            wait = max(1, ceil((1 - left) * 60 / most))
            sentence = f"wanted at most {most:,} requests a minute; wait {wait} second{'s' if wait > 1 else ''}."
            raise ApiError(429, "too_many_requests", sentence, Retry_After=str(wait))


class Previews:
    """Places for files that are looked at: a few for each token, and a few for all."""

    def __init__(self, places: int) -> None:
        self.places, self._held = places, Counter[str]()
        self._free = asyncio.Semaphore(places) if places else None

    @asynccontextmanager
    async def place(self, who: Caller) -> AsyncIterator[None]:
        """One of a token's own places, for as long as the preview takes; raises where it has no more."""
        most = who.limits.max_previews
        if most and self._held[who.who] >= most:
            sentence = f"wanted at most {most:,} files to look at at a time; wait until one is done."
            raise ApiError(429, "too_many", sentence, Retry_After="2")
        self._held[who.who] += 1
        try:
            yield
        finally:
            self._held[who.who] -= 1
            if not self._held[who.who]:
                del self._held[who.who]

    def turn(self) -> AbstractAsyncContextManager[None]:
        """One of the places that all share."""
        return nullcontext() if self._free is None else turn(self._free)


@asynccontextmanager
async def turn(places: asyncio.Semaphore) -> AsyncIterator[None]:
    """One of some places; waited for, since others are done soon."""
    try:
        async with asyncio.timeout(WAIT_S):
            await places.acquire()
    except TimeoutError:
        sentence = "too many files are looked at just now; try again in a minute."
        raise ApiError(429, "too_many", sentence, Retry_After="30") from None
    try:
        yield
    finally:
        places.release()


class DiskQuota:
    """Limits on the disk: what jobs hold is in their rows, uploads are counted in their folders, and what comes in here."""

    def __init__(self, store: Store, uploads: UploadFiles, total_bytes: int) -> None:
        self.store, self.uploads, self.total = store, uploads, total_bytes
        self._coming, self._lock = Counter[str](), threading.Lock()

    def held(self, who: Caller) -> tuple[int, int]:
        """Return the bytes that jobs and uploads hold: those of a caller, and of all."""
        mine = self.store.disk(who.id) + self.uploads.disk(who.id)
        return mine, self.store.disk() + self.uploads.disk() if self.total else 0

    @contextmanager
    def upload(self, who: Caller, held: tuple[int, int], declared: str) -> Iterator[Upload]:
        """Confinement for one upload, checked at once by the length that its header declares and again as it comes in."""
        upload = Upload(self, who, who.limits.max_disk_mib << 20, *held)
        try:
            if declared.isdecimal() and len(declared) < 20:
                upload.came(int(declared))
            yield upload
        finally:
            self._count(who.id, -upload.counted)

    def _count(self, owner: str, size: int) -> tuple[int, int]:
        """Add to what comes in; of this owner, and of all."""
        with self._lock:
            self._coming[owner] += size
            if not self._coming[owner]:
                del self._coming[owner]
            return self._coming[owner], self._coming.total()


class Upload:
    """One upload that is counted as it comes in."""

    def __init__(self, disk: DiskQuota, who: Caller, most: int, mine: int, all_: int) -> None:
        self.disk, self.who, self.most, self.mine, self.all = disk, who, most, mine, all_
        self.counted = 0

    def hold(self, size: int) -> None:
        """Count bytes that are on the disk already, for as long as this request shares them."""
        self.counted += size
        self.disk._count(self.who.id, size)

    def came(self, size: int) -> None:
        """Count bytes that came or will come; raises where there is no space for them."""
        more = max(0, size - self.counted)
        self.counted += more
        mine, all_ = self.disk._count(self.who.id, more)
        if self.most and size > self.most:
            raise ApiError(413, "too_large", f"wanted at most {self.most >> 20:,} MiB of files; send less data.")
        if self.most and self.mine + mine > self.most:
            sentence = f"the files of your jobs may take {self.most >> 20:,} MiB; remove results that you do not need."
            raise ApiError(429, "no_space", sentence, Retry_After="60")
        if self.disk.total and self.all + all_ > self.disk.total:
            raise ApiError(507, "no_space", "the disk of the server is full; ask its operator.")
