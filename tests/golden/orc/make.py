"""Writes whole ORC files with pyarrow 26.0.1, and `types.json`: the values of each column as Python prints them.

    pip install pyarrow==26.0.1 tzdata && python make.py
"""

import datetime
import decimal
import json
import os

import pyarrow as pa
import pyarrow.orc as orc

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = 100


def write(name, table, stripe_rows, **options):
    """Writes `table` with a filter for each column and four row groups."""
    path = os.path.join(HERE, name)
    options = {"row_index_stride": ROWS // 4, "bloom_filter_fpp": 0.01, **options}
    # The numbers of columns include the members of structs, lists and maps.
    options.setdefault("bloom_filter_columns", range(0, 100))
    with orc.ORCWriter(path, stripe_size=1, batch_size=stripe_rows, **options) as writer:
        for start in range(0, table.num_rows, stripe_rows):
            writer.write(table.slice(start, stripe_rows))
    print(name, os.path.getsize(path), orc.ORCFile(path).nstripes, "stripes")


def types():
    """Every type that pyarrow writes, in two stripes of two row groups."""
    rows = range(ROWS)
    start = datetime.datetime(1969, 12, 31)
    times = [start + datetime.timedelta(hours=i, milliseconds=i * 7) for i in rows]
    # Only times since 1970 have digits finer than a millisecond: writers round older times in different ways.
    fine = [t + datetime.timedelta(microseconds=i * 11 if t.year >= 1970 else 0) for i, t in enumerate(times)]
    columns = {
        "i8": pa.array([i * 2 - 128 for i in rows], pa.int8()),
        "i16": pa.array([i * 600 - 30_000 for i in rows], pa.int16()),
        "i32": pa.array([i * 20_000_019 - 1_000_000_000 for i in rows], pa.int32()),
        "i64": pa.array([(i - 50) * 90_000_000_000_000_003 for i in rows], pa.int64()),
        "s": pa.array([f"text é中 {i}" for i in rows], pa.string()),
        "day": pa.array([datetime.date(1960, 1, 1) + datetime.timedelta(days=i * 600) for i in rows], pa.date32()),
        "ts": pa.array(fine, pa.timestamp("us")),
        "tz": pa.array(fine, pa.timestamp("us", tz="UTC")),
        "dec": pa.array([decimal.Decimal(i * 5 - 250).scaleb(-2) for i in rows], pa.decimal128(10, 2)),
        "big": pa.array([decimal.Decimal((i - 50) * 10**30 + i).scaleb(-4) for i in rows], pa.decimal128(38, 4)),
        "f": pa.array([i * 0.1 - 5 for i in rows], pa.float32()),
        "d": pa.array([i * 0.1 - 5 for i in rows], pa.float64()),
        "bin": pa.array([f"bytes {i}".encode() for i in rows], pa.binary()),
        "a.b": pa.array([f"dot{i}" for i in rows], pa.string()),
        "a": pa.array([{"b": f"member{i}", "c": {"d": i}} for i in rows]),
        "list": pa.array([[i, -i] for i in rows], pa.list_(pa.int32())),
        "map": pa.array([[(f"k{i}", i * 3)] for i in rows], pa.map_(pa.string(), pa.int64())),
        "flag": pa.array([i % 2 == 0 for i in rows], pa.bool_()),
        "nulls": pa.array([i if i % 3 == 0 else None for i in rows], pa.int32()),
    }
    table = pa.table(columns)
    write("types.orc", table, ROWS // 2, compression="uncompressed")
    # Not `i8`: its filters lack the first values of each batch of rows.
    texts = {name: [str(value) for value in table[name].to_pylist()] for name in list(columns)[1:13]}
    texts["bin"] = [f"bytes {i}" for i in rows]
    texts['"a.b"'] = table["a.b"].to_pylist()
    texts["a.b"] = [f"member{i}" for i in rows]
    texts["a.c.d"] = [str(i) for i in rows]
    texts["list._elem"] = [str(-i) for i in rows]
    texts["map._key"] = [f"k{i}" for i in rows]
    texts["map._value"] = [str(i * 3) for i in rows]
    texts["nulls"] = [str(i) for i in rows if i % 3 == 0]
    with open(os.path.join(HERE, "types.json"), "w", encoding="utf-8") as file:
        lines = [f"{json.dumps(name)}: {json.dumps(values, ensure_ascii=False)}" for name, values in texts.items()]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


def compressions():
    """A file for each compression. The filters of `word` are sparse, so that their chunks are compressed."""
    words = [f"word {i % 5} of group {i // 50}" for i in range(ROWS)]
    table = pa.table({"word": words, "id": pa.array(range(ROWS), pa.int64()), "plain": words})
    for compression in ["zlib", "snappy", "lz4", "zstd"]:
        options = {"compression": compression, "row_index_stride": 50, "compression_block_size": 64 * 1024}
        write(f"{compression}.orc", table, ROWS, bloom_filter_columns=[1, 2], **options)
    write("none.orc", table, ROWS, bloom_filter_columns=[], compression="zlib")


types()
compressions()
