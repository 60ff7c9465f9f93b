"""Finds the form of a batch of items, and returns the answers in the same form.

No array library is imported here: a program that passes an array has imported its library.
"""

from __future__ import annotations

import operator
import sys
from itertools import islice

from tamis._tamis import ArrowChunks, Booleans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tamis._filter import Filter

    Progress = Callable[[int, int | None], object]

# The number of Python objects that are processed before other threads run.
_OBJECT_CHUNK = 65_536

# The number of items of an iterable that are inserted at once.
_ITERABLE_CHUNK = 1_024

# The libraries of arrays and tables.
_LIBRARIES = ("numpy", "pandas", "polars", "pyarrow")

# A larger number of threads makes no batch faster.
_MAX_THREADS = 1_024


def run(
    filter: Filter,
    items: Any,
    insert: bool,
    threads: int,
    progress: Progress | None,
    answer_of_null: bool = False,
) -> Any:
    """Test or insert each item, and return the answers in the form of the items."""
    threads = check(items, threads)
    match library_of(items):
        case "numpy":
            return _numpy(filter, items, insert, threads, progress)
        case "pandas":
            return _pandas(filter, items, insert, threads, progress, answer_of_null)
        case "arrow":
            chunks = arrow(filter, items, insert, threads, progress, answer_of_null)
            return _arrow_like(items, chunks)
        case "buffer":
            out = bytearray(len(items))
            filter._run(items, insert, threads, out, False, progress)
            return [answer == 1 for answer in out]
    found: list[list[bool]] = []
    _each_part(
        items,
        progress,
        lambda part, start, stop: found.append(filter._list(part, insert, start, stop)),
    )
    answers, *others = found
    for other in others:
        answers += other
    return answers


def update(filter: Filter, items: Any, threads: int, progress: Progress | None) -> None:
    """Insert each item."""
    threads = check(items, threads)
    match library_of(items):
        case "numpy":
            _numpy(filter, items, True, threads, progress, needs_answers=False)
        case "pandas":
            _pandas(filter, items, True, threads, progress)
        case "arrow":
            arrow(filter, items, True, threads, progress, needs_answers=False)
        case "buffer":
            filter._run(items, True, threads, None, False, progress)
        case _:
            _each_part(items, progress, filter._update)


def _each_part(
    items: Any, progress: Progress | None, run: Callable[[Any, int, int], object]
) -> None:
    """Call `run` with a container, and with the range of the container, for each part of the items.

    A thread that ends with the interpreter inside of an iterable must not have frames of Rust, so
    containers run no Python code. Other threads run between two parts.
    """
    total = len(items) if hasattr(items, "__len__") else None
    done = 0
    parts = _parts(items)
    while True:
        try:
            # An item may raise StopIteration, which must not end the batch without an error.
            part = next(parts, None)
            if part is None:
                return
            container, start, stop = part
            run(container, start, stop)
        except Exception as error:
            if done:
                error.add_note(f"at least the first {done:,} items were processed before")
            raise
        done += stop - start
        if progress is not None:
            progress(done, total)


def _parts(items: Any) -> Iterator[tuple[Any, int, int]]:
    """Return the parts of an iterable, each as a container and a range. The first may be empty."""
    container, len_items = type(items), len(items) if hasattr(items, "__len__") else 0
    if container is list:
        # A slice would copy the references, and count the objects.
        for start in range(0, max(len_items, 1), _OBJECT_CHUNK):
            yield items, start, min(start + _OBJECT_CHUNK, len_items)
        return
    is_container = container in (tuple, set, frozenset, dict)
    if is_container and len_items <= _OBJECT_CHUNK:
        yield items, 0, len_items
        return
    len_part = _OBJECT_CHUNK if is_container else _ITERABLE_CHUNK
    iterator = iter(items)
    part = list(islice(iterator, len_part))
    yield part, 0, len(part)
    while len(part) == len_part:
        part = list(islice(iterator, len_part))
        yield part, 0, len(part)


def check(items: Any, threads: int) -> int:
    """Check the arguments of a batch operation. Returns the number of threads."""
    if isinstance(items, (str, bytes, bytearray)):
        raise TypeError(
            f"a {type(items).__name__} is one item, not a batch: use f.add(item) and `item in f`, "
            "or give a list"
        )
    if type(items).__name__ == "LazyFrame":
        raise TypeError("a LazyFrame of Polars has no rows yet: call .collect()")
    threads = operator.index(threads)
    if threads < 1:
        raise ValueError(f"threads must be at least 1, and not {threads}")
    return min(threads, _MAX_THREADS)


