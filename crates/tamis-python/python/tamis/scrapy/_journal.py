"""The unfinished requests of a job, in a file."""

from __future__ import annotations

import os
import pickle
import sqlite3
from typing import TYPE_CHECKING, Any

from scrapy.utils.request import request_from_dict

import tamis

if TYPE_CHECKING:
    from scrapy.http import Request
    from scrapy.spiders import Spider

_NAME = "tamis-unfinished.db"

# The values of the database's `user_version`. A new database has 0.
_OPEN = 1
_CLOSED = 2


class Journal:
    """The unfinished requests of a job, in a database of the job's folder.

    A new journal is in a transaction until `start`, so a kill before `start` changes nothing. Only
    one crawler has the journal open.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, _NAME)
        self._folder = folder
        # Whether requests are removed, and whether `close` records that the crawler has stopped.
        self._removes = True
        self._closes = True
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
            self._run("BEGIN IMMEDIATE")
            version = self._run("PRAGMA user_version").fetchone()[0]
            #: Whether no crawler of the job had a journal.
            self.is_new: bool = version not in (_OPEN, _CLOSED)
            #: Whether the last crawler of the job did not stop in order.
            self.was_open: bool = version == _OPEN
            self._run(
                "CREATE TABLE IF NOT EXISTS requests "
                "(key BLOB NOT NULL UNIQUE, request BLOB NOT NULL)"
            )
            self._run("CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value NOT NULL)")
        except BaseException:
            self._db.close()
            raise

    def start(self) -> None:
        """Commit all changes, and record that the journal holds all unfinished requests."""
        self._run(f"PRAGMA user_version = {_OPEN}")
        self._run("COMMIT")

    def value(self, name: str) -> Any:
        """Return a value that an earlier crawler has written; None if there is no value."""
        row = self._run("SELECT value FROM state WHERE name = ?", name).fetchone()
        return None if row is None else row[0]

    def set_value(self, name: str, value: str | int) -> None:
        self._run("INSERT OR REPLACE INTO state VALUES (?, ?)", name, value)

    def add(self, key: bytes, request: Request, spider: Spider | None) -> bool:
        """Write a request. Returns False if the request cannot be serialized."""
        try:
            data = pickle.dumps(request.to_dict(spider=spider), protocol=4)
        except (ValueError, TypeError, AttributeError, pickle.PicklingError):
            # Scrapy keeps such a request in memory too.
            return False
        self._run("INSERT OR REPLACE INTO requests VALUES (?, ?)", key, data)
        return True

    def remove(self, key: bytes) -> None:
        if self._removes:
            self._run("DELETE FROM requests WHERE key = ?", key)

    def has(self, key: bytes) -> bool:
        return self._run("SELECT 1 FROM requests WHERE key = ?", key).fetchone() is not None

    def keys(self) -> list[bytes]:
        """Return the keys of the requests, oldest first."""
        return [row[0] for row in self._run("SELECT key FROM requests ORDER BY rowid")]

    def request(self, key: bytes, spider: Spider) -> Request:
        """Return a request of the journal."""
        row = self._run("SELECT request FROM requests WHERE key = ?", key).fetchone()
        return request_from_dict(pickle.loads(row[0]), spider=spider)

    def freeze(self) -> None:
        """Keep all requests from now on. The next crawler crawls them again."""
        self._removes = self._closes = False

    def stay_open(self) -> None:
        """Let the next crawler schedule the requests that are left, as after a kill."""
        self._closes = False

    def close(self, signature: str) -> None:
        """Record that the crawler stopped in order, and left a queue with this signature."""
        try:
            if self._closes:
                self._run("BEGIN IMMEDIATE")
                self.set_value("signature", signature)
                self._run(f"PRAGMA user_version = {_CLOSED}")
                self._run("COMMIT")
        finally:
            self._db.close()

    def abandon(self) -> None:
        """Close the file as after a kill."""
        self._db.close()

    def _run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, values)
        except sqlite3.Error as error:
            # The journal may miss a request now, and has the page that links the request.
            self.freeze()
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
                f"copy, or remove it and requests.queue, and the job loses these requests"
            )
        return tamis.FileError(f"{self._path}: cannot be written: {error}")
