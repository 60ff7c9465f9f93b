"""Drops the rows of tables whose key was seen before."""

from __future__ import annotations

import sys

from tamis import _arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tamis._filter import Filter


def dedup(filter: Filter, batches: Any, key: Any, threads: int) -> Iterator[Any]:
    """Insert the keys of all batches. Yields each batch without the rows whose key is not new."""
    if _is_table(batches):
        batches = [batches]
    elif not hasattr(batches, "__iter__") or isinstance(batches, (str, bytes, dict)):
        advice = ": call .collect_batches()" if type(batches).__name__ == "LazyFrame" else ""
        raise TypeError(
            f"dedup takes a table or an iterable of batches, and not a {type(batches).__name__}"
            + advice
        )
    _arrays.check((), threads)
    return _each(filter, batches, key, threads)


def _each(filter: Filter, batches: Iterable[Any], key: Any, threads: int) -> Iterator[Any]:
    types: dict[Any, Any] = {}
    for batch in batches:
        yield _without_repeats(filter, batch, key, threads, types)


def _is_table(batches: Any) -> bool:
    """Tests whether the argument of `dedup` is one table, and not an iterable of tables."""
    classes = {
        "numpy": ("ndarray",),
        "pandas": ("DataFrame", "Series"),
        "polars": ("DataFrame", "Series"),
        "pyarrow": ("Table", "RecordBatch", "Array", "ChunkedArray"),
    }
    library = _arrays.library_name(batches)
    module = sys.modules.get(library)
    names = classes.get(library, ())
    return any(isinstance(batches, getattr(module, name)) for name in names)


def _without_repeats(
    filter: Filter, batch: Any, key: Any, threads: int, types: dict[Any, Any]
) -> Any:
    """Insert the keys of a batch, and return the rows whose keys are new or null."""
    if not _arrays.library_name(batch) and not isinstance(batch, (list, tuple)):
        advice = ": group rows with itertools.batched" if isinstance(batch, dict) else ""
        raise TypeError(
            f"a batch must be a numpy array, a pyarrow, Polars or pandas table, or a list, and not "
            f"a {type(batch).__name__}{advice}"
        )
    keys = _keys(batch, key)
    _arrays.check(keys, threads)
    _check_rows(batch, keys)
    if _arrays.library_name(keys) == "pandas":
        _check_types(keys, types)
    if isinstance(keys, list) and isinstance(batch, (list, tuple)) and key is not None:
        return _rows(batch, _insert_keys(filter, keys, threads))
    if _arrays.library_of(keys) == "arrow":
        # A row without a key is kept.
        chunks = _arrays.arrow(filter, keys, True, threads, None, answer_of_null=True)
        return _rows(batch, _arrays.joined(chunks))
    return _rows(batch, _arrays.run(filter, keys, True, threads, None, answer_of_null=True))


def _insert_keys(filter: Filter, keys: list[Any], threads: int) -> list[bool]:
    """Insert keys of dictionaries. A key that is None, or has a part that is None, is a null."""
    is_null = [key is None or isinstance(key, tuple) and None in key for key in keys]
    if not any(is_null):
        return _arrays.run(filter, keys, True, threads, None)  # type: ignore[no-any-return]
    found = [key for key, null in zip(keys, is_null, strict=True) if not null]
    new = iter(_arrays.run(filter, found, True, threads, None))
    filter._count_nulls(sum(is_null))
    return [True if null else next(new) for null in is_null]


def _check_rows(batch: Any, keys: Any) -> None:
    """Check before the first insert that there is one key for each row."""
    if not hasattr(keys, "__len__"):
        raise TypeError(
            f"the keys of a batch must be an array or a list, and not a {type(keys).__name__}"
        )
    if getattr(keys, "ndim", 1) != 1 and _arrays.library_of(keys) == "numpy":
        raise ValueError(f"the keys of a batch have one dimension, and not {keys.ndim}")
    if len(keys) != len(batch):
        raise ValueError(f"a batch of {len(batch)} rows has {len(keys)} keys")


def _check_types(keys: Any, types: dict[Any, Any]) -> None:
    """Check that a column of pandas has integers in all batches, or in none.

    `pandas.read_csv` chooses the type of a column for each chunk: the key 1 may be the integer in
    one chunk, and the text in another.
    """
    pandas = sys.modules["pandas"]
    is_integer = pandas.api.types.is_integer_dtype
    is_frame = getattr(keys, "ndim", 1) == 2
    for name in keys.columns if is_frame else [getattr(keys, "name", None)]:
        column = keys[name] if is_frame else keys
        dtype = column.dtype
        if isinstance(dtype, pandas.CategoricalDtype):
            dtype = dtype.categories.dtype
        # A column without values may have any type.
        if column.isna().all():
            continue
        before = types.setdefault(name, dtype)
        if is_integer(before) != is_integer(dtype):
            raise TypeError(
                f"the key {name!r} has the type {before} in an earlier batch and {dtype} in this "
                f"one, so that equal keys would differ: give one type, for example by "
                f"read_csv(dtype={{{name!r}: 'str'}})"
            )


def _keys(batch: Any, key: Any) -> Any:
    if key is None:
        return batch
    if callable(key):
        return key(batch)
    is_one = isinstance(key, (str, int))
    if isinstance(batch, (list, tuple)):
        if is_one:
            return [row[key] for row in batch]
        names = list(key)
        return [tuple(row[name] for name in names) for row in batch]
    if is_one:
        return batch[key]
    key = list(key)
    return (
        batch.select(key)
        if hasattr(batch, "select") and _arrays.library_name(batch) != "pandas"
        else batch[key]
    )


def _rows(batch: Any, keep: Any) -> Any:
    """Return the rows of a batch whose answer is true."""
    library = _arrays.library_name(batch)
    if library in ("numpy", "pandas"):
        return batch[_arrays.to_numpy(keep)]
    if library == "polars":
        polars = sys.modules["polars"]
        is_list = isinstance(keep, list)
        return batch.filter(polars.Series(keep, dtype=polars.Boolean if is_list else None))
    if library == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        is_list = isinstance(keep, list)
        return batch.filter(pyarrow.array(keep, type=pyarrow.bool_() if is_list else None))
    rows = (item for item, is_new in zip(batch, keep, strict=True) if is_new)
    return list(rows) if isinstance(batch, list) else tuple(rows)
