"""The dupe filters."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir
from scrapy.utils.request import referer_str

import tamis
from tamis.scrapy import _settings
from tamis.scrapy._job import Job
from tamis.scrapy._seen import ExactSet, FilterSet, SeenSet
from tamis.scrapy._server import ServerSet
from tamis.scrapy._unfinished import Unfinished

if TYPE_CHECKING:
    from typing import Any, Self

    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from scrapy.spiders import Spider

_log = logging.getLogger(__name__)

# The most new requests between two estimates of a filter's rate.
_ESTIMATE_EVERY = 10_000

# The reason of a spider that was closed because its set failed.
_CLOSE_REASON = "dupefilter_error"


class DupeFilter(BaseDupeFilter):
    """Filters requests that were seen before, by their fingerprints."""

    def __init__(
        self,
        seen: SeenSet,
        crawler: Crawler,
        marks_success: bool = False,
        job: Job | None = None,
    ) -> None:
        super().__init__()
        self._seen = seen
        self._crawler = crawler
        self._stats = crawler.stats
        self._fingerprinter = crawler.request_fingerprinter
        self._debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        self._is_logged = False
        self._marks_success = marks_success
        self._job = job
        self._unfinished: Unfinished | None = None
        # The fingerprints since the set failed.
        self._failed: set[bytes] | None = None
        self._unique = 0
        self._expected_skips = 0.0
        self._rate: float | None = 0.0
        self._next_estimate = 0
        if marks_success or job is not None:
            journal = None if job is None else job.journal
            self._unfinished = Unfinished(crawler, journal, marks_success, self._stop)
        if marks_success:
            crawler.signals.connect(self._on_response, signal=signals.response_received)
        if job is not None and job.must_recover:
            crawler.signals.connect(self._on_opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        try:
            return cls._of(crawler)
        except (OSError, ValueError, ImportError, tamis.TamisError) as error:
            # Scrapy closes the engine, which raises another exception that hides this one.
            _log.error("The dupe filter cannot start: %s", error)
            raise

    @classmethod
    def _of(cls, crawler: Crawler) -> Self:
        mark = _settings.choice(crawler.settings, "TAMIS_MARK", "scheduled", "success")
        folder = job_dir(crawler.settings)
        if folder is None:
            return cls(cls._seen_set(crawler, None), crawler, mark == "success")
        job = Job(folder, crawler)
        try:
            seen = cls._seen_set(crawler, job)
        except BaseException:
            job.abandon()
            raise
        return cls(seen, crawler, mark == "success", job)

    @classmethod
    def _seen_set(cls, crawler: Crawler, job: Job | None) -> SeenSet:
        settings = crawler.settings
        expire = _settings.expire_seconds(settings)
        folder = None if job is None else job.folder
        seen: ExactSet | FilterSet
        if _settings.choice(settings, "TAMIS_SEEN", "exact", "bloom") == "exact":
            seen = ExactSet(folder, expire)
        else:
            rate, items = _settings.rate(settings), _settings.items(settings)
            seen = FilterSet(folder, expire, rate, items)
        if job is not None:
            try:
                job.take_fingerprints(seen)
            except BaseException:
                seen.close()
                raise
        return seen

    def open(self) -> None:
        """Note that the scheduler has opened its queue."""
        if self._job is not None:
            self._job.on_queue_opened()

    def request_seen(self, request: Request) -> bool:
        """Test whether a request was seen, and mark it as seen."""
        fingerprint = self._fingerprinter.fingerprint(request)
        if self._failed is None:
            try:
                if self._is_seen(fingerprint, request):
                    return True
                self._count_unique()
                return False
            except Exception as error:
                # An error of any kind must not lose the request.
                self._stop(error)
        assert self._failed is not None
        if fingerprint in self._failed:
            return True
        self._failed.add(fingerprint)
        # A request that cannot be tested goes into the queue, where a job keeps it.
        if self._unfinished is not None and not self._unfinished.is_recovering:
            try:
                self._unfinished.add(fingerprint, request)
            except Exception as error:
                _log.debug("A request is not in the journal: %r", error)
        return False

    def _is_seen(self, fingerprint: bytes, request: Request) -> bool:
        unfinished = self._unfinished
        if unfinished is None:
            return not self._seen.add(fingerprint)
        if unfinished.is_recovering:
            if not self._marks_success:
                # A filter that is saved once a minute may not have the fingerprint.
                self._seen.add(fingerprint)
            return False
        if self._marks_success:
            carried = unfinished.carried(request)
            if unfinished.is_pending(fingerprint):
                unfinished.join(fingerprint, carried)
                return True
            if self._seen.contains(fingerprint):
                for redirected in carried:
                    self._seen.add(redirected)
                return True
            unfinished.add(fingerprint, request)
            return False
        # The journal has a request before the set, so a kill between both loses no page.
        if self._seen.contains(fingerprint):
            return True
        unfinished.add(fingerprint, request)
        if self._seen.add(fingerprint):
            return False
        # Another spider was faster.
        unfinished.remove(fingerprint)
        return True

    def _count_unique(self) -> None:
        if self._unique >= self._next_estimate and self._rate is not None:
            self._rate = self._seen.rate()
            step = min(max(self._unique // 16, 16), _ESTIMATE_EVERY)
            self._next_estimate = self._unique + step
            self._report()
        self._unique += 1
        # Of all new requests, the share `rate` looked seen and was not counted here.
        if self._rate is not None:
            self._expected_skips += self._rate / (1 - self._rate) if self._rate < 1 else 1
        self._stats.inc_value("dupefilter/unique")

    def _report(self) -> None:
        if self._rate is not None:
            self._stats.set_value("dupefilter/expected_skips", round(self._expected_skips, 3))

    def _on_response(self, response: Response, request: Request, **_: Any) -> None:
        if response.status >= 400 or self._unfinished is None or self._failed is not None:
            return
        try:
            for fingerprint in self._unfinished.take_succeeded(request):
                self._seen.add(fingerprint)
        except Exception as error:
            self._stop(error)

    def _on_opened(self, **_: Any) -> None:
        assert self._unfinished is not None and self._job is not None
        try:
            count = self._unfinished.recover()
        except Exception as error:
            # Scrapy would only log the error, and end the crawl without the rest of the requests.
            self._stop(error)
            return
        if self._job.is_after_kill:
            _log.info("Resuming a crawl that was killed (%d requests were not finished)", count)
        elif count:
            _log.info("Resuming a crawl (%d requests were not finished)", count)

    def _stop(self, error: Exception) -> None:
        """Close the spider, because requests cannot be tested any more."""
        if self._failed is not None:
            return
        self._failed = set()
        if self._job is not None:
            self._job.journal.freeze()
        # An error of another kind is a mistake of a program, whose place helps.
        trace = None if isinstance(error, tamis.TamisError) else error
        message = "The dupe filter failed, and closes the spider: %s"
        _log.error(message, error, exc_info=trace)
        try:
            engine = self._crawler.engine
        except RuntimeError:
            # A crawler without an engine has no spider to close.
            return

        def close() -> None:
            if engine.spider is None:
                return
            deferred_from_coro(engine.close_spider_async(reason=_CLOSE_REASON))

        # An idle spider is closed within the call, but the queue must take the request before.
        call_later(0, close)

    def close(self, reason: str) -> None:
        """Put the set on the disk, and report."""
        self._report()
        if self._unfinished is not None:
            try:
                self._unfinished.update()
            except Exception as error:
                self._stop(error)
        try:
            self._seen.close()
        except BaseException:
            if self._job is not None:
                self._job.abandon()
            raise
        if self._job is not None:
            self._job.close(reason == "finished")

    def log(self, request: Request, spider: Spider) -> None:
        """Count a filtered request, and log the first one, or each one with DUPEFILTER_DEBUG."""
        if self._debug:
            message = "Filtered duplicate request: %(request)s (referer: %(referer)s)"
            values = {"request": request, "referer": referer_str(request)}
            _log.debug(message, values, extra={"spider": spider})
        elif not self._is_logged:
            message = (
                "Filtered duplicate request: %(request)s - no more duplicates will be shown (see "
                "DUPEFILTER_DEBUG to show all duplicates)"
            )
            _log.debug(message, {"request": request}, extra={"spider": spider})
            self._is_logged = True
        self._stats.inc_value("dupefilter/filtered")


class ServerDupeFilter(DupeFilter):
    """Filters requests that any spider on the same server key has seen.

    In ``settings.py``::

        DUPEFILTER_CLASS = "tamis.scrapy.ServerDupeFilter"
        TAMIS_URL = "redis://127.0.0.1:6379/0"

    One command tests and marks a request, so two spiders never crawl a page at the same time. With
    ``TAMIS_MARK = "success"``, another spider may crawl a page until its response has come.
    Needs the package ``redis``.
    """

    @classmethod
    def _seen_set(cls, crawler: Crawler, job: Job | None) -> SeenSet:
        settings = crawler.settings
        url = settings.get("TAMIS_URL", "redis://127.0.0.1:6379/0")
        spider = crawler.spider or crawler.spidercls
        return ServerSet(
            url,
            settings.get("TAMIS_KEY") or f"{spider.name}:seen",
            _settings.expire_seconds(settings),
            _settings.rate(settings),
            _settings.items(settings),
        )
