"""The files of Scrapy in the folder of a job: the queue and the fingerprints."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.statscollectors import DummyStatsCollector
from scrapy.utils.misc import load_object

import tamis

if TYPE_CHECKING:
    from typing import Any

    from scrapy.crawler import Crawler
    from scrapy.http import Request

_QUEUE_NAME = "requests.queue"
_STATE_NAME = "active.json"
_FINGERPRINTS_NAME = "requests.seen"

# The folder of a copy of the queue while the copy is read.
_COPY_NAME = "tamis-copy"

# The folder of a queue that could not be read.
_UNREAD_NAME = "requests.queue.unread"

# The most time between the state of the queue and the last fingerprint, in seconds.
_CLOSE_SECONDS = 2

# The errors of the system that damaged files, or files of another class of queues, cause.
_DAMAGE = (errno.EINVAL, errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)

_HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]+")


class QueueError(tamis.FileError):
    """The queue of Scrapy cannot be read."""


class Queue:
    """The folder of Scrapy's queue.

    Scrapy writes the state of the queue when a crawler stops in order, and never deletes the state.
    Without the state, Scrapy does not find the requests of the queue.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.path = os.path.join(folder, _QUEUE_NAME)
        self._state_path = os.path.join(self.path, _STATE_NAME)

    def has_state(self) -> bool:
        """Test whether the queue has a whole state."""
        return self._state() is not None

    def is_empty(self) -> bool:
        """Test whether the queue has no requests, after the crawler has stopped."""
        state = self._state()
        return not self._files() if state is None else not state

    def signature(self) -> str:
        """Return a text that changes when a crawler changes the files of the queue."""
        lines = []
        for path in self._files():
            status = os.stat(path)
            name = os.path.relpath(path, self.path)
            lines.append(f"{name} {status.st_size} {status.st_mtime_ns}")
        if self.has_state():
            lines.append(f"{os.stat(self._state_path).st_mtime_ns}")
        text = "\n".join(sorted(lines))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def requests(self, crawler: Crawler) -> Iterator[Request]:
        """Yield the requests of the queue. The queue itself does not change.

        Raises `QueueError` if the queue is damaged, and another `tamis.FileError` if the system
        refuses to copy or to read the files.
        """
        is_new = not self._files() and not fingerprints_bytes(self._folder)
        if not os.path.exists(self.path) or (is_new and not self.has_state()):
            return
        try:
            if not self.has_state():
                raise ValueError("the crawler was killed, and Scrapy has lost its requests")
            if self._is_newer_than_state():
                raise ValueError(
                    "the crawler was killed after it had changed the queue, and Scrapy has lost "
                    f"its requests (if the folder was only copied, run: touch {self._state_path})"
                )
            yield from self._requests_of_copy(crawler)
        except tamis.FileError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno not in (None, *_DAMAGE):
                raise tamis.FileError(f"{self.path}: cannot be read: {error}") from error
            # A queue raises errors of many kinds if its files are not whole, or are of another class.
            raise QueueError(
                f"{self.path}: the queue of Scrapy cannot be read: {error}: restore it from a "
                f"copy, keep the settings of the queue, or remove {_QUEUE_NAME} and "
                f"{_FINGERPRINTS_NAME} to crawl the pages of Scrapy's own filter again"
            ) from error

    def _requests_of_copy(self, crawler: Crawler) -> Iterator[Request]:
        copy = os.path.join(self._folder, _COPY_NAME)
        shutil.rmtree(copy, ignore_errors=True)
        try:
            self._copy(os.path.join(copy, _QUEUE_NAME))
            scheduler = _scheduler(crawler, copy)
            assert crawler.spider is not None
            scheduler.open(crawler.spider)
            try:
                while scheduler.has_pending_requests():
                    request = scheduler.next_request()
                    if request is None:
                        raise ValueError("a request is missing")
                    yield request
            finally:
                with contextlib.suppress(Exception):
                    scheduler.close("")
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _copy(self, path: str) -> None:
        try:
            shutil.copytree(self.path, path)
        except OSError as error:
            # An error of `shutil` has the source, the target and the reason of each file.
            reasons = error.args[0] if isinstance(error, shutil.Error) else None
            reason = reasons[0][-1] if isinstance(reasons, list) and reasons else error
            raise tamis.FileError(f"{self.path}: cannot be copied to {path}: {reason}") from error

    def forget_state(self) -> None:
        """Delete the state, after Scrapy has read it."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._state_path)

    def delete(self) -> None:
        """Delete the queue."""
        # The rest of a queue without a state is not read.
        self.forget_state()
        shutil.rmtree(self.path, ignore_errors=True)

    def set_aside(self) -> str:
        """Rename the folder, so that Scrapy does not read it. Returns the new path."""
        path = first = os.path.join(self._folder, _UNREAD_NAME)
        number = 1
        while os.path.lexists(path):
            number += 1
            path = f"{first}-{number}"
        os.rename(self.path, path)
        return path

    def _state(self) -> Any:
        try:
            with open(self._state_path, encoding="utf-8") as file:
                return json.load(file)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            # A crawler that was killed while it wrote the state leaves a part of the text.
            return None

    def _is_newer_than_state(self) -> bool:
        """Test whether a crawler has changed the queue, and has not stopped in order.

        A crawler that stops in order closes all queues, writes the state, and then closes the file
        of the fingerprints.
        """
        wrote = os.stat(self._state_path).st_mtime
        paths = [self.path]
        for at, folders, names in os.walk(self.path):
            paths += [os.path.join(at, it) for it in (*folders, *names)]
        if any(os.stat(it).st_mtime > wrote for it in paths):
            return True
        try:
            seen = os.stat(os.path.join(self._folder, _FINGERPRINTS_NAME)).st_mtime
        except FileNotFoundError:
            return False
        return seen > wrote + _CLOSE_SECONDS

    def _files(self) -> list[str]:
        paths = [os.path.join(at, it) for at, _, names in os.walk(self.path) for it in names]
        return [it for it in paths if it != self._state_path]


def _scheduler(crawler: Crawler, folder: str) -> Scheduler:
    """Create a scheduler that reads the queue of a folder, with the classes of the settings."""
    settings = crawler.settings
    return Scheduler(
        BaseDupeFilter(),
        jobdir=folder,
        dqclass=load_object(settings["SCHEDULER_DISK_QUEUE"]),
        mqclass=load_object(settings["SCHEDULER_MEMORY_QUEUE"]),
        stats=DummyStatsCollector(crawler),
        pqclass=load_object(settings["SCHEDULER_PRIORITY_QUEUE"]),
        crawler=crawler,
    )


def fingerprints_bytes(folder: str) -> int:
    """Return the size of the file of Scrapy's own filter; 0 if there is no file."""
    try:
        return os.path.getsize(os.path.join(folder, _FINGERPRINTS_NAME))
    except FileNotFoundError:
        return 0


