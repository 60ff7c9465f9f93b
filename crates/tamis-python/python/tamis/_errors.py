"""The exceptions and warnings of the package."""

import builtins
import sys
import warnings


class TamisError(Exception):
    """The base class of all exceptions that only this package raises."""


class PlanError(TamisError, ValueError):
    """No filter of the kind can have this number of items and this rate."""


class FullError(TamisError):
    """A filter has no space for an item. The message says how many items fit."""


class ReadOnlyError(TamisError):
    """A filter in a mapped file cannot change. Change ``f.copy()`` instead."""


class ClosedError(TamisError, ValueError):
    """The file of a filter was closed."""


class MergeError(TamisError, ValueError):
    """Two filters differ in their layout, so that they cannot be merged."""


class FileError(TamisError, OSError):
    """A file cannot be read or written. ``errno``, ``strerror`` and ``filename`` say why.

    The exception is also a builtin FileNotFoundError or PermissionError, if that is the reason.
    """


class FileNotFoundError(FileError, builtins.FileNotFoundError):  # noqa: A001
    """A file or its folder does not exist."""


class PermissionError(FileError, builtins.PermissionError):  # noqa: A001
    """The user may not read or write a file."""


class FormatError(TamisError, ValueError):
    """The bytes are not a whole filter of the format, or the format cannot store the filter."""


class SaturatedWarning(UserWarning):
    """A filter holds more items than planned, and exceeds its planned false positive rate.

    The filter still has no false negatives, but reports more and more new items as present. To make
    the warning an error: ``warnings.simplefilter("error", tamis.SaturatedWarning)``.
    """


def warn_saturated(message: str) -> None:
    """Give a `SaturatedWarning` at the line of the program that inserted the items."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "tamis":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, SaturatedWarning, stacklevel=level)
