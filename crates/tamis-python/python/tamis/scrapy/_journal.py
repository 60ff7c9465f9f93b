"""The unfinished requests of a job, in a file."""

from __future__ import annotations

import os
import pickle
import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from scrapy.utils.request import request_from_dict

import tamis

if TYPE_CHECKING:
    from scrapy.http import Request
    from scrapy.spiders import Spider

_NAME = "tamis-unfinished.db"

# The values of the database's `user_version`.
_OPEN = 1
_CLOSED = 2


class Journal:
    """The unfinished requests of a job, in a database of the job's folder.

    Scrapy writes its queue when a crawler stops, so a killed crawler loses the queue. The next
    crawler schedules the requests of the journal again. Only one crawler has the journal open.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, _NAME)
        self._folder = folder
        try:
            self._db = sqlite3.connect(self._path, timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise self._refusal(error) from None
        try:
            # The lock is of the operating system, which releases it when the process ends.
            self._run("PRAGMA locking_mode = EXCLUSIVE")
            # After a power loss, the database is whole, but may miss the last requests.
            self._run("PRAGMA journal_mode = WAL")
            self._run("PRAGMA synchronous = NORMAL")
            #: Whether the last crawler of the job was killed.
            self.is_after_kill: bool = self._run("PRAGMA user_version").fetchone()[0] == _OPEN
            self._run(f"PRAGMA user_version = {_OPEN}")
            self._run(
                "CREATE TABLE IF NOT EXISTS requests "
                "(key BLOB NOT NULL UNIQUE, request BLOB NOT NULL)"
            )
        except BaseException:
            self._db.close()
            raise

    def add(self, key: bytes, request: Request, spider: Spider | None) -> None:
        """Write a request, unless it cannot be serialized."""
        try:
            data = pickle.dumps(request.to_dict(spider=spider), protocol=4)
        except (ValueError, TypeError, AttributeError, pickle.PicklingError):
            # Scrapy keeps such a request in memory too.
            return
        self._run("INSERT OR REPLACE INTO requests VALUES (?, ?)", key, data)

    def remove(self, key: bytes) -> None:
        self._run("DELETE FROM requests WHERE key = ?", key)

    def keys(self) -> Iterable[bytes]:
        """Return the keys of the requests, oldest first."""
        return [row[0] for row in self._run("SELECT key FROM requests ORDER BY rowid")]

    def request(self, key: bytes, spider: Spider) -> Request:
        """Return a request of the journal."""
        row = self._run("SELECT request FROM requests WHERE key = ?", key).fetchone()
        return request_from_dict(pickle.loads(row[0]), spider=spider)

    def close(self, is_finished: bool) -> None:
        """Record that the crawler stopped in order. A finished job has no unfinished requests."""
        if is_finished:
            self._run("DELETE FROM requests")
        self._run(f"PRAGMA user_version = {_CLOSED}")
        self._db.close()

    def abandon(self) -> None:
        """Close the file as after a kill."""
        self._db.close()

    def _run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, values)
        except sqlite3.Error as error:
            raise self._refusal(error) from None

    def _refusal(self, error: sqlite3.Error) -> tamis.FileError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return tamis.FileError(
                f"{self._folder}: another crawler is using this JOBDIR: wait for it, or use "
                f"another JOBDIR"
            )
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return tamis.FileError(
                f"{self._path}: the list of unfinished requests is damaged: restore it from a "
                f"copy, or remove it, and the job loses these requests"
            )
        return tamis.FileError(f"{self._path}: cannot be written: {error}")
