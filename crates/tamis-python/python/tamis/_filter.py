"""The base class of all sets."""

from __future__ import annotations

import os

from tamis import _arrays, _display
from tamis._tamis import Handle, Slots

# The import of `typing` would take half of the time of `import tamis`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, Self, SupportsIndex, TypeVar
    from uuid import UUID

    from tamis._arrays import Progress

    Item = str | bytes | bytearray | memoryview | SupportsIndex | UUID | tuple["Item", ...]
    Batch = TypeVar("Batch")


class Filter(Slots):
    """A set of items: the operations that all kinds have.

    Threads may use one filter at the same time. Lookups run side by side; an insert waits for the
    batches of other threads, except in a `SharedBloom`, whose inserts run side by side too.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def contains(
        self,
        items: Any,
        /,
        *,
        threads: int = 1,
        progress: Progress | None = None,
    ) -> Any:
        """Test each item of an array or of an iterable, without false negatives.

        The answers are booleans of the caller's kind: a numpy array for a numpy array, a pyarrow
        array for a pyarrow array, a Series for a Series, and a list for any other iterable. A null
        is never present. Arrays are processed without the GIL, on `threads` threads. After each
        step of about 30 ms, ``progress(rows done, all rows)`` is called. Lists, other iterables and
        numpy arrays of objects use one thread, in steps of 65,536 items between which other threads
        run.

        >>> import tamis
        >>> seen = tamis.Bloom(1_000, 0.01)
        >>> seen.update(["a", "b"])
        >>> seen.contains(["a", "b", "c"])
        [True, True, False]
        """
        return _arrays.run(self, items, False, threads, progress)

    def insert(
        self,
        items: Any,
        /,
        *,
        threads: int = 1,
        progress: Progress | None = None,
    ) -> Any:
        """Insert each item of an array or of an iterable, in order. Returns which items were new.

        The answers have the form of those of `contains`. A null is neither inserted nor new. More
        than one thread inserts only into a `SharedBloom`.

        >>> import tamis
        >>> seen = tamis.Bloom(1_000, 0.01)
        >>> seen.insert(["a", "b", "a"])
        [True, True, False]
        """
        return _arrays.run(self, items, True, threads, progress)

    def update(
        self,
        items: Any,
        /,
        *,
        threads: int = 1,
        progress: Progress | None = None,
    ) -> None:
        """Insert each item of an array or of an iterable.

        >>> import tamis
        >>> seen = tamis.Bloom(1_000, 0.01)
        >>> seen.update(f"user:{i}" for i in range(100))
        >>> "user:7" in seen
        True
        """
        _arrays.update(self, items, threads, progress)

    def dedup(
        self,
        batches: Iterable[Batch],
        key: str | int | Sequence[str] | Callable[[Batch], Any] | None = None,
        *,
        threads: int = 1,
    ) -> Iterator[Batch]:
        """Yield each batch without the rows whose key the filter has seen, and insert the keys.

        A batch is a numpy array, a pyarrow RecordBatch or Table, a Polars or pandas DataFrame or
        Series, or a list; one table is one batch. `key` names the column, or the columns, of the
        key; a function returns the array of keys; in a list of dictionaries, `key` is a key of each
        row. Rows with a null in a key are kept, and counted in `skipped_nulls`. Only one batch is in
        memory at a time.

        >>> import tamis
        >>> seen = tamis.Growing(0.001)
        >>> list(seen.dedup([["a", "b", "a"], ["b", "c"]]))
        [['a', 'b'], ['c']]
        """
        from tamis._dedup import dedup

        return dedup(self, batches, key, threads)

    @property
    def skipped_nulls(self) -> int:
        """How many nulls the arrays of this object had. Nulls are never inserted."""
        return self._nulls

    def copy(self) -> Self:
        """Return an independent copy in memory, which can change. Takes linear time."""
        copy = type(self)._of(self._copy())
        copy._restore(self.__getstate__())
        return copy

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        from copy import deepcopy

        copy = type(self)._of(self._copy())
        memo[id(self)] = copy
        copy._restore(deepcopy(self.__getstate__(), memo))
        return copy

    def clear(self) -> None:
        """Remove all items. Takes linear time."""
        self._clear()

    def __or__(self, other: Filter) -> Self:
        if not isinstance(other, Filter):
            return NotImplemented
        merged = self.copy()
        merged._merge(other)
        return merged

    def __ior__(self, other: Filter) -> Self:
        if not isinstance(other, Filter):
            return NotImplemented
        self._merge(other)
        return self

    def __eq__(self, other: object) -> bool:
        """Two filters are equal if they have the same parameters and the same bits."""
        if not isinstance(other, Filter):
            return NotImplemented
        return self._equals(other)

    def __bool__(self) -> bool:
        """A set is false if no item was inserted."""
        return not self._is_empty()

    def info(self) -> dict[str, Any]:
        """Return a report about the filter.

        The keys are ``kind``, ``format`` (of another system), ``layout``, ``capacity`` and ``rate``
        (as planned), ``items`` and ``items_are`` (how the items are known), ``bits``,
        ``size_bytes``, ``fill`` (the share of set bits), ``present_rate``, ``is_saturated``,
        ``is_mapped`` and ``is_keyed`` (has a secret key); of a window also ``window_seconds``,
        ``window_items``, ``slices`` and ``refresh``; of another system also ``details``.

        ``items``, ``fill`` and ``present_rate`` are estimates from the bits. Reads all bits, but
        at most 64 MiB of a split-block, classic or Parquet filter.

        >>> import tamis
        >>> info = tamis.Bloom(1_000, 0.01).info()
        >>> info["kind"], info["capacity"], info["rate"], info["items"]
        ('split-block', 1000, 0.01, 0.0)
        """
        return self._report()

    @property
    def capacity(self) -> int | None:
        """The planned number of distinct items; None if any number fits."""
        return self._plan()[0]

    @property
    def rate(self) -> float | None:
        """The planned false positive rate, a probability; None if the file does not store it."""
        return self._plan()[1]

    @property
    def size_bytes(self) -> int:
        """The memory of the filter, in bytes."""
        return self._plan()[2]

    def estimate_items(self) -> float:
        """Estimate the number of distinct items from the bits. Reads the bits as `info` does."""
        items: float = self._report()["items"]
        return items

    def estimate_rate(self) -> float:
        """Estimate the present false positive rate, a probability, as `info` does."""
        rate: float = self._report()["present_rate"]
        return rate

    @property
    def is_saturated(self) -> bool:
        """True if the present rate is above the planned rate by more than chance explains.

        Reads the bits as `info` does.
        """
        is_saturated: bool = self._report()["is_saturated"]
        return is_saturated

    def to_bytes(self, format: str | None = None, **options: Any) -> bytes:
        """Return the bytes of the filter's file. Takes linear time.

        `format` is a name of `tamis.formats`. By default, it is ``"tamis"``, ``"roaring"`` for an
        `IntSet`, and the format of the other system for a `ForeignFilter`. `options` are the decode
        options of `tamis.open`. Raises `FormatError` if the format cannot store the filter; a
        `DigestSet` and a `DigestFile` have no format.

        >>> import tamis
        >>> seen = tamis.Bloom(1_000, 0.01)
        >>> tamis.from_bytes(seen.to_bytes()) == seen
        True
        """
        return self._to_bytes(format, options)

    def save(self, path: str | os.PathLike[str], format: str | None = None, **options: Any) -> None:
        """Write the filter to a file, and replace a previous file atomically.

        `format` and `options` are those of `to_bytes`; by default, an extension that
        is the name of a format shows the format, as in ``users.guava``. Raises `FileError` if the file cannot be written.

        After a crash, the path has either the complete old file or the complete new file. The file
        is on disk when the method returns. Only the owner may read the file of a filter with a key.
        """
        from tamis._files import format_of

        if format is None:
            format = format_of(path, names_only=True)
        self._save(os.fsdecode(path), format, options)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Read a filter of this class from a file into memory, where it can change.

        `options` are those of `tamis.open`. Raises TypeError for a filter of another class.
        """
        from tamis._files import load

        filter: Self = load(cls, path, options)
        return filter

    def close(self) -> None:
        """Close the mapped file. Later operations raise `ClosedError`.

        A filter in memory has no file, and stays usable.
        """
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unpickle, (type(self), *self._pickle()), self.__getstate__())

    def __repr__(self) -> str:
        return _display.text(self)

    def _repr_html_(self) -> str:
        return _display.table(self)

    def _restore(self, state: Any) -> None:
        """Set the attributes that a subclass added to its object, as `pickle` does."""
        if state is None:
            return
        set_state = getattr(self, "__setstate__", None)
        if set_state is not None:
            set_state(state)
            return
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        if attributes:
            self.__dict__.update(attributes)
        for name, value in (slots or {}).items():
            setattr(self, name, value)

    @classmethod
    def _of(cls, handle: Any) -> Self:
        """Create an object of a new set."""
        filter: Self = super().__new__(cls, handle)
        return filter


def _unpickle(cls: type[Filter], data: bytes, extras: dict[str, Any]) -> Filter:
    """Restore a pickled filter."""
    return cls._of(Handle._unpickle(_kind_name(cls), data, extras))


def _kind_name(cls: type[Filter]) -> str:
    """Return the name of the class of this package that a class extends."""
    return next(base.__name__ for base in cls.__mro__ if base.__module__ == "tamis")
