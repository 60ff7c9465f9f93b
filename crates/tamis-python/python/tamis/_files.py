"""Opens and converts files of filters."""

from __future__ import annotations

import os

from tamis import _tamis
from tamis._kinds import of_handle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tamis._filter import Filter


class Format:
    """A file format: a row of `formats`."""

    __slots__ = ("extensions", "name", "summary")

    def __init__(self, name: str, extensions: tuple[str, ...], summary: str) -> None:
        self.name = name
        self.extensions = extensions
        self.summary = summary

    def __repr__(self) -> str:
        return f"Format({self.name!r}: {self.summary})"


def open(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    writable: bool = False,
    verify: bool = True,
    clock: bool = True,
    **options: Any,
) -> Filter:
    """Open a filter file of any format.

    A ``.tamis`` file is mapped: it is not copied, all processes share its memory, and it is
    read-only. With `writable`, the filter is read into memory, where it can change; `Filter.save`
    writes it back. `verify` checks every byte once, at about 0.1 s a GiB; without it, a large file
    opens at once. With ``clock=False``, the program sets the time of a `Window` by
    `Window.advance`.

    A file of another system is read exactly. `format` names its format if its bytes and its name do
    not show it. Some formats do not store all parameters, so the caller gives these decode options:
    ``items_planned``, ``rate_planned``, ``format_version``, ``block_hash``, ``key``, ``union``,
    ``md5``, ``funnel`` and ``charset``.

    Replace a file that is in use by renaming a new file, as `Filter.save` and ``tamis`` do. A
    program that writes into a mapped file changes the filter under its readers.

    >>> import os, tamis, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "seen.tamis")
    >>> seen = tamis.Bloom(1_000, 0.01)
    >>> seen.update(["a", "b"])
    >>> seen.save(path)
    >>> with tamis.open(path) as stored:
    ...     stored.contains(["a", "c"])
    [True, False]
    """
    handle = _tamis.open_file(
        os.fspath(path),
        format=format,
        writable=writable,
        verify=verify,
        clock=clock,
        options=options,
    )
    return of_handle(handle)


def from_bytes(
    data: bytes, *, format: str | None = None, clock: bool = True, **options: Any
) -> Filter:
    """Decode the bytes of a filter file of any format, into memory, where the filter can change.

    The arguments are those of `open`. Raises `FormatError` for damaged bytes.
    """
    return of_handle(_tamis.open_bytes(data, format=format, clock=clock, options=options))


def create(format: str, **options: Any) -> Filter:
    """Create an empty filter of another system, for example for a Java service.

    `options` are the decode options of `open`; most formats need ``items_planned`` and
    ``rate_planned``, and a ``funnel`` for the type of the items.

    >>> import tamis
    >>> seen = tamis.create("guava", items_planned=1_000, rate_planned=0.01, funnel="chars")
    >>> seen.update(["a", "b"])
    >>> len(seen.to_bytes())
    1206
    """
    return of_handle(_tamis.create_foreign(format, options))


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: str | None = None,
    format: str | None = None,
    **options: Any,
) -> None:
    """Convert a filter file into another format, without the items.

    Only formats with the same rule from item to bits can be converted: the error says which formats
    need the items. `to` is the format of `target`; by default its name shows the format. `options`
    are the decode options of `open`, for both files. Raises `FormatError` if the target cannot
    store the filter, and ValueError if the name of the target shows no format.

    >>> import pathlib, tamis, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> ids = tamis.IntSet()
    >>> ids.update([1, 5])
    >>> ids.save(folder / "ids.roaring")
    >>> tamis.convert(folder / "ids.roaring", folder / "ids.bits", to="java-bitmap")
    >>> (folder / "ids.bits").read_bytes()
    b'"'
    """
    filter = open(source, format=format, writable=True, **options)
    if to is None:
        to = _format_of(target)
    filter.save(target, to, **options)


def _format_of(path: str | os.PathLike[str]) -> str:
    extension = os.path.splitext(os.fspath(path))[1].removeprefix(".")
    names = [row.name for row in formats() if extension in row.extensions]
    if len(names) != 1:
        raise ValueError(f"{os.fspath(path)}: its name shows no format: give to=...")
    return names[0]


def formats() -> list[Format]:
    """Return all file formats.

    >>> import tamis
    >>> [row.name for row in tamis.formats()][:3]
    ['tamis', 'guava', 'java-bitmap']
    """
    return [
        Format(name, tuple(extensions), summary) for name, extensions, summary in _tamis.formats()
    ]
