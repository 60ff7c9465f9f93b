"""Opens and converts files of filters."""

from __future__ import annotations

import os

from tamis import _tamis
from tamis._kinds import CLASSES, Bloom, SharedBloom, of_handle

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
    in_memory: bool = False,
    verify: bool = True,
    clock: bool = True,
    **options: Any,
) -> Filter:
    """Open a filter file of any format.

    A ``.tamis`` file is mapped: it is not copied, all processes share its memory, and it is
    read-only. With `in_memory`, the filter is read into memory, where it can change; the file changes
    only by `Filter.save`. `verify` checks every byte once, at about 0.1 s a GiB; without it, a large file
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
    return of_handle(_handle(path, options, format, in_memory, verify, clock))


def _handle(
    path: str | os.PathLike[str],
    options: dict[str, Any],
    format: str | None = None,
    in_memory: bool = False,
    verify: bool = True,
    clock: bool = True,
    *,
    other_options: bool = False,
) -> Any:
    return _tamis.open_file(
        os.fsdecode(path),
        format=format,
        in_memory=in_memory,
        verify=verify,
        clock=clock,
        options=options,
        other_options=other_options,
    )


def load(cls: Any, path: str | os.PathLike[str], options: dict[str, Any]) -> Any:
    """Read a filter of the class `cls` from a file into memory."""
    names = ("format", "verify", "clock")
    arguments = {name: options.pop(name) for name in names if name in options}
    handle = _handle(path, options, in_memory=True, **arguments)
    kind = CLASSES[handle.class_name]
    if kind is Bloom and issubclass(cls, SharedBloom):
        return cls._of(handle._to_shared(os.fsdecode(path)))
    # A subclass of the kind keeps its own class.
    if issubclass(cls, kind):
        return cls._of(handle)
    if issubclass(kind, cls):
        return kind._of(handle)
    raise TypeError(
        f"{os.fsdecode(path)}: holds a {kind.__name__}, not a {cls.__name__}: use tamis.open, or "
        f"{kind.__name__}.load"
    )


def from_bytes(
    data: bytes | bytearray | memoryview,
    *,
    format: str | None = None,
    clock: bool = True,
    **options: Any,
) -> Filter:
    """Decode the bytes of a filter file of any format, into memory, where the filter can change.

    The arguments are those of `open`. Raises `FormatError` for damaged bytes.
    """
    data = data if isinstance(data, bytes) else bytes(memoryview(data))
    return of_handle(_tamis.open_bytes(data, format=format, clock=clock, options=options))


def create(
    format: str, *, items: int | None = None, rate: float | None = None, **options: Any
) -> Filter:
    """Create an empty filter of another system, for example for a Java service.

    Most formats need `items` and `rate`, the plan of the filter. `options` are the decode options of
    `open`, for example the ``funnel`` for the type of the items.

    >>> import tamis
    >>> seen = tamis.create("guava", items=1_000, rate=0.01, funnel="chars")
    >>> seen.update(["a", "b"])
    >>> len(seen.to_bytes())
    1206
    """
    for name, value in (("items_planned", items), ("rate_planned", rate)):
        if value is not None:
            options[name] = value
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
    # The options are for both files, so that some have no effect on one of the files.
    filter = of_handle(_handle(source, options, format, in_memory=True, other_options=True))
    if to is None:
        to = format_of(target)
        if to is None:
            raise ValueError(f"{os.fsdecode(target)}: its name shows no format: give to=...")
    filter.save(target, to, **options)


def format_of(path: str | os.PathLike[str], names_only: bool = False) -> str | None:
    """Return the name of the format that the extension of a path shows, or None.

    With `names_only`, the extension is the name of another system's format: the extension of Tamis
    stands for the default format of each kind, and extensions such as ``.db`` have other uses.
    """
    extension = os.path.splitext(os.fsdecode(path))[1].removeprefix(".").lower()
    if names_only:
        return extension if extension in {row.name for row in formats()[1:]} else None
    names = [row.name for row in formats() if extension in row.extensions]
    return names[0] if len(names) == 1 else None


def formats() -> list[Format]:
    """Return all file formats.

    >>> import tamis
    >>> [row.name for row in tamis.formats()][:3]
    ['tamis', 'guava', 'java-bitmap']
    """
    return [
        Format(name, tuple(extensions), summary) for name, extensions, summary in _tamis.formats()
    ]
