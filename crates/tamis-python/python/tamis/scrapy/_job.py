"""A job: its journal and the files of Scrapy, which survive a kill together.

Scrapy writes its queue when a crawler stops in order. A killed crawler leaves a queue that misses
requests, so the journal alone must have all unfinished requests. Two invariants hold at every
moment after a crawler has opened a job:

1. The journal holds each request that the scheduler has accepted, until the request is finished.
   A request that cannot be serialized is the exception: Scrapy loses it, too.
2. A fingerprint is in the set only if its request is finished or in the journal.

A crawler that opens a job therefore takes one of three steps:

* The last crawler was killed: the journal has all requests. The queue is deleted, and the requests
  of the journal are scheduled.
* The last crawler stopped in order, and the queue is as this crawler left it: the journal has all
  requests of the queue. The crawl goes on with the queue.
* Another crawler has changed the queue, for example a crawler with Scrapy's own filter, or a
  crawler whose set failed: the journal takes the requests of the queue in addition to its own, in
  one transaction. The next steps are as after a kill.

The journal is marked as open in the same transaction. The mark states that the journal has all
requests. After a kill at any moment, the next crawler repeats the step. A page may be crawled twice,
but is not lost.

How to tell the cases apart: Scrapy writes `active.json` when a crawler stops in order. The filter
deletes this file once the scheduler has read it. An open journal without `active.json` therefore
shows a kill. A crawler that stops in order records a signature of the queue's files.

A queue that is newer than its `active.json` is of a crawler with Scrapy's own filter that was
killed. If a queue is of this kind or is damaged, the job is refused: the journal is new or was closed,
and does not have the requests that another crawler has put into the queue since. An open journal has
the requests, or the pages that link them. So the job goes on with an open journal, and the queue is
kept under another name. If the system refuses to copy or to read the queue, for example because the
disk is full, the job is refused and nothing changes.

The set takes the fingerprints of Scrapy's own filter once: after the journal has taken the queue
of the same crawler. The journal has the size of the file until the set has all fingerprints.

If the set, the journal or the scheduling of the journal's requests fails, the journal removes no
request any more and stays open. A request that the journal could not write is linked by a page that
the journal still has.

If the queue fails to take or to give a request, Scrapy loses the request, and the journal stays
open. The page that links the request stays in the journal, too, because its callback may not go on.
A crawl that ends as finished leaves the journal open if the journal still has a request.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import tamis
from tamis.scrapy import _scrapy_files
from tamis.scrapy._journal import Journal
from tamis.scrapy._scrapy_files import Queue, QueueError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request

    from tamis.scrapy._seen import ExactSet, FilterSet

_log = logging.getLogger(__name__)

# The keys of a request, in its meta: the fingerprint, after the fingerprints of the requests that
# were redirected to it. A request with `dont_filter` has another key.
META = "_tamis_keys"

# The start of a key of a request with `dont_filter`.
UNFILTERED = b"dont_filter:"

# The names of values in the journal.
_SIGNATURE = "signature"
_FINGERPRINTS_BYTES = "scrapy_fingerprints_bytes"


def unfiltered_key(request: Request, crawler: Crawler) -> bytes:
    """Return a new key for a request with `dont_filter`."""
    if request.meta.get("is_start_request"):
        # The spider makes its start requests again after each kill, so they have one key each.
        return UNFILTERED + b"start:" + crawler.request_fingerprinter.fingerprint(request)
    return UNFILTERED + os.urandom(16)


class Job:
    """The folder of a job, for one crawler."""

    def __init__(self, folder: str, crawler: Crawler) -> None:
        self.folder = folder
        self._queue = Queue(folder)
        self.journal = Journal(folder)
        #: Whether the last crawler was killed.
        self.is_after_kill = self.journal.was_open and not self._queue.has_state()
        #: Whether the requests of the journal must be scheduled.
        self.must_recover = True
        try:
            self._open(crawler)
        except BaseException:
            self.abandon()
            raise

    def _open(self, crawler: Crawler) -> None:
        journal, queue = self.journal, self._queue
        if self.is_after_kill:
            pass
        elif not journal.was_open and journal.value(_SIGNATURE) == queue.signature():
            self.must_recover = False
        else:
            if journal.is_new:
                size = _scrapy_files.fingerprints_bytes(self.folder)
                journal.set_value(_FINGERPRINTS_BYTES, size)
            self._take_requests(crawler)
        journal.start()
        if self.must_recover:
            queue.delete()

    def _take_requests(self, crawler: Crawler) -> None:
        """Copy the requests of Scrapy's queue into the journal."""
        journal = self.journal
        taken: set[bytes] = set()
        try:
            for request in self._queue.requests(crawler):
                key = self._key(request, crawler, taken)
                if request.dont_filter:
                    taken.add(key)
                request.meta[META] = (key,)
                if not journal.add(key, request, crawler.spider):
                    raise tamis.FileError(
                        f"{self._queue.path}: a request cannot be serialized: {request}"
                    )
        except QueueError as error:
            if not journal.was_open:
                raise
            # An open journal has these requests, or the pages that link them.
            path = self._queue.set_aside()
            _log.warning("The crawl goes on with the journal. %s is now %s", error, path)

    def _key(self, request: Request, crawler: Crawler, taken: set[bytes]) -> bytes:
        # A spider may have copied the keys of a response into new requests, so only a key that
        # belongs to the request is kept.
        if not request.dont_filter:
            return crawler.request_fingerprinter.fingerprint(request)
        for key in request.meta.get(META, ())[-1:]:
            if key.startswith(UNFILTERED) and key not in taken and self.journal.has(key):
                return bytes(key)
        return unfiltered_key(request, crawler)

    def take_fingerprints(self, seen: ExactSet | FilterSet) -> None:
        """Insert the fingerprints of Scrapy's own filter into the set, unless the set has them."""
        size = self.journal.value(_FINGERPRINTS_BYTES)
        if not size:
            return
        count = seen.load(_scrapy_files.fingerprints(self.folder, size))
        self.journal.set_value(_FINGERPRINTS_BYTES, 0)
        _log.info("Read %d fingerprints that Scrapy's own filter wrote", count)

    def on_queue_opened(self) -> None:
        """Note that the scheduler has read the state of its queue."""
        self._queue.forget_state()

    def close(self, is_finished: bool) -> None:
        """Record that the crawler stopped in order, after Scrapy has written its queue."""
        try:
            # A spider may give the reason `finished` before the queue is empty.
            if is_finished and self._queue.is_empty():
                self._keep_requests()
            signature = self._queue.signature()
        except BaseException:
            self.abandon()
            raise
        self.journal.close(signature)

    def _keep_requests(self) -> None:
        """Let the next crawler schedule the requests that a finished crawl has left."""
        if count := len(self.journal.keys()):
            message = "%d requests were not crawled, and stay in the job for the next crawl"
            _log.warning(message, count)
            self.journal.stay_open()

    def abandon(self) -> None:
        """Leave the job as after a kill."""
        self.journal.abandon()
