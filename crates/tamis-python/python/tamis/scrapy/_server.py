"""A set of request fingerprints on a server."""

from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import urlsplit

import tamis

_log = logging.getLogger(__name__)

# One slice of a window has space for all items of the time, because a crawl comes at once.
_SLICES = 1

# The seconds before each attempt of a command whose connection broke.
_PAUSES = (0.0, 0.0, 0.5, 2.0)


class ServerError(tamis.TamisError):
    """The server of a dupe filter cannot be reached, or refuses a command."""


class _UnknownCommandError(ServerError):
    """The server does not have a command."""


class _KeyExistsError(ServerError):
    """The key of a new filter exists."""


class ServerSet:
    """A filter on a server: `tamis serve`, Redis 8, or a server with a module of filters."""

    def __init__(self, url: str, key: str, expire: float | None, rate: float, items: int) -> None:
        try:
            import redis
            import redis.exceptions
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            message = "ServerDupeFilter needs the package redis: pip install redis"
            raise ImportError(message) from None
        self._errors: Any = redis.exceptions
        self._key = key
        self._rate = rate
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        self._name = f"{parts.hostname}{port}" if parts.hostname else parts.path
        # The set repeats commands itself, because the answer of a repeated command needs care.
        self._client: Any = redis.Redis.from_url(
            url, socket_timeout=10, socket_connect_timeout=5, retry=Retry(NoBackoff(), 0)
        )
        self._has_info = True
        self._span = None if expire is None else int(expire * 1000)
        self._prefix = "BF" if self._span is None else "TM"
        try:
            self._reserve(items)
            self._check()
        except BaseException:
            self._client.close()
            raise

    def _reserve(self, items: int) -> None:
        command: list[Any] = ["BF.RESERVE", self._key, self._rate, items]
        if self._span is not None:
            command = ["TM.RESERVE", self._key, "KIND", "window", "ITEMS", items]
            command += ["RATE", self._rate, "WINDOW", self._span, "SLICES", _SLICES]
        try:
            self._run(command)
        except _KeyExistsError:
            # Another spider, or an earlier crawl, has created the filter.
            pass

    def _check(self) -> None:
        """Check that the key is a filter of the settings."""
        info = self._info()
        if info is None:
            return
        kind = info.get("kind", "")
        is_window = kind == "window"
        if is_window != (self._span is not None) or "cuckoo" in kind:
            wanted = "a Bloom filter, not a window" if self._span is None else "a window"
            raise ServerError(
                f"{self._name}: the key {self._key!r} is a filter of the kind {kind!r}, but the "
                f"settings need {wanted}: set TAMIS_KEY to another key, or delete "
                f"the key"
            )
        if is_window and info.get("span_millis") != self._span:
            raise ServerError(
                f"{self._name}: the key {self._key!r} is a window of {info.get('span_millis')} ms, "
                f"and TAMIS_EXPIRE asks for {self._span} ms: keep TAMIS_EXPIRE, set TAMIS_KEY to "
                f"another key, or delete the key"
            )
        planned = info.get("rate_planned", self._rate)
        if planned != self._rate:
            _log.warning(
                "%s: the key %r has the rate %s, which is not the rate %s of TAMIS_RATE",
                self._name,
                self._key,
                planned,
                self._rate,
            )

    def contains(self, fingerprint: bytes) -> bool:
        return bool(self._run([f"{self._prefix}.EXISTS", self._key, fingerprint])[0])

    def add(self, fingerprint: bytes) -> bool:
        is_new, is_repeated = self._run([f"{self._prefix}.ADD", self._key, fingerprint])
        # If the connection broke before the answer, the first attempt may have inserted the
        # fingerprint. To crawl a page twice is better than to lose it.
        return bool(is_new) or is_repeated

    def rate(self) -> float | None:
        # Only Tamis reports the present rate.
        info = self._info() or {}
        return float(info.get("rate_now", self._rate))

    def _info(self) -> dict[str, Any] | None:
        """Return the report of the server about the filter; None if the server is not Tamis."""
        if not self._has_info:
            return None
        try:
            reply, _ = self._run(["TM.INFO", self._key])
        except _UnknownCommandError:
            self._has_info = False
            return None
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
        return {_text(name): _text(value) for name, value in pairs}

    def close(self) -> None:
        self._client.close()

    def _run(self, command: list[Any]) -> tuple[Any, bool]:
        """Run a command. Returns the reply, and whether the command was repeated."""
        reason: object = None
        for attempt, pause in enumerate(_PAUSES):
            time.sleep(pause)
            try:
                return self._client.execute_command(*command), attempt > 0
            except (self._errors.ConnectionError, self._errors.TimeoutError) as error:
                reason = error
            except self._errors.RedisError as error:
                raise self._refusal(command, str(error)) from None
        raise ServerError(
            f"{self._name}: the server of TAMIS_URL cannot be reached: {reason}"
        ) from None

    def _refusal(self, command: list[Any], reason: str) -> ServerError:
        if "unknown command" in reason.lower():
            needed = "the filters of Tamis" if command[0].startswith("TM.") else "filters"
            advice = (
                "TAMIS_EXPIRE needs the server `tamis serve`"
                if command[0].startswith("TM.")
                else "use `tamis serve`, Redis 8, or a server with the module RedisBloom"
            )
            return _UnknownCommandError(
                f"{self._name}: the server of TAMIS_URL does not have {needed}: {advice}"
            )
        if reason.startswith("WRONGTYPE"):
            return ServerError(
                f"{self._name}: the key {self._key!r} is not a filter of this kind: set TAMIS_KEY "
                f"to another key, or delete the key"
            )
        kind = _KeyExistsError if "exists" in reason else ServerError
        return kind(f"{self._name}: {command[0]} {self._key}: {reason}")


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
