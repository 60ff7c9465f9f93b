"""The classes of sets."""

from __future__ import annotations

import os

from tamis import _tamis
from tamis._filter import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any, Literal, Self

    from tamis._filter import Item


class Bloom(Filter):
    """A Bloom filter: tests whether an item was inserted, in about ten bits an item.

    The filter keeps the false positive rate `rate`, a probability, until it holds `items` distinct
    items. `kind` is ``"split-block"`` (one cache line for a lookup), ``"classic"`` (the fewest bits)
    or ``"parquet"`` (the layout of Parquet's column filters). If other people may choose the items,
    give a secret `key` of 16 bytes, for example ``secrets.token_bytes(16)``. Filters merge only if
    their keys, seeds and plans are equal.

    >>> seen = Bloom(1_000_000, 0.01)
    >>> seen.add("a"), seen.add("a"), "a" in seen
    (True, False, True)
    """

    __slots__ = ()

    def __new__(
        cls,
        items: int,
        rate: float = 0.01,
        *,
        kind: Literal["split-block", "classic", "parquet"] = "split-block",
        key: bytes | None = None,
        seed: int = 0,
    ) -> Self:
        if kind not in ("split-block", "classic", "parquet"):
            raise ValueError(
                f"kind must be 'split-block', 'classic' or 'parquet', and not {kind!r}"
            )
        return cls._of(_tamis.create(kind, items, rate, key=key, seed=seed))


class SharedBloom(Filter):
    """A Bloom filter into which several threads insert at the same time.

    If several threads insert the same new item at the same time, exactly one of them gets True. An
    insert takes a few nanoseconds longer than in a `Bloom`. The bits are those of a `Bloom`, so both
    write the same file, and merge with each other.

    >>> seen = SharedBloom(1_000_000, 0.01)
    >>> seen.insert(["a", "b", "a"], threads=2)
    [True, True, False]
    """

    __slots__ = ()

    def __new__(
        cls,
        items: int,
        rate: float = 0.01,
        *,
        key: bytes | None = None,
        seed: int = 0,
    ) -> Self:
        return cls._of(_tamis.create("split-block", items, rate, key=key, seed=seed, shared=True))


class Growing(Filter):
    """A filter for any number of items, which keeps its rate and grows with its items.

    `items` only reserves memory. An item takes about 15 bits at 1 % and 18 bits at 0.1 %.

    >>> seen = Growing(0.001)
    >>> seen.update(range(10_000))
    >>> seen.contains([1, 9_999, -1])
    [True, True, False]
    """

    __slots__ = ()

    def __new__(
        cls,
        rate: float = 0.01,
        *,
        items: int = 1_000,
        key: bytes | None = None,
        seed: int = 0,
    ) -> Self:
        return cls._of(_tamis.create("growing", items, rate, key=key, seed=seed))


class _Removing(Filter):
    """The operations of filters that remove and count items."""

    __slots__ = ()

    def add_copy(self, item: Item, /) -> bool:
        """Insert one more copy of an item, also if the item is present. Returns True if it is new.

        Each copy needs one `remove`. A filter whose items are removed must insert copies: `add`
        does not store a new item that is a false positive, so removing the other item would
        remove the new one too.
        """
        return self._add_copy(item)

    def remove(self, item: Item, /) -> None:
        """Remove one copy of an item.

        Only remove items that were inserted: removing another item that is a false positive makes
        the filter forget an item that was inserted. Raises KeyError if the item is absent.
        """
        if not self._remove(item):
            raise KeyError(item)

    def discard(self, item: Item, /) -> bool:
        """Remove one copy of an item if it is present. Returns whether the item was present."""
        return self._remove(item)

    def count(self, item: Item, /) -> int:
        """Return how often an item was inserted, or more because of other items."""
        return self._count(item)


