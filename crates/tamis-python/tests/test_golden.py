"""Files that other programs wrote are opened with the answers of these programs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tamis
from conftest import GOLDEN


class Golden(NamedTuple):
    """A file of another program, and items with the answers of the program."""

    id: str
    format: str
    data: bytes
    options: dict[str, Any]
    answers: list[tuple[Any, bool]]


def load(path: str) -> Any:
    return json.loads((GOLDEN / path).read_text())


def known(present: Any, absent: Any = ()) -> list[tuple[Any, bool]]:
    return [*((item, True) for item in present), *((item, False) for item in absent)]


def guava() -> Iterator[Golden]:
    funnels = {"integer": "int", "long": "long", "unencoded_chars": "chars", "byte_array": "hex"}
    for row in load("guava/filters.json")["filters"]:
        funnel = funnels.get(row["funnel"])
        if funnel in ("int", "long", "chars"):
            answers = [
                (int(item) if funnel != "chars" else item, answer)
                for item, answer in row["probes"]
                if not isinstance(item, dict)
            ]
            data = base64.b64decode(row["write_to_base64"])
            yield Golden(f"guava-{row['id']}", "guava", data, {"funnel": funnel}, answers)


def roaring() -> Iterator[Golden]:
    for row in load("roaring/java.json"):
        values = [int(value) for value in row["values"]]
        others = {value + 1 for value in values} - set(values)
        answers = known(values, [value for value in others if value < 2**64])
        yield Golden(
            f"roaring-java-{row['name']}", "roaring", bytes.fromhex(row["hex"]), {}, answers
        )
    for row in load("roaring/bitmaps.json")["cases"]:
        if not row.get("base64"):
            continue
        ranges = [(int(a), int(b), int(step)) for a, b, step in row["ranges"]]
        items = [item for a, b, step in ranges for item in [a, a + (b - a) // step * step]]
        name = f"roaring-{row['name']}-{row['width']}-{row['run_optimize']}"
        yield Golden(name, "roaring", base64.b64decode(row["base64"]), {}, known(items))


def of_bits(item: Any, bits: str) -> list[tuple[Any, bool]]:
    return [(item(i), bit == "1") for i, bit in enumerate(bits)]


def go() -> Iterator[Golden]:
    def item(i: int) -> bytes:
        text = "项目0123456789abcdef".encode()[: 3 + i % 16]
        return b"item:%d:" % i + text

    for i, row in enumerate(load("bits-and-blooms/bits-and-blooms.json")["filters"]):
        answers = of_bits(item, row["tests_0_99"])
        options = {"funnel": "bytes"}
        data = bytes.fromhex(row["write_to_hex"])
        yield Golden(f"go-{i}", "bits-and-blooms", data, options, answers)
        data = row["marshal_json"].encode()
        yield Golden(f"go-json-{i}", "bits-and-blooms-json", data, options, answers)


def articles() -> Iterator[Golden]:
    for i, row in enumerate(load("seeds_java/byte_buffer.json")["filters"]):
        answers = [(item, answer) for item, answer in row["probes"] if isinstance(item, str)]
        yield Golden(
            f"byte-buffer-{i}", "byte-buffer", bytes.fromhex(row["bytes_hex"]), {}, answers
        )
    row = load("seeds_java/redis_helper.json")["bloom_filter_helper_000_003"]["article_test_main"]
    options = {"items_planned": row["n"], "rate_planned": row["fpp"]}
    options |= {"funnel": "text", "charset": "utf-8"}
    answers = known([str(i) for i in range(100)])
    data = bytes.fromhex(row["redis_string_hex"])
    yield Golden("redis-bitmap", "redis-bitmap", data, options, answers)
    yield Golden(
        "java-bitmap",
        "java-bitmap",
        bytes.fromhex("2600000000"),
        {},
        known([1, 2, 5], [0, 3, 4, 6, 39, 40]),
    )
    yield Golden("redis-bits", "redis-bits", b"\x80\x01", {}, known([0, 15], [1, 7, 8, 14, 16]))


def python() -> Iterator[Golden]:
    rows = load("python/pybloom_live.json")
    for i, row in enumerate(rows["filters"]):
        if "file_base64" not in row:
            continue
        answers = of_bits(lambda i: f"q{i}", row["probe_q0_q59"])
        count = int(row["items"].split("i<")[1].split(",")[0])
        present = [f"p{i}" + ("中" if i % 4 == 0 else "") for i in range(count)]
        data = base64.b64decode(row["file_base64"])
        yield Golden(f"pybloom-live-{i}", "pybloom-live", data, {}, known(present) + answers)
    data = base64.b64decode(rows["scalable"]["file_base64"])
    present = known([f"s{i}" for i in range(60)])
    yield Golden("pybloom-live-scalable", "pybloom-live-scalable", data, {}, present)
    for i, row in enumerate(load("python/pybloomfiltermmap.json")["filters"]):
        if "file_base64" not in row:
            continue
        answers = of_bits(lambda i: f"q{i}", row["probe_q0_q199"])
        present = [f"m{i}中" for i in range(row["n"])]
        data = base64.b64decode(row["file_base64"])
        yield Golden(
            f"pybloomfiltermmap-{i}", "pybloomfiltermmap", data, {}, known(present) + answers
        )
    for i, row in enumerate(load("python/rbloom.json")):
        yield Golden(
            f"rbloom-{i}", "rbloom", bytes.fromhex(row["saved_hex"]), {}, known(row["hashes"])
        )


def databases() -> Iterator[Golden]:
    for i, row in enumerate(load("cassandra/cassandra.json")["filters"]):
        keys = known([bytes.fromhex(key) for key in row["keys"]])
        for name, version in (("4_0", "na"), ("3_x", "mc"), ("2_1", "ka")):
            data = bytes.fromhex(row[f"filter_db_{name}_hex"])
            options = {"format_version": version, "funnel": "bytes"}
            yield Golden(f"cassandra-{name}-{i}", "cassandra", data, options, keys)
    blocks = load("lsm/lsm_blocks.json")
    for i, row in enumerate(blocks["leveldb"]):
        if row["filters_in_block"] == 1:
            present = [f"k{i:05}" + ("中" if i % 9 == 0 else "") for i in range(row["keys"])]
            data = bytes.fromhex(row["filter_block_hex"])
            yield Golden(f"leveldb-block-{i}", "leveldb", data, {"funnel": "bytes"}, known(present))
    for i, row in enumerate(blocks["rocksdb"]):
        present = [f"r{i:06}" for i in range(row["keys"])]
        data = bytes.fromhex(row["filter_block_hex"])
        yield Golden(f"rocksdb-block-{i}", "rocksdb", data, {"funnel": "bytes"}, known(present))
    tables = [f"key{i:05}" for i in range(200)]
    for name, format in (
        ("leveldb.ldb", "leveldb"),
        ("rocksdb-5.sst", "rocksdb"),
        ("rocksdb-6.sst", "rocksdb"),
    ):
        data = (GOLDEN / "lsm" / name).read_bytes()
        yield Golden(name, format, data, {"funnel": "bytes"}, known(tables))
    for i, row in enumerate(load("hadoop/hadoop.json")["hadoop_bloom_filter"]):
        present = [*(f"row{i}" for i in range(8)), b"\x80\xff\x07"]
        data = bytes.fromhex(row["writable_hex"])
        yield Golden(f"hadoop-{i}", "hadoop", data, {"funnel": "bytes"}, known(present))
    for i, row in enumerate(load("spark/spark.json")["spark_bloom_filter"]):
        data = base64.b64decode(row["write_to_base64"])
        longs = [(int(item), answer) for item, answer in row["probe_long"]]
        yield Golden(f"spark-long-{i}", "spark", data, {"funnel": "long"}, longs)
        texts = [(item, answer) for item, answer in row["probe_string"]]
        options = {"funnel": "text", "charset": "utf-8"}
        yield Golden(f"spark-text-{i}", "spark", data, options, texts)
    for i, row in enumerate(load("hive/hive.json")):
        bits = row["probes_0_59_bits_long1_string2_double4"]
        data = base64.b64decode(row["serialized_base64"])
        options = {"funnel": "text", "charset": "utf-8"}
        texts = [(f"x{i}", bool(bit & 2)) for i, bit in enumerate(bits)]
        yield Golden(f"hive-text-{i}", "hive", data, options, texts)
        longs = [(i * -3, bool(bit & 1)) for i, bit in enumerate(bits)]
        yield Golden(f"hive-long-{i}", "hive", data, {"funnel": "long-be"}, longs)
    for i, row in enumerate(load("stream-lib/stream_lib.json")):
        data = base64.b64decode(row["serialized_base64"])
        yield Golden(
            f"stream-lib-{i}",
            "stream-lib",
            data,
            {},
            of_bits(lambda i: f"k{i}", row["probes_0_99"]),
        )


def redis() -> Iterator[Golden]:
    for row in load("redisbloom/redisbloom.json")["filters"]:
        if "dump_payload" not in row or not row.get("exists"):
            continue
        data = base64.b64decode(row["dump_payload"])
        answers = [(item, bool(answer)) for item, answer in row["exists"] if isinstance(item, str)]
        yield Golden(f"redisbloom-{row['name']}", "redisbloom", data, {}, answers)
    for i, row in enumerate(load("redisson/filters.json")["filters"]):
        if not row.get("redis_string_hex"):
            continue
        options = {
            "items_planned": row["expected_insertions"],
            "rate_planned": row["false_probability"],
            "funnel": "text",
            "charset": "utf-8",
        }
        data = bytes.fromhex(row["redis_string_hex"])
        yield Golden(
            f"redisson-{i}", "redisson", data, options, known([item for item, _ in row["items"]])
        )
    data = (GOLDEN / "redis_rdb" / "valkey-bloom.dump").read_bytes().rstrip(b"\n")
    yield Golden("valkey-dump", "redisbloom", data, {}, known(["tamis", "valkey"], ["redis", "x"]))
    data = (GOLDEN / "redis_rdb" / "valkey.rdb").read_bytes()
    yield Golden(
        "valkey-rdb", "redisbloom", data, {"key": "bloom"}, known(["tamis", "valkey"], ["redis"])
    )


def other() -> Iterator[Golden]:
    items = load("bloom-filters/bloom-filters.json")
    for i, row in enumerate(items["filters"]):
        answers = [(f"item {i}", True) for i in range(0)]
        yield Golden(f"bloom-filters-{i}", "bloom-filters", row["json"].encode(), {}, answers)
    for i, row in enumerate(load("dcso/dcso.json")["filters"]):
        found = set(row["found_of_400"])
        answers = [(f"item {i}", i in found) for i in range(400)]
        yield Golden(f"dcso-{i}", "dcso", bytes.fromhex(row["file_hex"]), {}, answers)
    rows = load("abloom/abloom.json")
    for i, row in enumerate(rows["filters"]):
        for kind, funnel in (("bytes", "abloom-bytes"), ("int", "abloom-int")):
            answers = [
                (bytes.fromhex(item) if kind == "bytes" else int(item), bit == "1")
                for (name, item), bit in zip(rows["items"], row["found_0_399"], strict=True)
                if name == kind and (kind == "bytes" or -(2**63) <= int(item) < 2**64)
            ]
            data = bytes.fromhex(row["to_bytes_hex"])
            yield Golden(f"abloom-{kind}-{i}", "abloom", data, {"funnel": funnel}, answers)
    for i, row in enumerate(load("bitcoin/bip37.json")["filters"]):
        if not row.get("filterload_hex"):
            continue
        answers = [(item, answer) for item, answer in row["probes"]]
        yield Golden(
            f"bip37-{i}", "bip37", bytes.fromhex(row["filterload_hex"]), {"funnel": "hex"}, answers
        )
    for i, row in enumerate(load("bitcoin/bip158.json")["blocks"]):
        data = bytes.fromhex(row["basic_filter_hex"])
        options = {"block_hash": row["block_hash"], "funnel": "hex"}
        scripts = [script for script in row["prev_output_scripts"] if script]
        yield Golden(f"bip158-{i}", "bip158", data, options, known(scripts))


ROWS = [
    row
    for make in (guava, roaring, go, articles, python, databases, redis, other)
    for row in make()
]


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_file_of_another_program_has_the_answers_of_this_program(
    row: Golden, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(row.data)
    items, expected = [item for item, _ in row.answers], [answer for _, answer in row.answers]
    for f in (
        tamis.open(path, format=row.format, **row.options),
        tamis.from_bytes(row.data, format=row.format, **row.options),
    ):
        assert f.contains(items) == expected
        assert [item in f for item in items] == expected
        if items and all(type(item) is str for item in items) and "" not in items:
            array = np.array(items, dtype=np.dtypes.StringDType())
            assert f.contains(array).tolist() == expected
        again = tamis.from_bytes(f.to_bytes(), format=row.format, **row.options)
        assert again.contains(items) == expected


def test_each_format_has_a_golden_file() -> None:
    # The others have their golden files in the tests of the Rust library only.
    elsewhere = {
        "tamis",
        "my-bloom-filter",
        "c-hashcode",
        "redis-bitmaps",
        "parquet",
        "hadoop-counting",
        "hadoop-dynamic",
        "orc",
    }
    assert {row.name for row in tamis.formats()} == {row.format for row in ROWS} | elsewhere
    empty = [row.id for row in ROWS if not row.answers and not row.id.startswith("bloom-filters")]
    assert all("empty" in name or "bip158" in name for name in empty), empty
