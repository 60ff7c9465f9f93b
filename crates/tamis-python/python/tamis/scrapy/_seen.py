"""Sets of request fingerprints in the memory and in the files of a job."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterable
from typing import Protocol

import tamis

_log = logging.getLogger(__name__)

# What the items of the state file are.
_DESCRIPTION = "scrapy request fingerprints"

# A generation of an expiring set takes this share of the time of expiry.
_GENERATIONS = 4

# The seconds between two saves of a filter that is not written at once.
_SAVE_SECONDS = 60

_FILTER_NAME = "tamis-seen.tamis"

# The time of the window, in seconds. The file of the window has its time in whole slices.
_TIME_NAME = "tamis-seen.time"

_GENERATION_NAME = re.compile(r"tamis-seen-(-?[0-9]+)\.state")

Clock = Callable[[], float]


class SeenSet(Protocol):
    """A set of fingerprints."""

    def contains(self, fingerprint: bytes) -> bool:
        """Test whether a fingerprint is in the set."""
        ...

    def add(self, fingerprint: bytes) -> bool:
        """Insert a fingerprint. Returns True if it is new."""
        ...

    def rate(self) -> float | None:
        """Return the present rate, a probability; None for an exact set."""
        ...

    def close(self) -> None:
        """Put everything on the disk."""
        ...


class _Generation:
    """The fingerprints of a part of the time of expiry."""

    __slots__ = ("digests", "path", "start")

    def __init__(self, start: float, folder: str | None) -> None:
        self.start = start
        self.path = None if folder is None else _generation_path(folder, start)
        self.digests: tamis.DigestFile | tamis.DigestSet = (
            tamis.DigestSet()
            if self.path is None
            else tamis.DigestFile(self.path, description=_DESCRIPTION)
        )

    def remove(self) -> None:
        """Delete the generation and its file."""
        self.digests.close()
        if self.path is not None:
            os.remove(self.path)


class ExactSet:
    """An exact set, in files of a folder or in memory.

    With a time of expiry, the set has generations: a new one starts after a quarter of the time,
    and one whose last item has expired is deleted. `clock` returns the seconds since 1970.
    """

    def __init__(self, folder: str | None, expire: float | None, clock: Clock = time.time) -> None:
        self._folder = folder
        self._expire = expire
        self._clock = clock
        self._generations: list[_Generation] = []
        try:
            if folder is not None:
                _refuse_file(os.path.join(folder, _FILTER_NAME), "bloom", "exact")
                for start in _starts_until(folder, clock()):
                    self._generations.append(_Generation(start, folder))
            self._advance()
        except BaseException:
            self.close()
            raise

    def _advance(self) -> None:
        generations = self._generations
        if self._expire is None:
            if not generations:
                generations.append(_Generation(float(int(self._clock())), self._folder))
            return
        now = self._clock()
        # A file name has whole seconds, so a generation may start up to a second from now. A later
        # start shows that the clock went backwards.
        if generations and generations[-1].start > now + 1:
            for generation in generations:
                generation.start = min(generation.start, now)
        span = self._expire / _GENERATIONS
        while generations and generations[0].start + span + self._expire <= now:
            generations.pop(0).remove()
        if not generations or generations[-1].start + span <= now:
            start = float(int(now))
            if generations:
                start = max(start, float(int(generations[-1].start)) + 1)
            # After a clock that went backwards, a file of this name may exist.
            paths = [it.path for it in generations if it.path is not None]
            while _generation_path(self._folder, start) in paths:
                start += 1
            generations.append(_Generation(start, self._folder))

    def contains(self, fingerprint: bytes) -> bool:
        self._advance()
        return any(fingerprint in it.digests for it in self._generations)

    def add(self, fingerprint: bytes) -> bool:
        return not self.contains(fingerprint) and self._generations[-1].digests.add(fingerprint)

    def load(self, fingerprints: Iterable[bytes]) -> int:
        """Insert fingerprints into the files. Returns how many were new."""
        return sum(self.add(it) for it in fingerprints)

    def rate(self) -> float | None:
        return None

    def close(self) -> None:
        for generation in self._generations:
            generation.digests.close()


def _generation_path(folder: str | None, start: float) -> str | None:
    return folder and os.path.join(folder, f"tamis-seen-{start:.0f}.state")


def _starts(folder: str) -> list[float]:
    """Return the starts of the generations of a folder, from the names of the files."""
    starts = []
    for name in os.listdir(folder):
        # A clock before 1970 has negative seconds.
        if found := _GENERATION_NAME.fullmatch(name):
            starts.append(float(found[1]))
    return sorted(starts)


def _starts_until(folder: str, now: float) -> list[float]:
    """Return the starts of the generations of a folder, oldest first.

    A generation of the future, from before the clock went backwards, would stay too long, so its
    file gets the name of the present.
    """
    starts = _starts(folder)
    for i in reversed(range(len(starts))):
        if starts[i] > now + 1:
            start = float(int(now))
            while start in starts:
                start -= 1
            old, new = _generation_path(folder, starts[i]), _generation_path(folder, start)
            os.rename(old or "", new or "")
            starts[i] = start
    return sorted(starts)


def _refuse_file(path: str, found: str, wanted: str) -> None:
    """Refuse a folder whose set is of another kind than the settings ask for."""
    if os.path.exists(path):
        raise ValueError(
            f"{path}: this job has the set of TAMIS_SEEN={found!r}, and not of {wanted!r}: keep "
            f"TAMIS_SEEN, use another JOBDIR, or remove the file to crawl all pages again"
        )


class FilterSet:
    """A filter, saved to a file of the folder once a minute and at the end.

    A killed crawler forgets the finished requests since the last save, and crawls their pages again
    if they are linked again.
    """

    def __init__(
        self,
        folder: str | None,
        expire: float | None,
        rate: float,
        items: int,
        clock: Clock = time.time,
    ) -> None:
        self._folder = folder
        self._path = None if folder is None else os.path.join(folder, _FILTER_NAME)
        self._saved = time.monotonic()
        self._clock = clock
        # The last time of the clock, and how far the time of the window is ahead of the clock.
        self._now = 0.0
        self._ahead = 0.0
        self._is_changed = False
        if folder is not None:
            for start in _starts(folder):
                _refuse_file(_generation_path(folder, start) or "", "exact", "bloom")
        if folder is not None and self._path is not None and os.path.exists(self._path):
            self._filter = _open_filter(self._path, expire, rate, items)
            # The clock may have been set back since the last crawler.
            self._now = _read_time(folder)
            self._advance()
            return
        self._filter = _create_filter(expire, rate, items)
        if folder is not None:
            # A folder that cannot be written shows this before the crawl.
            self._save()

    def contains(self, fingerprint: bytes) -> bool:
        self._advance()
        return fingerprint in self._filter

    def add(self, fingerprint: bytes) -> bool:
        self._advance()
        try:
            is_new = self._filter.add(fingerprint)
        except tamis.SaturatedWarning as warning:
            # The program makes warnings errors. Only a new item gives the warning, once.
            _log.warning("%s", warning)
            is_new = True
        self._is_changed |= is_new
        if self._path is not None and time.monotonic() - self._saved > _SAVE_SECONDS:
            self._save()
        return is_new

    def load(self, fingerprints: Iterable[bytes]) -> int:
        """Insert fingerprints and save the filter. Returns how many were new."""
        count = sum(self.add(it) for it in fingerprints)
        if self._is_changed:
            self._save()
        return count

    def _advance(self) -> None:
        if not isinstance(self._filter, tamis.Window):
            return
        now = self._clock()
        # The time of a window never goes back, so the window's time runs on from there.
        self._ahead += max(self._now - now, 0.0)
        self._now = now
        self._filter.advance(now + self._ahead)

    def rate(self) -> float | None:
        return self._filter.estimate_rate()

    def close(self) -> None:
        if self._is_changed:
            self._save()
        self._save_time()

    def _save(self) -> None:
        if self._path is not None:
            self._filter.save(self._path)
            self._save_time()
        self._saved = time.monotonic()
        self._is_changed = False

    def _save_time(self) -> None:
        if self._folder is not None and isinstance(self._filter, tamis.Window):
            path = os.path.join(self._folder, _TIME_NAME)
            with open(f"{path}.new", "w", encoding="ascii") as file:
                file.write(f"{self._now + self._ahead}\n")
            os.replace(f"{path}.new", path)


def _read_time(folder: str) -> float:
    """Return the time of the window of a folder; 0 if it is not known."""
    try:
        with open(os.path.join(folder, _TIME_NAME), encoding="ascii") as file:
            now = float(file.read())
    except (FileNotFoundError, ValueError):
        return 0.0
    return now if 0 <= now < 1e15 else 0.0


def _create_filter(expire: float | None, rate: float, items: int) -> tamis.Window | tamis.Growing:
    key = os.urandom(16)
    if expire is None:
        return tamis.Growing(rate, key=key)
    # One slice has space for all items of the time, because a crawl comes at once.
    return tamis.Window(items, rate, seconds=expire, slices=1, clock=False, key=key)


def _open_filter(path: str, expire: float | None, rate: float, items: int) -> tamis.Filter:
    """Read the filter of a job, which must have the plan of the settings."""
    # The window has the time of the set, and not of the system.
    filter = tamis.open(path, in_memory=True, clock=False)
    found = filter.info()
    wanted = _create_filter(expire, rate, items).info()
    for name, setting in (
        ("kind", "TAMIS_EXPIRE"),
        ("window_seconds", "TAMIS_EXPIRE"),
        ("rate", "TAMIS_RATE"),
        ("capacity", "TAMIS_ITEMS"),
    ):
        if found.get(name) != wanted.get(name):
            raise ValueError(
                f"{path}: the filter of this job has the {name.replace('_', ' ')} "
                f"{found.get(name)}, and {setting} asks for {wanted.get(name)}: keep {setting}, "
                f"use another JOBDIR, or remove the file to crawl all pages again"
            )
    return filter