class Cuckoo(_Removing):
    """A filter whose items can be removed, in few bits: fingerprints in buckets.

    `bucket` is the number of slots of a bucket, 2 or 4. With four slots, the filter also holds up to
    four copies of each item. Raises `FullError` if an item does not fit.

    >>> seen = Cuckoo(1_000, 0.01)
    >>> seen.add_copy("a")
    True
    >>> seen.remove("a")
    >>> "a" in seen
    False
    """

    __slots__ = ()

    def __new__(
        cls,
        items: int,
        rate: float = 0.01,
        *,
        bucket: Literal[2, 4] = 2,
        key: bytes | None = None,
        seed: int = 0,
    ) -> Self:
        return cls._of(_tamis.create("cuckoo", items, rate, key=key, seed=seed, bucket=bucket))


class Counting(_Removing):
    """A Bloom filter of counters: items can be removed and counted, in four times the bits.

    >>> seen = Counting(1_000, 0.01)
    >>> seen.add("a"), seen.add("a"), seen.count("a")
    (True, False, 2)
    >>> seen.remove("a")
    >>> seen.count("a")
    1
    """

    __slots__ = ()

    def __new__(
        cls,
        items: int,
        rate: float = 0.01,
        *,
        key: bytes | None = None,
        seed: int = 0,
    ) -> Self:
        return cls._of(_tamis.create("counting", items, rate, key=key, seed=seed))


class Window(Filter):
    """A filter that forgets items: after a time, or after a number of other items.

    With `seconds`, an item is remembered for at least this time, and at most twice this time, by the
    clock of the system; `items` is the most items that arrive in this time. With n `slices`, the
    filter forgets an item after at most (1 + 1/n) times `seconds`, but more than one slice keeps the
    rate only if the items arrive evenly. Without `seconds`, the filter remembers the last `items`
    new items. With `refresh`, a repeated item is remembered as long as a new item. With
    ``clock=False``, the program sets the time of the filter by `advance`; give ``clock=False`` also
    to `tamis.open` and `load`.

    >>> seen = Window(1_000, 0.01, seconds=3600, clock=False)
    >>> seen.advance(0)
    >>> seen.add("a")
    True
    >>> seen.advance(3600)
    >>> "a" in seen
    True
    >>> seen.advance(7200)
    >>> "a" in seen
    False
    """

    __slots__ = ()

    def __new__(
        cls,
        items: int,
        rate: float = 0.01,
        *,
        seconds: float | timedelta | None = None,
        slices: int | None = None,
        refresh: bool = False,
        clock: bool = True,
        key: bytes | None = None,
        seed: int = 0,
    ) -> Self:
        if seconds is not None and not isinstance(seconds, (int, float)):
            seconds = seconds.total_seconds()
        handle = _tamis.create_window(
            items,
            rate,
            seconds=seconds,
            slices=slices,
            refresh=refresh,
            clock=clock,
            key=key,
            seed=seed,
        )
        return cls._of(handle)

    def advance(self, now: float, /) -> None:
        """Set the time of the filter, in seconds since an epoch that the program chooses.

        The time never goes back: an earlier time changes nothing. Raises ValueError unless `now`
        is at least 0 and below 1e16.
        """
        if not 0 <= now < 1e16:
            raise ValueError(f"the time must be at least 0 and below 1e16 seconds, and not {now}")
        self._advance(int(now * 1000))


class DigestSet(Filter):
    """An exact set: 21 to 29 bytes an item, whatever the item's length.

    The set holds 128-bit hashes of its items, so a set of a billion items has a collision with
    a probability of 1.5 · 10⁻²¹. With ``bits=64``, an item takes 11 to 15 bytes, and a set of 60
    million items has a collision with a probability of 10⁻⁴. `items` reserves memory.

    >>> seen = DigestSet()
    >>> seen.insert(["a", "b", "a"])
    [True, True, False]
    >>> len(seen)
    2
    """

    __slots__ = ()

    def __new__(
        cls,
        *,
        bits: Literal[64, 128] = 128,
        items: int = 0,
        key: bytes | None = None,
        seed: int = 0,
    ) -> Self:
        return cls._of(_tamis.create_digests(bits, items, key=key, seed=seed))

    def __len__(self) -> int:
        return self._len()


