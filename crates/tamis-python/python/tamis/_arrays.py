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

# The number of Python objects that are converted at once.
_SLICE = 65_536

# The number of items of an iterable that are inserted at once.
_PART = 1_024

# A larger number of threads makes no batch faster.
_MAX_THREADS = 1_024

# The libraries of the batches of `Filter.dedup`.
_LIBRARIES = ("numpy", "pandas", "polars", "pyarrow")


def run(filter: Filter, items: Any, insert: bool, threads: int, progress: Progress | None) -> Any:
    """Test or insert each item, and return the answers in the form of the items."""
    threads = _check(items, threads)
    match _library(items):
        case "numpy":
            return _numpy(filter, items, insert, threads, progress)
        case "pandas":
            return _pandas(filter, items, insert, threads, progress)
        case "arrow":
            return _arrow_like(items, _arrow(filter, items, insert, threads, progress))
        case "buffer":
            out = bytearray(len(items))
            filter._run(items, insert, threads, out, False, progress)
            return [answer == 1 for answer in out]
    answers: list[bool] = []
    for part in _lists(items):
        found = filter._list(part, insert)
        # The answers of the only part, which is usual, are not copied.
        if answers:
            answers += found
        else:
            answers = found
    return answers


def update(filter: Filter, items: Any, threads: int, progress: Progress | None) -> None:
    """Insert each item."""
    threads = _check(items, threads)
    match _library(items):
        case "numpy":
            _numpy(filter, items, True, threads, progress, needs_answers=False)
        case "pandas":
            _pandas(filter, items, True, threads, progress)
        case "arrow":
            _arrow(filter, items, True, threads, progress, needs_answers=False)
        case "buffer":
            filter._run(items, True, threads, None, False, progress)
        case _:
            for part in _lists(items):
                filter._update(part)


def _lists(items: Any) -> Iterator[Any]:
    """Return the items of an iterable in containers that run no Python code.

    A thread that ends with the interpreter inside of an iterable must not have frames of Rust, and
    an endless iterable of the standard library must let other threads run.
    """
    if type(items) in (list, tuple, set, frozenset, dict):
        yield items
        return
    iterator = iter(items)
    while part := list(islice(iterator, _PART)):
        yield part


def without_repeats(filter: Filter, batch: Any, key: Any, threads: int) -> Any:
    """Insert the keys of a batch, and return the rows whose keys are new or null."""
    library = type(batch).__module__.partition(".")[0]
    if library not in _LIBRARIES and not isinstance(batch, (list, tuple)):
        raise TypeError(
            f"a batch must be a numpy array, a pyarrow, Polars or pandas table, or a list, and not "
            f"a {type(batch).__name__}"
        )
    keys = _keys(batch, key)
    threads = _check(keys, threads)
    library = _library(keys)
    _check_rows(batch, keys)
    if library == "arrow" or library == "pandas" and _has_arrow(keys):
        # A row without a key is kept.
        chunks = _arrow(filter, keys, True, threads, None, answer_of_null=True)
        return _rows(batch, _joined(chunks))
    keys = keys.to_numpy() if library == "pandas" else keys
    return _rows(batch, run(filter, keys, True, threads, None))


def _check(items: Any, threads: int) -> int:
    """Check the arguments of a batch operation. Returns the number of threads."""
    if isinstance(items, (str, bytes, bytearray)):
        raise TypeError(
            f"a {type(items).__name__} is one item, not a batch: use f.add(item) and `item in f`, "
            "or give a list"
        )
    threads = operator.index(threads)
    if threads < 1:
        raise ValueError(f"threads must be at least 1, and not {threads}")
    return min(threads, _MAX_THREADS)


def _check_rows(batch: Any, keys: Any) -> None:
    """Check before the first insert that there is one key for each row."""
    if not hasattr(keys, "__len__"):
        raise TypeError(
            f"the keys of a batch must be an array or a list, and not a {type(keys).__name__}"
        )
    if getattr(keys, "ndim", 1) != 1 and _library(keys) == "numpy":
        raise ValueError(f"the keys of a batch have one dimension, and not {keys.ndim}")
    if len(keys) != len(batch):
        raise ValueError(f"a batch of {len(batch)} rows has {len(keys)} keys")


