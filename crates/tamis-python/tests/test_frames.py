"""Batches in Polars, pandas and DuckDB."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tamis


def expect(f: tamis.Filter, items: list[Any]) -> list[bool]:
    return [item is not None and item in f for item in items]


def check(batch: Any, items: list[Any]) -> Any:
    """Insert and test a batch. Returns the answers about every second item."""
    f, g = tamis.DigestSet(), tamis.DigestSet()
    new = f.insert(batch)
    assert list(new) == [item is not None and g.add(item) for item in items]
    assert f == g
    h = tamis.DigestSet()
    assert h.update(batch) is None and h == g
    half = tamis.DigestSet()
    half.update([item for item in items[::2] if item is not None])
    for threads in (1, 2, 3, 4):
        found = half.contains(batch, threads=threads)
        assert list(found) == expect(half, items)
    assert type(new) is type(found)
    return found


POLARS: list[tuple[list[Any], Any]] = [
    *[([1, 2, None, 1, 100], kind) for kind in (pl.Int8, pl.UInt16, pl.Int32, pl.UInt64, pl.Int64)],
    (["a", "é", None, "a", "x" * 50], pl.String),
    ([b"a", b"\0", None, b"a", b"x" * 50], pl.Binary),
    (["a", "b", None, "a"], pl.Categorical),
    (["a", "b", None, "a"], pl.Enum(["a", "b"])),
    ([None, None], pl.Null),
    ([], pl.Int64),
    ([], pl.String),
]


@pytest.mark.parametrize(("values", "dtype"), POLARS, ids=[f"{i}" for i in range(len(POLARS))])
def test_a_series_of_polars_gets_a_series_of_polars(values: list[Any], dtype: Any) -> None:
    series = pl.Series("name", values, dtype=dtype)
    found = check(series, values)
    assert isinstance(found, pl.Series) and found.name == "name" and found.dtype == pl.Boolean
    check(series[1:3], values[1:3])
    check(pl.concat([series, series, series[:1]], rechunk=False), values + values + values[:1])


def test_a_data_frame_of_polars_has_tuples_as_items() -> None:
    frame = pl.DataFrame({"n": [1, 2, 1, None], "t": ["a", "b", "a", "c"]})
    items = [(1, "a"), (2, "b"), (1, "a"), None]
    found = check(frame, items)
    assert isinstance(found, pl.Series) and found.dtype == pl.Boolean
    check(frame.select("t"), ["a", "b", "a", "c"])
    check(frame[1:], items[1:])
    check(frame.clear(), [])
    check(pl.DataFrame(), [])
    assert frame.filter(check(frame, items)).height == 2


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Boolean, pl.Date, pl.List(pl.Int64)])
def test_a_type_of_polars_without_items_raises(dtype: Any) -> None:
    for batch in (pl.Series([], dtype=dtype), pl.Series([None], dtype=dtype)):
        for form in (batch, batch.to_frame("x")):
            with pytest.raises(TypeError, match="cast (it|the array) to integers"):
                tamis.Bloom(10).contains(form)


INDEX = [10, "x", 10, 7, 3]

PANDAS: list[tuple[list[Any], Any]] = [
    ([1, -2, 1, 100, 5], "int8"),
    ([1, 2, 1, 2**64 - 1, 5], "uint64"),
    ([1, -2, 1, 2**62, 5], "int64"),
    ([1, None, 1, -(2**62), 5], "Int64"),
    ([1, None, 1, 2**64 - 1, 5], "UInt64"),
    ([1, 2, 1, 3, 5], "Int8"),
    (["a", "é", "a", "", "x"], object),
    (["a", 5, "a", b"b", (1, "x")], object),
    (["a", "é", "a", "", "x"], "str"),
    (["a", "é", None, "", "a"], "str"),
    (["a", "é", None, "", "a"], "string[pyarrow]"),
    (["a", "é", None, "", "a"], "string[python]"),
    (["a", "b", None, "b", "a"], "category"),
    ([1, 2, 1, 2, 3], "category"),
    (["a", "é", None, "", "a"], pd.ArrowDtype(pa.large_string())),
    ([1, None, 1, 2, 3], pd.ArrowDtype(pa.int32())),
    ([b"a", None, b"a", b"", b"x"], pd.ArrowDtype(pa.binary())),
    ([1, 1, 1, 2, 2], pd.SparseDtype("int64", 1)),
]


@pytest.mark.parametrize(
    ("values", "dtype"), PANDAS, ids=[f"{i}-{row[1]}" for i, row in enumerate(PANDAS)]
)
def test_a_series_of_pandas_gets_a_series_with_its_index_and_name(
    values: list[Any], dtype: Any
) -> None:
    series = pd.Series(values, dtype=dtype, index=INDEX, name=("a", 1))
    found = check(series, values)
    assert isinstance(found, pd.Series) and found.dtype == np.bool_
    assert found.index.equals(series.index) and found.name == ("a", 1)
    check(series.iloc[1:4], values[1:4])
    check(series.iloc[::-1], values[::-1])
    check(series.iloc[:0], [])
    check(series.reset_index(drop=True), values)
    # The answers choose rows of the series.
    assert len(series[found]) == sum(found)


@pytest.mark.parametrize("dtype", ["int64", "uint8", object, "Int64", "str", "category"])
def test_an_index_of_pandas_gets_a_numpy_array(dtype: Any) -> None:
    values = ["a", "b", "a"] if dtype in (object, "str", "category") else [1, 2, 1]
    found = check(pd.Index(values, dtype=dtype), values)
    assert type(found) is np.ndarray and found.dtype == np.bool_
    check(pd.RangeIndex(3), [0, 1, 2])


def test_a_data_frame_of_pandas_has_tuples_without_the_index_as_items() -> None:
    items = [(1, "a"), (2, "b"), (1, "a")]
    frame = pd.DataFrame({"n": [1, 2, 1], "t": ["a", "b", "a"]})
    check(frame, items)
    indexes = [
        [5, 6, 5],
        ["x", "y", "z"],
        pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "c")], names=["p", "q"]),
        pd.Index([1.5, 2.5, 3.5], name="f"),
        pd.RangeIndex(7, 1, -2),
    ]
    for index in indexes:
        frame.index = pd.Index(index)
        found = check(frame, items)
        assert isinstance(found, pd.Series) and found.index.equals(frame.index)
        assert len(frame[found]) == sum(found)
    check(frame[["t"]], ["a", "b", "a"])
    check(frame.iloc[1:], items[1:])
    check(frame.iloc[:0], [])


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1.5]),
        pd.Series([True]),
        pd.Series([1.5], dtype="Float64"),
        pd.Series([True], dtype="boolean"),
        pd.Series(["a", None, 5.0], dtype=object),
        pd.Series([["a"], None], dtype=object),
        pd.Series(pd.period_range("2020", periods=2)),
        pd.Series(pd.interval_range(0, 2)),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.Series(pd.to_datetime(["2020-01-01"])).dt.tz_localize("UTC"),
        pd.Series(pd.Categorical([1.5])),
        pd.Series([[1, 2]], dtype=object),
    ],
    ids=lambda series: str(series.dtype),
)
def test_a_type_of_pandas_without_items_raises(series: Any) -> None:
    for f in (tamis.Bloom(10), tamis.DigestSet()):
        for operation in (f.contains, f.insert, f.update):
            with pytest.raises(TypeError, match="item|convert|numbers"):
                operation(series)
        assert len(f.info()) and (series.dtype == object or not f)


def test_results_of_duckdb_are_streams() -> None:
    connection = pytest.importorskip("duckdb").connect()
    query = "select range as n, 'item ' || (range % 5) as t from range(5000)"
    f = tamis.DigestSet()
    answers = f.insert(connection.sql(f"select n from ({query})"))
    assert pa.array(answers).to_pylist() == [True] * 5_000
    assert f.contains([0, 4_999, 5_000]) == [True, True, False]
    f = tamis.DigestSet()
    f.update(connection.sql(query))
    assert len(f) == 5_000 and (7, "item 2") in f
    f = tamis.DigestSet()
    reader = connection.sql(f"select t from ({query})").to_arrow_reader(1_000)
    new = f.insert(reader)
    assert isinstance(new, pa.ChunkedArray) and sum(new.to_pylist()) == 5
    new = f.insert(connection.sql(f"select t from ({query})").to_arrow_table())
    assert not any(new.to_pylist()) and len(new) == 5_000
    nulls = connection.sql("select nullif(range, 3) from range(5)")
    assert pa.array(tamis.DigestSet().insert(nulls)).to_pylist() == [True, True, True, False, True]


def test_a_data_frame_of_pandas_through_duckdb_keeps_its_items() -> None:
    frame = pd.DataFrame({"t": ["a", "b", "a"]})
    connection = pytest.importorskip("duckdb").connect()
    connection.register("frame", frame)
    f = tamis.DigestSet()
    f.update(connection.sql("select t from frame"))
    assert f.contains(frame["t"]).all() and len(f) == 2


NULLS = [None, float("nan"), pd.NA, pd.NaT]


@pytest.mark.parametrize("null", NULLS, ids=lambda null: str(null))
def test_missing_values_of_pandas_objects_are_nulls(null: Any) -> None:
    series = pd.Series(["a", null, "b", "a"], dtype=object, index=[3, 1, 2, 0])
    f = tamis.DigestSet()
    new = f.insert(series)
    assert new.tolist() == [True, False, True, False] and new.index.tolist() == [3, 1, 2, 0]
    assert len(f) == 2 and f.skipped_nulls == 1
    assert f.contains(series).tolist() == [True, False, True, True] and f.skipped_nulls == 2
    assert f.contains(pd.Index(series)).tolist() == [True, False, True, True]
    assert f.contains(pd.array(["a", None], dtype="string")).tolist() == [True, False]
    f.update(pd.Series([null, null], dtype=object))
    assert len(f) == 2
    table = pd.DataFrame({"k": series, "n": range(4)})
    [kept] = tamis.DigestSet().dedup([table], key="k")
    assert kept["n"].tolist() == [0, 1, 2], "a row with a null key is kept"


def test_pandas_arrays_and_categories_have_the_items_of_their_series() -> None:
    f = tamis.DigestSet()
    f.update([1, 2, "a"])
    assert f.contains(pd.array([1, None, 3], dtype="Int64")).tolist() == [True, False, False]
    assert f.contains(pd.Categorical(["a", "b", None])).tolist() == [True, False, False]
    assert f.contains(pd.Index([1, 2, 3])).tolist() == [True, True, False]


def test_a_float_column_of_pandas_names_the_nullable_integers() -> None:
    f = tamis.Bloom(10)
    with pytest.raises(TypeError, match="column 'id' of float64 has no items.*Int64"):
        f.insert(pd.Series([1.0, None], name="id"))
    with pytest.raises(TypeError, match="column 'id' of float64"):
        list(f.dedup(pd.DataFrame({"id": [1.0, None]}), key="id"))
    assert f.insert(pd.Series([], dtype="float64")).tolist() == []
    assert f.insert(np.array([])).tolist() == [] and not f


def test_objects_of_polars_raise_because_their_arrow_form_is_an_address() -> None:
    uuids = [uuid.UUID(int=i) for i in range(3)]
    series = pl.Series("u", uuids, dtype=pl.Object)
    f = tamis.Bloom(100)
    for operation in (f.insert, f.contains, f.update):
        for items in (series, series.to_frame(), pl.DataFrame({"n": [1, 2, 3], "u": series})):
            with pytest.raises(TypeError, match="column 'u' of Polars objects"):
                operation(items)
    with pytest.raises(TypeError, match="column 'u'"):
        list(f.dedup([series.to_frame()], key="u"))
    assert not f
    f.insert(series.to_list())
    assert f.contains(uuids) == [True] * 3


def test_subclasses_of_tables_have_the_items_of_their_class() -> None:
    class Frame(pd.DataFrame):
        pass

    frame = Frame({"a": [1, 1, 2], "b": ["x", "x", "y"]}, index=[5, 6, 7])
    f = tamis.DigestSet()
    answers = f.insert(frame)
    assert isinstance(answers, pd.Series) and answers.tolist() == [True, False, True]
    assert answers.index.tolist() == [5, 6, 7] and (1, "x") in f
    [kept] = tamis.DigestSet().dedup(frame, key=["a", "b"])
    assert kept.index.tolist() == [5, 7]
    [kept] = tamis.DigestSet().dedup([frame], key="a")
    assert kept.index.tolist() == [5, 7]


def test_an_index_of_several_levels_has_tuples() -> None:
    index = pd.MultiIndex.from_tuples([(1, "a"), (2, "b"), (1, "a")])
    f = tamis.DigestSet()
    assert f.insert(index).tolist() == [True, True, False] and (2, "b") in f


def test_nulls_of_polars_inside_of_a_struct_are_nulls() -> None:
    series = pl.Series("s", [{"a": 1, "b": None}, {"a": 2, "b": None}])
    f = tamis.DigestSet()
    assert f.insert(series).to_list() == [False, False] and f.skipped_nulls == 2
    assert f.insert(series.to_frame()).to_list() == [False, False]


def test_a_column_without_values_has_nulls() -> None:
    f = tamis.DigestSet()
    assert f.insert(pd.Series([float("nan")] * 2)).tolist() == [False, False]
    assert f.skipped_nulls == 2 and not f


def test_a_lazy_frame_names_the_way() -> None:
    for operation in (tamis.Bloom(10).insert, tamis.Bloom(10).contains):
        with pytest.raises(TypeError, match="collect"):
            operation(pl.LazyFrame({"a": [1]}))
