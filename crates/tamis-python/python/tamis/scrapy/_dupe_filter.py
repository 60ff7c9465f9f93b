"""The dupe filters."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.job import job_dir

from tamis.scrapy._seen import ExactSet, FilterSet, SeenSet, ServerSet

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from scrapy.settings import BaseSettings
    from scrapy.spiders import Spider

_log = logging.getLogger(__name__)

# The requests between two estimates of a filter's rate.
_ESTIMATE_EVERY = 10_000

# The key of a request's fingerprint in its meta.
_META = "tamis_fingerprint"


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
            return ExactSet(folder, _expire(settings))
        if kind == "bloom":
            return FilterSet(folder, _expire(settings), _rate(settings), _items(settings))
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
        return ServerSet(url, key, _expire(settings), _rate(settings), _items(settings))


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
