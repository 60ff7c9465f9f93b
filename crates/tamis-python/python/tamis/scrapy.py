"""Dupe filters for Scrapy.

In ``settings.py``::

    DUPEFILTER_CLASS = "tamis.scrapy.DupeFilter"

The filter holds an exact set of request fingerprints: 16 bytes of memory for a request, instead of
the 200 bytes of Scrapy's own filter. With ``JOBDIR``, the set is in a file of this folder, where it
survives a killed crawler.

==========================  =================================================================
setting                     meaning
==========================  =================================================================
``TAMIS_SEEN``              ``"exact"`` (default) or ``"bloom"``: a filter that takes 2 bytes for
                            a request, but skips a page by mistake at ``TAMIS_RATE``
``TAMIS_RATE``              the rate of ``"bloom"`` and of a server, by default 0.0001
``TAMIS_ITEMS``             how many requests a window or a server expects, by default a million
``TAMIS_EXPIRE``            the seconds after which a page may be crawled again; it is crawled
                            again at the latest after a quarter more time
``TAMIS_MARK``              ``"scheduled"`` (default) or ``"success"``: a request counts as seen
                            once its response came with a status below 400
``TAMIS_URL``               the server of `ServerDupeFilter`, by default
                            ``redis://127.0.0.1:6379/0``
``TAMIS_KEY``               the key of `ServerDupeFilter`, by default ``<spider>:seen``
==========================  =================================================================

The statistics ``dupefilter/filtered`` and ``dupefilter/unique`` count requests. For filters with a
rate, ``dupefilter/expected_skips`` estimates how many pages were skipped by mistake.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Any, Protocol

from scrapy import signals
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.job import job_dir

import tamis

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from scrapy.settings import BaseSettings
    from scrapy.spiders import Spider

_log = logging.getLogger(__name__)

# What the items of the state file are.
_DESCRIPTION = "scrapy request fingerprints"

# A generation of an expiring set takes this share of the time of expiry.
_GENERATIONS = 4

# The seconds between two saves of a filter that is not written at once.
_SAVE_SECONDS = 60

# The requests between two estimates of a filter's rate.
_ESTIMATE_EVERY = 10_000

_META = "tamis_fingerprint"


class SeenSet(Protocol):
    """A set of fingerprints."""

    def contains(self, fingerprint: bytes) -> bool:
        """Test whether a fingerprint is in the set."""

    def add(self, fingerprint: bytes) -> bool:
        """Insert a fingerprint. Returns True if it is new."""

    def rate(self) -> float:
        """Return the present rate, a probability; 0 for an exact set."""

    def close(self) -> None:
        """Put everything on the disk."""


class _Exact:
    """An exact set, in files of a folder or in memory.

    With a time of expiry, the set has generations: a new one starts after a quarter of the time, and
    one whose last item has expired is deleted.
    """

    def __init__(self, folder: str | None, expire: float | None) -> None:
        self._folder = folder
        self._expire = expire
        self._generations: list[tuple[float, tamis.DigestFile | tamis.DigestSet]] = []
        if folder is not None:
            starts = sorted(start for name in os.listdir(folder) if (start := _start(name)) is not None)
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


class _Approximate:
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


class _Server:
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


class DupeFilter(BaseDupeFilter):
    """Filters requests that were seen before, by their fingerprints."""

    def __init__(self, seen: SeenSet, crawler: Crawler, marks_success: bool) -> None:
        super().__init__()
        self._seen = seen
        self._stats = crawler.stats
        self._fingerprinter = crawler.request_fingerprinter
        self._debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        self._is_logged = False
        self._marks_success = marks_success
        # The requests whose response has not come yet.
        self._pending: set[bytes] = set()
        # The pending requests that have a response, which middlewares may still retry or redirect.
        self._downloaded: set[bytes] = set()
        self._unique = 0
        self._expected_skips = 0.0
        self._rate = 0.0
        if marks_success:
            crawler.signals.connect(self._on_response, signal=signals.response_received)
            crawler.signals.connect(self._on_downloaded, signal=signals.response_downloaded)
            crawler.signals.connect(self._on_left, signal=signals.request_left_downloader)
            crawler.signals.connect(self._on_dropped, signal=signals.request_dropped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        mark = settings.get("TAMIS_MARK", "scheduled")
        if mark not in ("scheduled", "success"):
            raise ValueError(f"TAMIS_MARK must be 'scheduled' or 'success', and not {mark!r}")
        return cls(cls._seen_set(crawler), crawler, mark == "success")

    @classmethod
    def _seen_set(cls, crawler: Crawler) -> SeenSet:
        settings = crawler.settings
        folder = job_dir(settings)
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
        kind = settings.get("TAMIS_SEEN", "exact")
        if kind == "exact":
            return _Exact(folder, _expire(settings))
        if kind == "bloom":
            return _Approximate(folder, _expire(settings), _rate(settings), _items(settings))
        raise ValueError(f"TAMIS_SEEN must be 'exact' or 'bloom', and not {kind!r}")

    def request_seen(self, request: Request) -> bool:
        """Test whether a request was seen, and mark it as seen."""
        fingerprint = self._fingerprinter.fingerprint(request)
        if self._marks_success:
            if fingerprint in self._pending or self._seen.contains(fingerprint):
                return True
            self._pending.add(fingerprint)
            # A redirect and a retry are other requests, but keep the meta of this request.
            request.meta[_META] = fingerprint
        elif not self._seen.add(fingerprint):
            return True
        self._count_unique()
        return False

    def _count_unique(self) -> None:
        if self._unique % _ESTIMATE_EVERY == 0:
            self._rate = self._seen.rate()
        self._unique += 1
        # Of all new requests, the share `rate` looked seen and was not counted here.
        self._expected_skips += self._rate / (1 - self._rate) if self._rate < 1 else 1
        if self._stats is not None:
            self._stats.inc_value("dupefilter/unique")

    def _on_response(self, response: Response, request: Request, spider: Spider) -> None:
        fingerprint = request.meta.get(_META)
        if fingerprint is None:
            return
        self._pending.discard(fingerprint)
        if response.status < 400:
            self._seen.add(fingerprint)

    def _on_downloaded(self, response: Response, request: Request, spider: Spider) -> None:
        fingerprint = request.meta.get(_META)
        if fingerprint in self._pending:
            self._downloaded.add(fingerprint)

    def _on_left(self, request: Request, spider: Spider) -> None:
        # A request that leaves the downloader without a response has failed, so its page may be
        # requested again.
        fingerprint = request.meta.get(_META)
        if fingerprint not in self._downloaded:
            self._pending.discard(fingerprint)
        self._downloaded.discard(fingerprint)

    def _on_dropped(self, request: Request, spider: Spider) -> None:
        self._pending.discard(request.meta.get(_META, b""))

    def close(self, reason: str) -> None:
        """Put the set on the disk, and report."""
        if self._rate and self._stats is not None:
            self._stats.set_value("dupefilter/expected_skips", round(self._expected_skips, 3))
        self._seen.close()

    def log(self, request: Request, spider: Spider) -> None:
        """Count a filtered request, and log the first one, or each one with DUPEFILTER_DEBUG."""
        if self._debug or not self._is_logged:
            note = "" if self._debug else " (DUPEFILTER_DEBUG shows all duplicates)"
            _log.debug("Filtered duplicate request: %s%s", request, note, extra={"spider": spider})
            self._is_logged = True
        if self._stats is not None:
            self._stats.inc_value("dupefilter/filtered")


class ServerDupeFilter(DupeFilter):
    """Filters requests that any spider on the same server key has seen.

    In ``settings.py``::

        DUPEFILTER_CLASS = "tamis.scrapy.ServerDupeFilter"
        TAMIS_URL = "redis://127.0.0.1:6379/0"

    One command tests and marks a request, so two spiders never crawl the same page at the same time.
    Needs the package ``redis``.
    """

    @classmethod
    def _seen_set(cls, crawler: Crawler) -> SeenSet:
        settings = crawler.settings
        url = settings.get("TAMIS_URL", "redis://127.0.0.1:6379/0")
        spider = crawler.spider or crawler.spidercls
        key = settings.get("TAMIS_KEY") or f"{spider.name}:seen"
        return _Server(url, key, _expire(settings), _rate(settings), _items(settings))


def _expire(settings: BaseSettings) -> float | None:
    expire = settings.get("TAMIS_EXPIRE")
    if expire is None:
        return None
    seconds = float(expire)
    if not 1 <= seconds < 1e12:
        raise ValueError(f"TAMIS_EXPIRE must be at least 1 second, and not {expire!r}")
    return seconds


def _rate(settings: BaseSettings) -> float:
    rate = settings.getfloat("TAMIS_RATE", 0.0001)
    if not 0 < rate < 1:
        raise ValueError(f"TAMIS_RATE must be between 0 and 1, and not {rate}")
    return rate


def _items(settings: BaseSettings) -> int:
    items = settings.getint("TAMIS_ITEMS", 1_000_000)
    if items < 1:
        raise ValueError(f"TAMIS_ITEMS must be at least 1, and not {items}")
    return items
