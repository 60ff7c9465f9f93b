"""Programs that mypy --strict and pyright accept. `test_typing.py` runs both."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import tamis

bloom = tamis.Bloom(1_000)
assert_type(bloom, tamis.Bloom)
assert_type(tamis.Bloom(1_000, 0.01, kind="classic", key=bytes(16)), tamis.Bloom)
assert_type(tamis.Growing(), tamis.Growing)
assert_type(tamis.Window(1_000, seconds=5, slices=2, refresh=True, clock=False), tamis.Window)
assert_type(tamis.DigestSet(bits=64, items=5), tamis.DigestSet)
assert_type(tamis.Cuckoo(10, bucket=4, seed=1), tamis.Cuckoo)

assert_type(bloom.add("a"), bool)
assert_type("a" in bloom, bool)
assert_type(bloom.copy(), tamis.Bloom)
assert_type(bloom | tamis.SharedBloom(1_000), tamis.Bloom)
bloom |= tamis.Bloom(1_000)
assert_type(bloom, tamis.Bloom)
assert_type(bool(bloom), bool)
assert_type(bloom == bloom.copy(), bool)
assert_type(len(tamis.IntSet()), int)
bloom.update(f"user:{i}" for i in range(3))
bloom.update(["a", 1, b"x", (1, "a"), uuid.UUID(int=1), bytearray(b"a"), memoryview(b"a")])
answers: list[bool] = bloom.contains(["a"], threads=2)
new: list[bool] = bloom.insert(["a"], progress=lambda done, total: print(done, total))

batches: Iterator[list[str]] = bloom.dedup([["a", "b"]])
assert_type(list(bloom.dedup([["a"], ["b"]], lambda batch: batch)), list[list[str]])
assert_type(bloom.capacity, int | None)
assert_type(bloom.rate, float | None)
assert_type(bloom.size_bytes, int)
assert_type(bloom.estimate_items(), float)
assert_type(bloom.is_saturated, bool)
assert_type(bloom.skipped_nulls, int)
assert_type(bloom.info(), dict[str, Any])
assert_type(bloom.to_bytes(), bytes)
assert_type(bloom.to_bytes("guava", items_planned=5), bytes)
bloom.save(Path("f.tamis"))
assert_type(tamis.Bloom.load("f.tamis"), tamis.Bloom)
assert_type(tamis.SharedBloom.load(Path("f.tamis")), tamis.SharedBloom)

with tamis.open("f.tamis", verify=False) as opened:
    assert_type(opened, tamis.Filter)
with tamis.Bloom(5) as created:
    assert_type(created, tamis.Bloom)
assert_type(tamis.from_bytes(b""), tamis.Filter)
assert_type(tamis.create("guava", items_planned=5, rate_planned=0.1), tamis.Filter)
tamis.convert("a.guava", Path("b.tamis"), to="tamis", funnel="long")
for row in tamis.formats():
    assert_type(row.name, str)
    assert_type(row.extensions, tuple[str, ...])
plans = tamis.plan(1_000, 0.01)
assert_type(plans, tamis.Plans)
assert_type(plans[0], tamis.Plan)
assert_type(plans[0].size_bytes, int)
assert_type(plans.why, str)

counting = tamis.Counting(1_000)
assert_type(counting.add_copy("a"), bool)
assert_type(counting.count("a"), int)
assert_type(counting.discard((1, "a")), bool)
counting.remove("a")
ids = tamis.IntSet()
ids.remove(5)
tamis.Window(5, seconds=1).advance(5.5)


class Own(tamis.Bloom):
    """A subclass keeps its type."""


assert_type(Own(5), Own)
assert_type(Own(5).copy(), Own)
assert_type(Own(5) | Own(5), Own)
assert_type(Own.load("f"), Own)

try:
    bloom.clear()
except (tamis.ReadOnlyError, tamis.ClosedError, tamis.FullError) as error:
    base: tamis.TamisError = error
