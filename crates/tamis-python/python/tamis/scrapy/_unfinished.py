"""Follows requests until they are finished.

A request is finished when its callback or errback has ended, and all new requests are scheduled. A
retry or a redirect is another object of Scrapy, but carries the keys of the first request in its
meta. The first request is finished when the last object that carries its key is finished.

A request is also finished if Scrapy drops it on purpose: an extension or a middleware refuses the
request, or the scheduler does not take it. It is not finished if the queue of Scrapy fails. No
signal tells these cases apart, so the methods of the scheduler are wrapped.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scrapy import signals

from tamis.scrapy._job import META, UNFILTERED, unfiltered_key
from tamis.scrapy._journal import Journal

if TYPE_CHECKING:
    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler
    from scrapy.http import Request

_log = logging.getLogger(__name__)


class Unfinished:
    """The requests that were scheduled and are not finished.

    `on_error` is called with an error of the journal in a handler of a signal, because Scrapy would
    only log the error.
    """

    def __init__(
        self,
        crawler: Crawler,
        journal: Journal | None,
        keeps_pending: bool,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._crawler = crawler
        self._journal = journal
        self._keeps_pending = keeps_pending
        self._on_error = on_error
        # The fingerprints of the requests without a good response.
        self._pending: set[bytes] = set()
        if keeps_pending and journal is not None:
            self._pending.update(it for it in journal.keys() if not it.startswith(UNFILTERED))
        # The requests in the engine, with their keys.
        self._in_engine: dict[Request, tuple[bytes, ...]] = {}
        # The request in the engine that carries a key.
        self._carriers: dict[bytes, Request] = {}
        # The fingerprints that redirected to a pending fingerprint.
        self._joined: dict[bytes, list[bytes]] = {}
        # The keys that the scheduler's present request has brought.
        self._added: list[bytes] = []
        # The keys that stay in the journal, because a request of their callback was lost.
        self._kept: set[bytes] = set()
        self._scheduler: BaseScheduler | None = None
        # True while the requests of the journal are scheduled again.
        self.is_recovering = False
        # Whether the scheduler has taken the last request.
        self._is_taken = False
        connect = crawler.signals.connect
        connect(self._on_opened, signal=signals.spider_opened)
        connect(self._on_opened, signal=signals.request_scheduled)
        connect(self._on_engine, signal=signals.request_reached_downloader)
        connect(self._on_engine, signal=signals.response_received)
        connect(self._on_engine, signal=signals.scheduler_empty)

    def is_pending(self, fingerprint: bytes) -> bool:
        """Test whether a request is on its way, and has not failed."""
        if fingerprint in self._pending and fingerprint in self._carriers:
            self.update()
            return fingerprint in self._pending and not self._is_scraped(fingerprint)
        return fingerprint in self._pending

    def carried(self, request: Request) -> tuple[bytes, ...]:
        """Return the keys of the request that a retry or a redirect goes on with.

        A spider may copy the meta of a response into new requests, so only keys of requests that
        are still in the downloader count.
        """
        keys = request.meta.get(META)
        if not keys:
            return ()
        self.update()
        return tuple(it for it in keys if it in self._carriers and not self._is_scraped(it))

    def add(self, fingerprint: bytes, request: Request) -> None:
        """Follow a new request."""
        carried = self.carried(request)
        request.meta[META] = (*carried, fingerprint)
        self._added = [*carried, fingerprint]
        for key in self._added:
            self._carriers.pop(key, None)
        if self._keeps_pending:
            self._pending.add(fingerprint)
        if self._journal is not None:
            self._journal.add(fingerprint, request, self._crawler.spider)

    def remove(self, key: bytes) -> None:
        """Stop to follow a key."""
        self._carriers.pop(key, None)
        self._pending.discard(key)
        self._joined.pop(key, None)
        if self._journal is not None and key not in self._kept:
            self._journal.remove(key)

    def join(self, fingerprint: bytes, carried: tuple[bytes, ...]) -> None:
        """Mark requests that were redirected to a pending request together with it."""
        self._joined.setdefault(fingerprint, []).extend(it for it in carried if it != fingerprint)

    def take_succeeded(self, request: Request) -> list[bytes]:
        """Return the fingerprints that a good response marks. They are not pending any more."""
        succeeded: list[bytes] = []
        for key in request.meta.get(META, ()):
            if key in self._pending:
                self._pending.discard(key)
                succeeded += (key, *self._joined.pop(key, ()))
        return succeeded

    def update(self) -> None:
        """Find the requests that came into the engine or left it."""
        try:
            slot = self._crawler.engine._slot
        except RuntimeError:
            # The crawler has no engine yet.
            return
        present = set() if slot is None else slot.inprogress
        for request in self._in_engine.keys() - present:
            for key in self._in_engine.pop(request):
                if self._carriers.get(key) is request:
                    self.remove(key)
        for request in present - self._in_engine.keys():
            self._enter(request)

    def _enter(self, request: Request) -> None:
        """Note that a request came into the engine."""
        keys = request.meta.get(META, ())
        self._in_engine[request] = keys
        for key in keys:
            self._carriers.setdefault(key, request)

    def recover(self) -> int:
        """Schedule the requests of the journal again. Returns their number."""
        engine, spider = self._crawler.engine, self._crawler.spider
        assert self._journal is not None and spider is not None
        self._watch()
        self.is_recovering = True
        count = unread = 0
        try:
            for key in self._journal.keys():
                try:
                    request = self._journal.request(key, spider)
                except Exception as error:
                    # For example, the spider does not have the callback any more.
                    unread += 1
                    self._pending.discard(key)
                    message = "An unfinished request cannot be read, and stays in the job: %r"
                    _log.error(message, error)
                    continue
                self._is_taken = False
                engine.crawl(request)
                if self._is_taken:
                    count += 1
                else:
                    # For example, the spider does not allow the domain any more.
                    self.remove(key)
        finally:
            self.is_recovering = False
            if unread:
                self._journal.stay_open()
        return count

    def _is_scraped(self, key: bytes) -> bool:
        """Test whether the callback or the errback of a request runs."""
        slot = self._crawler.engine.scraper.slot
        return slot is not None and self._carriers.get(key) in slot.active

    def _on_engine(self, **_: Any) -> None:
        try:
            self.update()
        except Exception as error:
            self._on_error(error)

    def _on_opened(self, **_: Any) -> None:
        try:
            self._watch()
        except Exception as error:
            self._on_error(error)

    def _watch(self) -> None:
        """Wrap the methods of the scheduler that take and give requests."""
        slot = self._crawler.engine._slot
        if slot is None or slot.scheduler is self._scheduler:
            return
        scheduler: Any = slot.scheduler
        self._scheduler = scheduler
        scheduler.enqueue_request = functools.partial(self._enqueue, scheduler.enqueue_request)
        scheduler.next_request = functools.partial(self._next, scheduler.next_request)

    def _enqueue(self, enqueue: Callable[[Request], bool], request: Request) -> bool:
        """Give a request to the scheduler, and follow it if it is new."""
        self._added = []
        try:
            if request.dont_filter and not self.is_recovering:
                self._add_unfiltered(request)
        except Exception as error:
            self._on_error(error)
        try:
            self._is_taken = enqueue(request)
        except BaseException:
            self._on_lost()
            raise
        if not self._is_taken:
            try:
                for key in self._added:
                    self.remove(key)
            except Exception as error:
                self._on_error(error)
        return self._is_taken

    def _next(self, next_request: Callable[[], Request | None]) -> Request | None:
        """Take a request from the scheduler. The engine has the request from now on."""
        try:
            request = next_request()
        except BaseException:
            self._on_lost()
            raise
        if request is not None:
            self._enter(request)
        return request

    def _on_lost(self) -> None:
        """Note that the queue has lost a request that the journal may have."""
        if self._journal is None:
            return
        self._journal.stay_open()
        # A callback whose request was lost may end without its other requests.
        self._kept.update(it for it in self._carriers if self._is_scraped(it))

    def _add_unfiltered(self, request: Request) -> None:
        """Follow a new request with `dont_filter`."""
        carried = self.carried(request)
        request.meta.pop(META, None)
        if carried:
            request.meta[META] = carried
            self._added = [*carried]
            for key in carried:
                del self._carriers[key]
        elif self._journal is not None:
            key = unfiltered_key(request, self._crawler)
            request.meta[META] = (key,)
            self._added = [key]
            self._journal.add(key, request, self._crawler.spider)
