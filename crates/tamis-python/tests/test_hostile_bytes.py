"""Damaged files and random bytes are an exception, and never a crash."""

from __future__ import annotations

import base64
import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tamis
from conftest import GOLDEN, KINDS, Kind, each_kind, ends_well, kinds

SMALL = [kind for kind in kinds(20) if kind.has_file]


def small(kind: Kind) -> bytes:
    f = kind.create()
    f.update(range(10))
    return f.to_bytes()


def use(f: Any) -> None:
    """Use every read operation of a filter."""
    try:
        f.contains([1, 2, "a", 10**6])
        f.contains(np.arange(10))
    except (ValueError, TypeError):
        # The filter of another system has items of another type.
        pass
    # The representation and the truth of a filter read its report.
    assert repr(f) and bool(f) in (True, False) and (f == f.copy()) in (True, False)


# A panic is a BaseException, so it fails the test.
DAMAGED = (tamis.FormatError, tamis.FileError, ValueError, OverflowError, MemoryError)


@each_kind(SMALL)
def test_a_file_cut_at_any_length_raises(kind: Kind, tmp_path: Path) -> None:
    data, path = small(kind), tmp_path / "cut.tamis"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        for options in ({}, {"in_memory": True}, {"format": "tamis"}):
            with pytest.raises(tamis.FormatError, match="cut.tamis"):
                tamis.open(path, **options)
        try:
            use(tamis.open(path, verify=False))
        except tamis.FormatError as error:
            assert "cut.tamis" in str(error)
        else:
            pytest.fail(f"a file of {length} of {len(data)} bytes was opened")
        with pytest.raises(tamis.FormatError):
            tamis.from_bytes(data[:length])
    with pytest.raises(tamis.FormatError):
        tamis.from_bytes(data + b"\0")


@each_kind(SMALL)
def test_a_changed_byte_raises_and_does_not_crash_without_verify(
    kind: Kind, tmp_path: Path
) -> None:
    data, path = small(kind), tmp_path / "flipped.tamis"
    # Each byte of the head, and a part of the bits.
    places = [*range(min(len(data), 260)), *range(260, len(data), 97), len(data) - 1]
    for at in places:
        for mask in (0xFF, 0x01, 0x80):
            changed = bytearray(data)
            changed[at] ^= mask
            path.write_bytes(changed)
            for options in ({}, {"in_memory": True}):
                with pytest.raises(tamis.FormatError):
                    tamis.open(path, **options)
            with pytest.raises(tamis.FormatError):
                tamis.from_bytes(bytes(changed), format="tamis")
            try:
                use(tamis.open(path, verify=False))
            except DAMAGED:
                pass


def test_random_bytes_raise_in_every_format() -> None:
    rng = random.Random(1)
    names = [row.name for row in tamis.formats()]
    for length in [0, 1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 40, 100, 4_097]:
        data = rng.randbytes(length)
        for name in [None, *names]:
            options = {"items_planned": 100, "rate_planned": 0.01} if length % 2 else {}
            try:
                use(tamis.from_bytes(data, format=name, **options))
            except DAMAGED:
                pass


def starts() -> list[tuple[str, bytes]]:
    """Return a valid file of each format that can be created."""
    options: dict[str, Any] = {"items_planned": 20, "rate_planned": 0.1}
    more = {
        "bip158": {"block_hash": "00" * 32},
        "cassandra": {"format_version": "big"},
        "rocksdb": {"format_version": "5"},
    }
    found = []
    for row in tamis.formats():
        try:
            f = tamis.create(row.name, **options, **more.get(row.name, {}))
            found.append((row.name, f.to_bytes(**options, **more.get(row.name, {}))))
        except (tamis.TamisError, ValueError):
            continue
    return found


