"""`Filter.dedup` keeps the first row of each key, in every form of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tamis
from hypothesis import given, settings
from hypothesis import strategies as st

SETTINGS = settings(derandomize=True, max_examples=40, deadline=None, database=None)

rows = st.lists(
    st.tuples(st.none() | st.integers(0, 5), st.sampled_from(["a", "b", None]), st.integers(0, 99)),
    max_size=20,
)
batches = st.lists(rows, max_size=5)
Rows = list[tuple[Any, Any, int]]

NAMES = ["n", "t", "i"]


def columns(rows: Rows) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}


def record_batch(rows: Rows) -> Any:
    types = {"n": pa.int32(), "t": pa.string(), "i": pa.int64()}
    return pa.record_batch({k: pa.array(v, types[k]) for k, v in columns(rows).items()})


def table(rows: Rows) -> Any:
    whole = pa.Table.from_batches([record_batch(rows)])
    return pa.concat_tables([whole.slice(0, 3), whole.slice(3)])


def dictionary(rows: Rows) -> Any:
    batch = record_batch(rows)
    return batch.set_column(1, "t", batch["t"].dictionary_encode())


def polars(rows: Rows) -> Any:
    schema = {"n": pl.Int32, "t": pl.String, "i": pl.Int64}
    return pl.DataFrame(columns(rows), schema=schema)


def pandas(rows: Rows) -> Any:
    frame = pd.DataFrame(columns(rows)).astype({"n": "Int32", "t": "string", "i": "int64"})
    frame.index = pd.Index([f"row {i // 2}" for i in range(len(frame))])
    return frame


def rows_of(batch: Any) -> list[tuple[Any, ...]]:
    if isinstance(batch, pl.DataFrame):
        return batch.rows()
    if isinstance(batch, pd.DataFrame):
        values = batch.astype(object).where(batch.notna(), None)
        return [tuple(row) for row in values.itertuples(index=False)]
    return [tuple(row.values()) for row in batch.to_pylist()]


FORMS = [record_batch, table, dictionary, polars, pandas]
KEYS: list[tuple[str | list[str] | None, list[int]]] = [
    (None, [0, 1, 2]),
    ("n", [0]),
    ("t", [1]),
    (["t"], [1]),
    (["n", "t"], [0, 1]),
    (["t", "n"], [1, 0]),
]


def expected(batches: list[Rows], parts: list[int]) -> list[Rows]:
    seen, all_kept = set[Any](), []
    for rows in batches:
        kept = []
        for row in rows:
            key = tuple(row[i] for i in parts)
            if None in key or key not in seen:
                kept.append(row)
                seen.add(key)
        all_kept.append(kept)
    return all_kept


@pytest.mark.parametrize("key", KEYS, ids=[str(key[0]) for key in KEYS])
@pytest.mark.parametrize("form", FORMS, ids=[form.__name__ for form in FORMS])
@SETTINGS
@given(batches=batches)
def test_the_first_row_of_each_key_stays(
    form: Callable[[Rows], Any], key: Any, batches: list[Rows]
) -> None:
    names, parts = key
    f = tamis.DigestSet()
    given = [form(rows) for rows in batches]
    kept = list(f.dedup(iter(given), names))
    assert [rows_of(batch) for batch in kept] == expected(batches, parts)
    assert [type(batch) for batch in kept] == [type(batch) for batch in given]
    nulls = sum(None in [row[i] for i in parts] for rows in batches for row in rows)
    assert f.skipped_nulls == nulls
    # A function that returns the keys gives the same rows.
    if isinstance(names, str):
        again = list(tamis.DigestSet().dedup(given, lambda batch: batch[names]))
        assert [rows_of(batch) for batch in again] == expected(batches, parts)


simple = st.lists(st.lists(st.integers(0, 20), max_size=20), max_size=4)

SIMPLE: list[Callable[[list[int]], Any]] = [
    list,
    tuple,
    lambda items: np.array(items, np.int16),
    lambda items: np.array(items, object),
    lambda items: np.array(items, "U3"),
    lambda items: pa.array(items, pa.int64()),
    lambda items: pa.chunked_array([items[:2], items[2:]], pa.int64()),
    lambda items: pl.Series("s", items, pl.Int64),
    lambda items: pd.Series(
        items, dtype="int64", name="s", index=[i // 2 for i in range(len(items))]
    ),
    lambda items: pd.Series(items, dtype="Int64"),
    lambda items: pd.Index(items, dtype="int64"),
]


@pytest.mark.parametrize("form", SIMPLE, ids=range(len(SIMPLE)))
@SETTINGS
@given(batches=simple)
def test_the_first_of_equal_items_stays(form: Any, batches: list[list[int]]) -> None:
    seen, oracle = set[int](), []
    for items in batches:
        oracle.append([])
        for item in items:
            if item not in seen:
                oracle[-1].append(item)
                seen.add(item)
    given = [form(items) for items in batches]
    for threads in (1, 2):
        kept = list(tamis.DigestSet().dedup(given, threads=threads))
        assert [[int(str(item)) for item in batch] for batch in kept] == oracle
        assert [type(batch) for batch in kept] == [type(batch) for batch in given]


def test_dedup_reads_one_batch_at_a_time() -> None:
    taken = []

    def batches() -> Any:
        for i in range(3):
            taken.append(i)
            yield [i, 0]

    stream = tamis.Growing().dedup(batches())
    assert taken == []
    assert next(stream) == [0] and taken == [0]
    assert next(stream) == [1] and taken == [0, 1]
    assert list(stream) == [[2]]


def test_dedup_passes_the_exception_of_a_batch_on() -> None:
    def batches() -> Any:
        yield [1]
        raise ZeroDivisionError("from the batches")

    f = tamis.Growing()
    stream = f.dedup(batches())
    assert next(stream) == [1]
    with pytest.raises(ZeroDivisionError, match="from the batches"):
        next(stream)
    with pytest.raises(ZeroDivisionError):
        list(f.dedup([[1]], key=lambda batch: 1 / 0))


def test_a_filter_that_is_used_meanwhile_drops_rows_too() -> None:
    f = tamis.DigestSet()
    stream = f.dedup([[1, 2], [3, 4]])
    assert next(stream) == [1, 2]
    f.add(3)
    assert next(stream) == [4]


def test_a_structured_array_of_numpy_has_keys_by_field() -> None:
    batch = np.array([(1, "a"), (1, "b"), (2, "a")], dtype=[("n", "i4"), ("t", "U1")])
    assert list(tamis.DigestSet().dedup([batch], "n"))[0].tolist() == [(1, "a"), (2, "a")]
    assert list(tamis.DigestSet().dedup([batch], "t"))[0].tolist() == [(1, "a"), (1, "b")]
    with pytest.raises(TypeError):
        list(tamis.DigestSet().dedup([batch], ["n", "t"]))


def test_a_function_gives_the_keys_of_rows_of_any_form() -> None:
    matrix = np.array([[1, 5], [1, 6], [2, 7]])
    (kept,) = tamis.DigestSet().dedup([matrix], lambda batch: batch[:, 0])
    assert kept.tolist() == [[1, 5], [2, 7]]
    words = ["Ab", "aB", "c"]
    (lowered,) = tamis.DigestSet().dedup([words], lambda batch: [word.lower() for word in batch])
    assert lowered == ["Ab", "c"]
    frame = pl.DataFrame({"t": ["A", "a", "b"]})
    (rest,) = tamis.DigestSet().dedup([frame], lambda batch: batch["t"].str.to_lowercase())
    assert rest["t"].to_list() == ["A", "b"]


def test_a_data_frame_with_a_column_named_select_has_keys() -> None:
    frame = pd.DataFrame({"select": [1, 1, 2], "columns": [1, 2, 1]})
    (kept,) = tamis.DigestSet().dedup([frame], ["select", "columns"])
    assert len(kept) == 3
    (kept,) = tamis.DigestSet().dedup([frame], ["select"])
    assert kept["columns"].tolist() == [1, 1]


WRONG: list[tuple[Any, Any, type[Exception]]] = [
    ({1, 2}, None, TypeError),
    ((x for x in "ab"), None, TypeError),
    ("ab", None, TypeError),
    (b"ab", None, TypeError),
    (5, None, TypeError),
    (range(3), None, TypeError),
    ({"a": [1]}, "a", TypeError),
    (np.arange(4).reshape(2, 2), None, ValueError),
    (np.arange(4), lambda batch: batch[:2], ValueError),
    (np.arange(4), lambda batch: np.arange(9), ValueError),
    (np.arange(4), lambda batch: iter(batch), TypeError),
    (np.arange(4), lambda batch: "abcd", TypeError),
    (pl.DataFrame({"a": [1, 2]}), [], ValueError),
    (pa.table({"a": [1, 2]}), [], TypeError),
    (pd.DataFrame({"a": [1, 2]}), [], TypeError),
    (pl.DataFrame({"a": [1, 2]}), "b", pl.exceptions.ColumnNotFoundError),
    (pa.table({"a": [1, 2]}), "b", KeyError),
    (pd.DataFrame({"a": [1, 2]}), "b", KeyError),
    ([1, 2], "b", TypeError),
    (np.array([1.5]), None, TypeError),
]


@pytest.mark.parametrize(("batch", "key", "error"), WRONG, ids=range(len(WRONG)))
def test_a_batch_without_keys_raises_and_inserts_nothing(batch: Any, key: Any, error: Any) -> None:
    f = tamis.DigestSet()
    with pytest.raises(error):
        list(f.dedup([batch], key))
    assert len(f) == 0


def test_dedup_with_threads_keeps_each_key_once() -> None:
    items = np.random.default_rng(3).integers(0, 50_000, 300_000)
    f = tamis.SharedBloom(100_000, 1e-6)
    (kept,) = f.dedup([items], threads=4)
    assert sorted(kept.tolist()) == sorted(set(items.tolist()))


def test_one_table_is_one_batch() -> None:
    frame = pd.DataFrame({"k": ["a", "b", "a"], "n": [1, 2, 3]})
    for table in (frame, pl.DataFrame(frame), pa.Table.from_pandas(frame)):
        [kept] = tamis.DigestSet().dedup(table, key="k")
        assert (
            type(kept) is type(table) and kept["n"].to_pandas().tolist() == [1, 2]
            if (isinstance(table, pa.Table))
            else kept["n"].to_list() == [1, 2]
        )
    [kept] = tamis.DigestSet().dedup(np.array([1, 2, 1]))
    assert kept.tolist() == [1, 2]
    [kept] = tamis.DigestSet().dedup(pa.table({"x": ["a", "a"]}).to_batches()[0], key="x")
    assert kept.num_rows == 1
    [kept] = tamis.DigestSet().dedup(frame.set_axis([0, 1], axis=1), key=0)
    assert kept[1].tolist() == [1, 2]


def test_a_key_of_rows_that_are_dictionaries_names_a_value() -> None:
    rows = [{"id": 1, "t": "a"}, {"id": 2, "t": "a"}, {"id": 1, "t": "a"}]
    assert list(tamis.DigestSet().dedup([rows], key="id")) == [rows[:2]]
    assert list(tamis.DigestSet().dedup([rows], key="t")) == [rows[:1]]
    assert list(tamis.DigestSet().dedup([rows], key=["id", "t"])) == [rows[:2]]


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (5, "dedup takes a table or an iterable of batches, and not a int"),
        ("abc", "and not a str"),
        ({"a": 1}, "and not a dict"),
        (pl.LazyFrame({"a": [1]}), "LazyFrame: call .collect_batches"),
    ],
)
def test_an_argument_without_batches_raises_at_once(batches: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tamis.Bloom(10).dedup(batches, key="a")
    with pytest.raises(TypeError, match="a batch must be .* and not a dict: group rows"):
        list(tamis.Bloom(10).dedup([{"a": 1}], key="a"))


def test_a_key_column_of_pandas_that_changes_its_type_raises() -> None:
    one, two = pd.DataFrame({"id": [1, 2]}), pd.DataFrame({"id": ["1", "A7"]})
    message = "the key 'id' has the type int64 in an earlier batch"
    for key in ("id", ["id"]):
        f = tamis.DigestSet()
        kept = f.dedup([one, two], key=key)
        assert len(next(kept)) == 2
        with pytest.raises(TypeError, match=message):
            next(kept)
        assert len(f) == 2
    small = one.astype("int16")
    assert [len(kept) for kept in tamis.DigestSet().dedup([one, small], key="id")] == [2, 0]


def test_columns_without_values_and_categories_have_any_type() -> None:
    empty = pd.DataFrame({"a": []})
    nulls = pd.DataFrame({"a": [None, None]})
    text = pd.DataFrame({"a": ["x", "x"]})
    numbers = pd.DataFrame({"a": [1, 1, 2]})
    categories = numbers.astype("category")
    not_a_number = pd.DataFrame({"a": [float("nan")] * 2})
    for batches, lengths in (
        ([empty, numbers], [0, 2]),
        ([nulls, text, nulls], [2, 1, 2]),
        ([text, not_a_number], [1, 2]),
        ([categories, numbers], [2, 0]),
        ([numbers, categories], [2, 0]),
    ):
        kept = tamis.DigestSet().dedup(batches, key="a")
        assert [len(batch) for batch in kept] == lengths


def test_keys_of_an_empty_batch_may_be_a_list() -> None:
    for frame in (pd.DataFrame({"a": []}), pl.DataFrame({"a": []}), pa.table({"a": []})):
        [kept] = tamis.DigestSet().dedup([frame], key=lambda batch: [])
        assert len(kept) == 0


def test_a_row_with_a_null_key_is_kept_in_a_list_of_dictionaries() -> None:
    rows = [{"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": None, "b": 1}, {"a": None, "b": 1}]
    f = tamis.DigestSet()
    assert list(f.dedup([rows], key="a")) == [[rows[0], *rows[2:]]] and f.skipped_nulls == 2
    assert list(tamis.DigestSet().dedup([rows], key=["a", "b"])) == [[rows[0], *rows[2:]]]
