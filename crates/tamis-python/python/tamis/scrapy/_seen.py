"""Sets of request fingerprints."""

from __future__ import annotations

import os
import time
from typing import Any, Protocol

import tamis

# What the items of the state file are.
_DESCRIPTION = "scrapy request fingerprints"

# A generation of an expiring set takes this share of the time of expiry.
_GENERATIONS = 4

# The seconds between two saves of a filter that is not written at once.
_SAVE_SECONDS = 60


class SeenSet(Protocol):
    """A set of fingerprints."""

    def contains(self, fingerprint: bytes) -> bool:
        """Test whether a fingerprint is in the set."""
        ...

    def add(self, fingerprint: bytes) -> bool:
        """Insert a fingerprint. Returns True if it is new."""
        ...

    def rate(self) -> float:
        """Return the present rate, a probability; 0 for an exact set."""
        ...

    def close(self) -> None:
        """Put everything on the disk."""
        ...


class ExactSet:
    """An exact set, in files of a folder or in memory.

    With a time of expiry, the set has generations: a new one starts after a quarter of the time, and
    one whose last item has expired is deleted.
    """

    def __init__(self, folder: str | None, expire: float | None) -> None:
        self._folder = folder
        self._expire = expire
        self._generations: list[tuple[float, tamis.DigestFile | tamis.DigestSet]] = []
        if folder is not None:
            starts = sorted(
                start for name in os.listdir(folder) if (start := _start(name)) is not None
            )
            self._generations = [(start, self._open(start)) for start in starts]
        self._advance()

    def _open(self, start: float) -> tamis.DigestFile | tamis.DigestSet:
        if self._folder is None:
            return tamis.DigestSet()
        path = os.path.join(self._folder, f"tamis-seen-{start:.0f}.state")
        return tamis.DigestFile(path, description=_DESCRIPTION)

    def _advance(self) -> None:
        now = time.time()
        if self._expire is None:
            if not self._generations:
                self._generations.append((now, self._open(now)))
            return
        span = self._expire / _GENERATIONS
        while self._generations and self._generations[0][0] + span + self._expire <= now:
            start, expired = self._generations.pop(0)
            expired.close()
            if self._folder is not None:
                os.remove(os.path.join(self._folder, f"tamis-seen-{start:.0f}.state"))
        if not self._generations or self._generations[-1][0] + span <= now:
            # A name has whole seconds, so two generations need different seconds.
            start = max(float(int(now)), self._generations[-1][0] + 1 if self._generations else 0)
            self._generations.append((start, self._open(start)))

    def contains(self, fingerprint: bytes) -> bool:
        self._advance()
        return any(fingerprint in digests for _, digests in self._generations)

    def add(self, fingerprint: bytes) -> bool:
        return not self.contains(fingerprint) and self._generations[-1][1].add(fingerprint)

    def rate(self) -> float:
        return 0.0

    def close(self) -> None:
        for _, digests in self._generations:
            digests.close()


def _start(name: str) -> float | None:
    """Return the start of the generation of a file, from its name."""
    if not (name.startswith("tamis-seen-") and name.endswith(".state")):
        return None
    digits = name.removeprefix("tamis-seen-").removesuffix(".state")
    return float(digits) if digits.isdecimal() else None


class FilterSet:
    """A filter, saved to a file of the folder once a minute and at the end.

    A killed crawler forgets the requests since the last save, and crawls their pages again.
    """

    def __init__(self, folder: str | None, expire: float | None, rate: float, items: int) -> None:
        self._path = None if folder is None else os.path.join(folder, "tamis-seen.tamis")
        self._saved = time.monotonic()
        if self._path is not None and os.path.exists(self._path):
            self._filter = tamis.open(self._path, writable=True)
        elif expire is not None:
            key = os.urandom(16)
            slices = _GENERATIONS
            self._filter = tamis.Window(items, rate, seconds=expire, slices=slices, key=key)
        else:
            self._filter = tamis.Growing(rate, key=os.urandom(16))

    def contains(self, fingerprint: bytes) -> bool:
        return fingerprint in self._filter

    def add(self, fingerprint: bytes) -> bool:
        is_new = self._filter.add(fingerprint)
        if self._path is not None and time.monotonic() - self._saved > _SAVE_SECONDS:
            self._save()
        return is_new

    def rate(self) -> float:
        return self._filter.estimate_rate()

    def close(self) -> None:
        if self._path is not None:
            self._save()

    def _save(self) -> None:
        self._filter.save(self._path or "")
        self._saved = time.monotonic()


class ServerSet:
    """A filter on a server: `tamis serve`, RedisBloom, Redis 8 or Valkey with a module of filters."""

    def __init__(self, url: str, key: str, expire: float | None, rate: float, items: int) -> None:
        import redis

        self._client: Any = redis.Redis.from_url(url)
        self._key = key
        self._rate = rate
        self._is_window = expire is not None
        if expire is not None:
            plan = ["KIND", "window", "ITEMS", items, "RATE", rate]
            window = ["WINDOW", int(expire * 1000), "SLICES", _GENERATIONS]
            self._reserve(redis.ResponseError, "TM.RESERVE", key, *plan, *window)
        else:
            self._reserve(redis.ResponseError, "BF.RESERVE", key, rate, items)

    def _reserve(self, error_class: type[Exception], *command: Any) -> None:
        try:
            self._client.execute_command(*command)
        except error_class as error:
            # Another spider has created the filter.
            if "exists" not in str(error):
                raise

    def contains(self, fingerprint: bytes) -> bool:
        command = "TM.EXISTS" if self._is_window else "BF.EXISTS"
        return bool(self._client.execute_command(command, self._key, fingerprint))

    def add(self, fingerprint: bytes) -> bool:
        command = "TM.ADD" if self._is_window else "BF.ADD"
        return bool(self._client.execute_command(command, self._key, fingerprint))

    def rate(self) -> float:
        # The planned rate, because the reports of servers differ.
        return self._rate

    def close(self) -> None:
        self._client.close()