def test_changed_bytes_of_other_formats_do_not_crash() -> None:
    rng = random.Random(2)
    files = starts()
    assert len(files) > 25
    for name, data in files:
        # The filter of one format takes 15 MiB.
        for _ in range(20 if len(data) < 100_000 else 2):
            changed = bytearray(data)
            for _ in range(rng.choice([1, 1, 2, 8])):
                if changed:
                    changed[rng.randrange(min(len(changed), 200))] = rng.choice(
                        [0, 1, 127, 255, rng.randrange(256)]
                    )
            if rng.random() < 0.3:
                changed = changed[: rng.randrange(len(changed) + 1)]
            try:
                use(
                    tamis.from_bytes(
                        bytes(changed), format=name, items_planned=20, rate_planned=0.1
                    )
                )
            except DAMAGED:
                pass


def test_a_small_file_that_claims_a_huge_size_takes_no_memory() -> None:
    ends_well(
        """
import resource, tamis
f = tamis.Bloom(20)
data = f.to_bytes()
limit = 2 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for at in range(0, len(data), 4):
    for value in (b"\\xff" * 8, b"\\xff\\xff\\xff\\x7f", b"\\0\\0\\0\\x40"):
        changed = data[:at] + value + data[at + len(value):]
        for name in (None, "guava", "redisbloom", "bits-and-blooms", "dcso", "spark", "roaring"):
            try:
                tamis.from_bytes(changed, format=name)
            except (ValueError, MemoryError, OverflowError):
                pass
""",
        seconds=60,
    )


@pytest.mark.parametrize("wrong", ["text", bytearray(b"x"), memoryview(b"x"), 5, None, [1]])
def test_only_bytes_are_decoded(wrong: Any) -> None:
    with pytest.raises((TypeError, tamis.FormatError)):
        tamis.from_bytes(wrong)


def test_damaged_pickles_raise() -> None:
    import pickle

    rng = random.Random(3)
    for kind in KINDS:
        f = kind.create()
        f.update(range(5))
        call, (cls, data, extras), _ = f.__reduce__()  # type: ignore[misc]
        assert call(cls, data, extras) == f
        for wrong in (b"", data[:-1], data[:10], b"\xff" * len(data), data + b"x", "x", None):
            with pytest.raises((ValueError, TypeError)):
                call(cls, wrong, extras)
        for wrong in (
            {"bits": 7},
            {"bits": -1},
            {"bits": "x"},
            {"format": "nope", "options": {}},
            {"options": 5},
        ):
            with pytest.raises((ValueError, TypeError, OverflowError)):
                call(cls, data, wrong)
        whole = pickle.dumps(f)
        for _ in range(50):
            changed = bytearray(whole)
            at = whole.index(data[:8]) + rng.randrange(len(data))
            changed[at] ^= 1 << rng.randrange(8)
            try:
                use(pickle.loads(bytes(changed)))
            except (ValueError, TypeError):
                pass


def test_damaged_golden_files_of_other_systems_do_not_crash() -> None:
    rng = random.Random(4)
    guava = json.loads((GOLDEN / "guava" / "filters.json").read_text())["filters"]
    files = [("guava", base64.b64decode(row["write_to_base64"])) for row in guava[:5]]
    roaring = json.loads((GOLDEN / "roaring" / "bitmaps.json").read_text())["cases"]
    files += [("roaring", base64.b64decode(row["base64"])) for row in roaring if row.get("base64")][
        :20
    ]
    for folder, name in (
        ("lsm", "leveldb"),
        ("lsm", "rocksdb"),
        ("orc", "orc"),
        ("redis_rdb", "redisbloom"),
    ):
        for path in (GOLDEN / folder).iterdir():
            if path.suffix in (".ldb", ".sst", ".orc", ".rdb", ".dump"):
                files.append((name, path.read_bytes()))
    for name, data in files:
        for _ in range(10):
            changed = bytearray(data)
            for _ in range(rng.choice([1, 3, 10])):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            if rng.random() < 0.5:
                changed = changed[: rng.randrange(len(changed))]
            try:
                use(tamis.from_bytes(bytes(changed), format=name, funnel="bytes"))
            except DAMAGED:
                pass
    assert os.path.exists(GOLDEN)