def fingerprints(folder: str, size: int) -> Iterator[bytes]:
    """Yield the fingerprints in the first `size` bytes of the file of Scrapy's own filter.

    Until 2.18, Scrapy writes a line of hexadecimal digits for a fingerprint. Since 2.19, Scrapy
    appends records of two bytes of length and the fingerprint, also to a file that has lines. A
    torn fingerprint at the end is left out.
    """
    path = os.path.join(folder, _FINGERPRINTS_NAME)
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        # Where the records start, if the line is no line of digits.
        start = 0
        while start < size:
            line = file.readline()
            digits = line.strip()
            is_line = line.endswith(b"\n") and (not digits or _HEXADECIMAL.fullmatch(digits))
            if not is_line:
                break
            if digits:
                start = file.tell()
                # A line of an odd length was torn by a kill, and has the start of another line.
                if len(digits) % 2 == 0:
                    yield bytes.fromhex(digits.decode("ascii"))
            elif start > 0:
                start = file.tell()
        file.seek(start)
        if start > 0:
            # The last line may be torn. No record is so long that it starts with a digit.
            rest = file.read(256)
            torn = _HEXADECIMAL.match(rest)
            file.seek(start + (torn.end() if torn else 0))
        while file.tell() < size and len(prefix := file.read(2)) == 2:
            fingerprint = file.read(int.from_bytes(prefix, "big"))
            if len(fingerprint) == int.from_bytes(prefix, "big"):
                yield fingerprint
