"""The settings of the dupe filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def choice(settings: BaseSettings, name: str, *choices: str) -> str:
    """Return a setting that has one of a few values. The first value is the default."""
    value = settings.get(name, choices[0])
    if value not in choices:
        names = " or ".join(repr(it) for it in choices)
        raise ValueError(f"{name} must be {names}, and not {value!r}")
    return str(value)


def expire_seconds(settings: BaseSettings) -> float | None:
    """Return the time after which a page may be crawled again."""
    expire = settings.get("TAMIS_EXPIRE")
    if expire is None:
        return None
    seconds = _number(expire)
    # The limit of a window.
    if seconds is None or not 1 <= seconds <= 1e15:
        raise ValueError(f"TAMIS_EXPIRE must be at least 1 second, and not {expire!r}")
    return seconds


def rate(settings: BaseSettings) -> float:
    """Return the planned false positive rate."""
    value = settings.get("TAMIS_RATE", 0.0001)
    planned = _number(value)
    if planned is None or not 0 < planned < 1:
        raise ValueError(f"TAMIS_RATE must be between 0 and 1, and not {value!r}")
    return planned


def items(settings: BaseSettings) -> int:
    """Return the planned number of requests."""
    value = settings.get("TAMIS_ITEMS", 1_000_000)
    planned = _number(value)
    if planned is None or not 1 <= planned < 2**53 or planned != int(planned):
        raise ValueError(f"TAMIS_ITEMS must be an integer of at least 1, and not {value!r}")
    return int(planned)


def _number(value: Any) -> float | None:
    """Convert the value of a setting, which is a text if the command line gave it."""
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