def _library(items: Any) -> str:
    """Return which kind of array the items are; "" for an iterable of Python objects."""
    if isinstance(items, (list, tuple, set, frozenset, dict)):
        return ""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(items, numpy.ndarray):
        return "numpy"
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(items, (pandas.Series, pandas.Index)):
        return "pandas"
    if hasattr(items, "__arrow_c_array__") or hasattr(items, "__arrow_c_stream__"):
        return "arrow"
    if isinstance(items, memoryview) or type(items).__module__ == "array":
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
        raise TypeError("a masked array has no nulls here: give array.compressed()")
    if items.dtype.kind in "mM":
        raise TypeError(
            f"{items.dtype} is not an item: give array.view('int64'), and item.view('int64') for "
            "single items"
        )
    flat = items if items.ndim == 1 else items.reshape(-1)
    answers = numpy.empty(len(flat), dtype=numpy.bool_) if needs_answers else None
    if flat.dtype.kind in "OT":
        # The items are Python objects, or have no buffer.
        for start in range(0, len(flat), _SLICE):
            part = flat[start : start + _SLICE].tolist()
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


def _pandas(
    filter: Filter, items: Any, insert: bool, threads: int, progress: Progress | None
) -> Any:
    pandas = sys.modules["pandas"]
    if _has_arrow(items):
        values = _to_numpy(_joined(_arrow(filter, items, insert, threads, progress)))
    else:
        values = _numpy(filter, items.to_numpy(), insert, threads, progress)
    if isinstance(items, pandas.Series):
        return pandas.Series(values, index=items.index, name=items.name)
    return values


def _arrow_form(items: Any) -> Any:
    """Return an object whose Arrow form has exactly the items."""
    library = type(items).__module__.partition(".")[0]
    if library == "pandas" and hasattr(items, "reset_index") and items.ndim == 2:
        # The Arrow form of a data frame has the index as a column.
        return items.reset_index(drop=True)
    if library == "polars":
        # The Arrow form of Polars' nulls has a buffer, which the specification does not allow.
        polars = sys.modules["polars"]
        if isinstance(items, polars.DataFrame) and polars.Null in items.dtypes:
            return items.cast({polars.Null: polars.Int64})
        if isinstance(items, polars.Series) and items.dtype == polars.Null:
            return items.cast(polars.Int64)
    return items


def _arrow(
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


def _joined(chunks: list[Booleans]) -> Booleans:
    # The only chunk, which is usual, is not copied.
    return chunks[0] if len(chunks) == 1 else Booleans._join(chunks)


def _to_numpy(answers: Any) -> Any:
    numpy = sys.modules["numpy"]
    if isinstance(answers, Booleans):
        return numpy.frombuffer(answers._to_bytes(), dtype=numpy.bool_)
    return numpy.asarray(answers, dtype=numpy.bool_)


def _arrow_like(items: Any, chunks: list[Booleans]) -> Any:
    """Return answers as a boolean array of the library of the items."""
    library = type(items).__module__.partition(".")[0]
    if library == "polars":
        polars = sys.modules["polars"]
        return polars.Series(_joined(chunks)).alias(getattr(items, "name", ""))
    if library == "pandas":
        # A data frame, whose rows are tuples.
        return sys.modules["pandas"].Series(_to_numpy(_joined(chunks)), index=items.index)
    if library == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        if isinstance(items, (pyarrow.Array, pyarrow.RecordBatch)):
            return pyarrow.array(_joined(chunks))
        arrays = [pyarrow.array(chunk) for chunk in chunks]
        return pyarrow.chunked_array(arrays, type=pyarrow.bool_())
    return _joined(chunks)


def _keys(batch: Any, key: Any) -> Any:
    if key is None:
        return batch
    if callable(key):
        return key(batch)
    if isinstance(key, str):
        return batch[key]
    key = list(key)
    is_pandas = type(batch).__module__.partition(".")[0] == "pandas"
    return batch.select(key) if not is_pandas and hasattr(batch, "select") else batch[key]


def _rows(batch: Any, keep: Any) -> Any:
    """Return the rows of a batch whose answer is true."""
    library = type(batch).__module__.partition(".")[0]
    if library == "numpy" or library == "pandas":
        return batch[_to_numpy(keep)]
    if library == "polars":
        return batch.filter(sys.modules["polars"].Series(keep))
    if library == "pyarrow":
        return batch.filter(sys.modules["pyarrow"].array(keep))
    rows = (item for item, is_new in zip(batch, keep, strict=True) if is_new)
    return list(rows) if isinstance(batch, list) else tuple(rows)