def library_of(items: Any) -> str:
    """Return which kind of array the items are; "" for an iterable of Python objects."""
    if isinstance(items, (list, tuple, set, frozenset, dict)):
        return ""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(items, numpy.ndarray):
        return "numpy"
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        arrays = (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)
        if isinstance(items, arrays):
            return "pandas"
    if hasattr(items, "__arrow_c_array__") or hasattr(items, "__arrow_c_stream__"):
        return "arrow"
    if isinstance(items, memoryview):
        return "buffer"
    # An array of characters has items that numpy would cut: the character of the number 0.
    if type(items).__module__ == "array" and items.typecode not in "uw":
        return "buffer"
    return ""


def _numpy(
    filter: Filter,
    items: Any,
    insert: bool,
    threads: int,
    progress: Progress | None,
    needs_answers: bool = True,
) -> Any:
    numpy = sys.modules["numpy"]
    # The module is imported by the program that creates a masked array.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(items, masked.MaskedArray):
        raise TypeError("masked arrays are not supported: give array.compressed()")
    if items.dtype.kind in "mM":
        raise TypeError(
            f"an array of {items.dtype} has no items: convert it to integers of one unit, for "
            "example array.astype('datetime64[us]').view('int64'), and insert the same integers "
            "for single items"
        )
    if items.size == 0:
        # An empty array may have any type. A closed filter raises.
        filter._list([], insert)
        return numpy.empty(items.shape, dtype=numpy.bool_)
    flat = items if items.ndim == 1 else items.reshape(-1)
    answers = numpy.empty(len(flat), dtype=numpy.bool_) if needs_answers else None
    if flat.dtype.kind in "OT":
        # The items are Python objects, or have no buffer.
        for start in range(0, len(flat), _OBJECT_CHUNK):
            part = flat[start : start + _OBJECT_CHUNK].tolist()
            if answers is None:
                filter._update(part)
            else:
                answers[start : start + len(part)] = filter._list(part, insert)
            if progress is not None:
                progress(start + len(part), len(flat))
    else:
        out = None if answers is None else answers.view(numpy.uint8)
        filter._run(flat, insert, threads, out, False, progress)
    return None if answers is None else answers.reshape(items.shape)


def _has_arrow(items: Any) -> bool:
    """Tests whether a pandas array holds Arrow data, and not a numpy array."""
    numpy, pandas = sys.modules["numpy"], sys.modules["pandas"]
    # A sparse array has no Arrow form.
    is_numpy = isinstance(getattr(items, "dtype", None), (numpy.dtype, pandas.SparseDtype))
    return not is_numpy and hasattr(items, "__arrow_c_stream__")


def _without_null(dtype: Any) -> Any:
    """Return a type of Polars in which integers replace the type of nulls."""
    polars = sys.modules["polars"]
    if dtype == polars.Null:
        return polars.Int64()
    if isinstance(dtype, polars.Struct):
        fields = [polars.Field(field.name, _without_null(field.dtype)) for field in dtype.fields]
        return polars.Struct(fields)
    return dtype


def _pandas(
    filter: Filter,
    items: Any,
    insert: bool,
    threads: int,
    progress: Progress | None,
    answer_of_null: bool = False,
) -> Any:
    numpy, pandas = sys.modules["numpy"], sys.modules["pandas"]
    if isinstance(items, pandas.MultiIndex):
        rows = items.to_frame(index=False)
        return to_numpy(joined(arrow(filter, rows, insert, threads, progress, answer_of_null)))
    series = items if isinstance(items, pandas.Series) else pandas.Series(items)
    name = "the array" if series.name is None else f"the column {series.name!r}"
    if isinstance(series.dtype, (pandas.PeriodDtype, pandas.IntervalDtype)):
        raise TypeError(f"{name} of {series.dtype} has no items: give series.astype(str)")
    if series.dtype.kind == "f" and series.isna().all():
        # pandas.read_csv reads a column without values as NaN.
        filter._list([], insert)
        filter._count_nulls(len(series))
        values = numpy.full(len(series), answer_of_null)
    elif series.dtype.kind == "f":
        raise TypeError(
            f"{name} of {series.dtype} has no items. If pandas read integers with missing values: "
            f"use series.astype('Int64'), or read_csv(dtype={{{series.name!r}: 'Int64'}}). "
            "Otherwise, decide which numbers are equal, and convert the series to integers or text"
        )
    elif _has_arrow(series):
        chunks = arrow(filter, series, insert, threads, progress, answer_of_null)
        values = to_numpy(joined(chunks))
    else:
        values = _with_nulls(filter, series, insert, threads, progress, answer_of_null)
    if isinstance(items, pandas.Series):
        return pandas.Series(values, index=items.index, name=items.name)
    return values