class DigestFile(Filter):
    """An exact set whose items are also in a file, at once: a seen-set between runs.

    When a call returns, its new items are in the file: they survive a killed process, and a power
    loss after `sync` or `close`. One process at a time has the file open. An item takes as much
    memory as in a `DigestSet`. In the file, an item takes 16 bytes (8 with ``bits=64``), and 32
    bytes if the item is inserted alone.

    `description` says what the items are. `key` is the secret hash key of a new file, by default a
    random one, because others may choose the items of a crawler; an existing file keeps its key.
    Raises `FileError` if the file is open already, is damaged, or has another description or
    another number of bits.

    A call whose items cannot be written, for example on a full disk, raises `FileError`. The items
    are then neither in the set nor in the file. A long batch is written in parts, and the parts
    before the failed part stay in both. After the error, lookups go on, and inserts, `sync` and
    `close` raise `FileError`. Open the file again to continue.

    A forked process can look up items in the `DigestFile` of its parent. In the forked process,
    inserts and `sync` raise `FileError`, and `close` leaves the file of the parent open.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "seen.state")
    >>> with DigestFile(path) as seen:
    ...     seen.insert(["a", "b"])
    [True, True]
    >>> with DigestFile(path) as seen:
    ...     seen.insert(["b", "c"]), len(seen)
    ([False, True], 3)
    """

    __slots__ = ()

    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        bits: Literal[64, 128] = 128,
        description: str = "items of python",
        key: bytes | None = None,
    ) -> Self:
        key = os.urandom(16) if key is None else key
        return cls._of(_tamis.open_digests(os.fsdecode(path), bits, description, key))

    def __len__(self) -> int:
        return self._len()

    def sync(self) -> None:
        """Wait until all items are on the disk, where they survive a power loss."""
        self._sync()

    def copy(self) -> DigestSet:  # type: ignore[override]
        """Return a copy in memory."""
        return DigestSet._of(self._copy())

    __copy__ = copy  # type: ignore[assignment]

    def __deepcopy__(self, memo: object) -> DigestSet:  # type: ignore[override]
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a DigestFile is open in one process: pickle f.copy()")


class IntSet(Filter):
    """An exact set of integers from 0 to 2**64 - 1, as a compressed Roaring bitmap.

    The file is a Roaring bitmap in the portable format, which Java, Go, C and Spark read.

    >>> ids = IntSet()
    >>> ids.update(range(1_000_000))
    >>> len(ids), 999_999 in ids, 1_000_000 in ids
    (1000000, True, False)
    """

    __slots__ = ()

    def __new__(cls) -> Self:
        return cls._of(_tamis.create_integers())

    def __len__(self) -> int:
        return self._len()

    def remove(self, item: int, /) -> None:
        """Remove an integer. Raises KeyError if it is absent."""
        if not self._remove(item):
            raise KeyError(item)

    def discard(self, item: int, /) -> bool:
        """Remove an integer if it is present. Returns whether it was present."""
        return self._remove(item)


class ForeignFilter(Filter):
    """A filter of another system, exactly as this system reads and writes it.

    `tamis.open` reads one, and `tamis.create` creates one. Items are converted as the other system
    converts them, which its *funnel* states: a filter of text takes str, a filter of numbers takes
    int.

    >>> import tamis
    >>> users = tamis.create("guava", items_planned=1_000, rate_planned=0.01, funnel="long")
    >>> users.add(7), 7 in users, users.format
    (True, True, 'guava')
    """

    __slots__ = ()

    @property
    def format(self) -> str:
        """The name of the filter's format: a row of `tamis.formats`."""
        format: str = self._report()["format"]
        return format


CLASSES: dict[str, type[Filter]] = {
    it.__name__: it
    for it in (
        Bloom,
        SharedBloom,
        Growing,
        Cuckoo,
        Counting,
        Window,
        DigestSet,
        DigestFile,
        IntSet,
        ForeignFilter,
    )
}


def of_handle(handle: Any) -> Filter:
    """Create an object of the class of a new set."""
    return CLASSES[handle.class_name]._of(handle)