def _with_nulls(
    filter: Filter,
    series: Any,
    insert: bool,
    threads: int,
    progress: Progress | None,
    answer_of_null: bool,
) -> Any:
    """Test or insert each item of a pandas series of numpy data. None, NaN and NA are nulls."""
    numpy = sys.modules["numpy"]
    items = series.to_numpy()
    nulls = series.isna().to_numpy() if items.dtype == object else None
    if nulls is None or not nulls.any():
        return _numpy(filter, items, insert, threads, progress)
    answers = numpy.full(len(items), answer_of_null)
    answers[~nulls] = _numpy(filter, items[~nulls], insert, threads, progress)
    filter._count_nulls(int(nulls.sum()))
    return answers


def library_name(items: Any) -> str:
    """Return the library of the class of an object, or of the class that this class extends."""
    names = (base.__module__.partition(".")[0] for base in type(items).__mro__)
    return next((name for name in names if name in _LIBRARIES), "")


def _arrow_form(items: Any) -> Any:
    """Return an object whose Arrow form has exactly the items."""
    library = library_name(items)
    if library == "pandas" and hasattr(items, "reset_index") and items.ndim == 2:
        # The Arrow form of a data frame has the index as a column.
        return items.reset_index(drop=True)
    if library == "polars":
        polars = sys.modules["polars"]
        is_frame = isinstance(items, polars.DataFrame)
        for name, dtype in items.schema.items() if is_frame else [(items.name, items.dtype)]:
            # The Arrow form of an object is its address.
            if dtype == polars.Object:
                raise TypeError(
                    f"the column {name!r} of Polars objects has no items: give "
                    "series.to_list(), or create the column with another type"
                )
        # The Arrow form of Polars' nulls has a buffer, which the specification does not allow.
        if is_frame:
            types = {name: _without_null(dtype) for name, dtype in items.schema.items()}
            return items if types == dict(items.schema) else items.cast(types)
        if items.dtype != _without_null(items.dtype):
            return items.cast(_without_null(items.dtype))
    return items


def arrow(
    filter: Filter,
    items: Any,
    insert: bool,
    threads: int,
    progress: Progress | None,
    answer_of_null: bool = False,
    needs_answers: bool = True,
) -> list[Booleans]:
    """Process each chunk of an Arrow array or stream. Returns the answers of each chunk."""
    total = len(items) if hasattr(items, "__len__") else None
    done = 0

    def step(rows: int, _: int | None) -> None:
        if progress is not None:
            progress(done + rows, total)

    chunks = []
    for chunk in ArrowChunks(_arrow_form(items)):
        answers = Booleans(len(chunk)) if needs_answers else None
        filter._run(chunk, insert, threads, answers, answer_of_null, step)
        done += len(chunk)
        if answers is not None:
            chunks.append(answers)
    return chunks


def joined(chunks: list[Booleans]) -> Booleans:
    """Return the answers of all chunks, one after the other."""
    # The only chunk, which is usual, is not copied.
    return chunks[0] if len(chunks) == 1 else Booleans._join(chunks)


def to_numpy(answers: Any) -> Any:
    """Return answers as a numpy array of booleans."""
    numpy = sys.modules["numpy"]
    if isinstance(answers, Booleans):
        return numpy.frombuffer(answers._to_bytes(), dtype=numpy.bool_)
    return numpy.asarray(answers, dtype=numpy.bool_)


def _arrow_like(items: Any, chunks: list[Booleans]) -> Any:
    """Return answers as a boolean array of the library of the items."""
    library = library_name(items)
    if library == "polars":
        polars = sys.modules["polars"]
        return polars.Series(joined(chunks)).alias(getattr(items, "name", ""))
    if library == "pandas":
        # A data frame, whose rows are tuples.
        return sys.modules["pandas"].Series(to_numpy(joined(chunks)), index=items.index)
    if library == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        if isinstance(items, (pyarrow.Array, pyarrow.RecordBatch)):
            return pyarrow.array(joined(chunks))
        arrays = [pyarrow.array(chunk) for chunk in chunks]
        return pyarrow.chunked_array(arrays, type=pyarrow.bool_())
    return joined(chunks)
