"""Measures the Python package beside its rivals and the Rust library, in one run.

`cargo xtask bench --filter python` installs the packages and runs this script. The contenders of a
case take turns, and a time is the best of all rounds, because other programs can only add time.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import abloom
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rbloom
import tamis

RATE = 0.01
CALLS = 200_000
ROUNDS = int(os.environ.get("TAMIS_BENCH_ROUNDS", "15"))
BIG = os.environ.get("TAMIS_BENCH_QUICK") is None

rows: list[tuple[str, str, float, float | None, str, str]] = []


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def report(
    case: str, name: str, value: float, unit: str, base: str, ratio: float | None, target: str
) -> None:
    shown = "" if ratio is None else f"{ratio:.2f}× {base}"
    rows.append((case, name, value, ratio, unit, target))
    print(f"| {case} | {name} | {value:.1f} {unit} | {shown} | {target} |", flush=True)


def url(i: int) -> str:
    return f"https://www.example.org/shop/products/item-{i:016}/x"


# Single calls


def add(filter: Any, items: list[Any]) -> None:
    add = filter.add
    for item in items:
        add(item)


def test(filter: Any, items: list[Any]) -> None:
    for item in items:
        item in filter


def update(filter: Any, items: list[Any]) -> None:
    filter.update(items)


def single_calls() -> None:
    makers: dict[str, Callable[[], Any]] = {
        "rbloom": lambda: rbloom.Bloom(1_000_000, RATE),
        "abloom": lambda: abloom.BloomFilter(1_000_000, RATE),
        "abloom serializable": lambda: abloom.BloomFilter(1_000_000, RATE, serializable=True),
        "tamis": lambda: tamis.Bloom(1_000_000, RATE),
        "tamis SharedBloom": lambda: tamis.SharedBloom(1_000_000, RATE),
    }
    ints = list(range(CALLS)), list(range(10 * CALLS, 11 * CALLS))
    text = [[f"https://example.org/products/{i:014d}" for i in part] for part in ints]
    best: dict[tuple[str, str, str], float] = {}
    for _ in range(ROUNDS):
        for name, make in makers.items():
            for kind, (present, absent) in (("int", ints), ("43-byte str", text)):
                for operation, run, items in (
                    ("add", add, present),
                    ("hit", test, present),
                    ("miss", test, absent),
                ):
                    if operation == "add":
                        filter = make()
                    took = seconds(lambda: run(filter, items)) / CALLS * 1e9
                    key = (kind, operation, name)
                    best[key] = min(best.get(key, 1e9), took)
                filter = make()
                took = seconds(lambda: update(filter, present)) / CALLS * 1e9
                key = (kind, "update(list)", name)
                best[key] = min(best.get(key, 1e9), took)
    for kind in ("int", "43-byte str"):
        for operation in ("add", "hit", "miss", "update(list)"):
            times = {name: best[kind, operation, name] for name in makers}
            base = times["abloom serializable"]
            base_name, target = "abloom serializable", "≤ 1.00×"
            if operation == "update(list)":
                base_name = min(("rbloom", "abloom", "abloom serializable"), key=times.__getitem__)
                base = times[base_name]
                target = "≤ 0.70×" if kind != "int" else ""
            for name, took in times.items():
                is_ours = name == "tamis"
                report(
                    f"{operation}, {kind}",
                    name,
                    took,
                    "ns",
                    base_name,
                    took / base if name.startswith("tamis") else None,
                    target if is_ours else "",
                )


# Arrays


def rust(integers: int, urls: int) -> dict[str, float]:
    command = [os.environ["TAMIS_BENCH_FLOOR"], str(integers), str(urls)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: float(took) for name, took in (line.split("\t") for line in lines.splitlines())}


def best_of(run: Callable[[], object], items: int, rounds: int = 5) -> float:
    return min(seconds(run) for _ in range(rounds)) / items * 1e9


def integers(items: int) -> None:
    floor = rust(items, 0)
    present = np.arange(items, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    absent = present ^ np.uint64(1 << 63)
    case = f"numpy uint64, {items // 1_000_000} M"
    seen = tamis.Bloom(items, RATE)
    insert = best_of(lambda: tamis.Bloom(items, RATE).insert(present), items)
    seen.insert(present)
    hit = best_of(lambda: seen.contains(present), items)
    miss = best_of(lambda: seen.contains(absent), items)
    for name, took in (("insert", insert), ("hit", hit), ("miss", miss)):
        report(f"{case}, {name}", "Rust batch", floor[name], "ns", "", None, "")
        ratio = took / floor[name]
        report(f"{case}, {name}", "tamis", took, "ns", "Rust batch", ratio, "≤ 1.20×")
    if items <= 1_000_000:
        values = present.tolist()
        loop = best_of(lambda: add(abloom.BloomFilter(items, RATE), values), items, 3)
        other = best_of(lambda: add(rbloom.Bloom(items, RATE), values), items, 3)
        faster = min(loop, other)
        report(
            f"{case}, insert", "faster rival's loop", faster, "ns", "tamis", faster / insert, "≥ 5×"
        )
        filter = abloom.BloomFilter(items, RATE)
        add(filter, values)
        loop = best_of(lambda: test(filter, values), items, 3)
        report(f"{case}, hit", "faster rival's loop", loop, "ns", "tamis", loop / hit, "≥ 7×")


def strings(items: int) -> None:
    floor = rust(1_000_000, items)
    values = [url(i) for i in range(items)]
    array = pa.array(values)
    case = f"Arrow strings of 61 bytes, {items // 1_000_000} M"
    insert = best_of(lambda: tamis.Bloom(items, RATE).insert(array), items)
    seen = tamis.Bloom(items, RATE)
    seen.insert(array)
    hit = best_of(lambda: seen.contains(array), items)
    loop = best_of(lambda: add(abloom.BloomFilter(items, RATE), values), items, 2)
    filter = abloom.BloomFilter(items, RATE)
    add(filter, values)
    loop_hit = best_of(lambda: test(filter, values), items, 2)
    for name, took, rival in (("insert", insert, loop), ("hit", hit, loop_hit)):
        base = floor[f"url {name}"]
        report(f"{case}, {name}", "Rust batch", base, "ns", "", None, "")
        report(f"{case}, {name}", "tamis", took, "ns", "Rust batch", took / base, "≤ 1.25×")
        report(f"{case}, {name}", "abloom's loop", rival, "ns", "tamis", rival / took, "≥ 4×")


def threads(items: int) -> None:
    present = np.arange(items, dtype=np.uint64)
    floor = rust(items, 0)
    seen = tamis.SharedBloom(items, RATE)
    one = best_of(lambda: seen.insert(present), items)
    hit = best_of(lambda: seen.contains(present), items)
    two = best_of(lambda: seen.contains(present, threads=2), items)
    case = f"shared filter, {items // 1_000_000} M"
    report(f"{case}, hit", "1 thread", hit, "ns", "", None, "")
    report(f"{case}, hit", "2 threads", two, "ns", "as fast", hit / two, "≥ 1.80×")
    new = lambda threads: tamis.SharedBloom(items, RATE).insert(present, threads=threads)
    both = best_of(lambda: new(2), items)
    base = floor["shared insert, 2 threads"]
    report(f"{case}, insert", "2 threads in Rust", base, "ns", "", None, "")
    report(f"{case}, insert", "2 threads", both, "ns", "Rust", both / base, "")
    report(f"{case}, insert again", "1 thread", one, "ns", "Rust", one / floor["shared insert"], "")


# Whole programs

PROGRAMS = {
    "polars": """
import polars as pl
pl.scan_parquet(source).unique(subset="url", maintain_order=True).collect().write_parquet(target)
""",
    "duckdb": """
import duckdb
duckdb.sql("SET threads TO 2")
duckdb.sql(f"COPY (SELECT DISTINCT ON (url) * FROM '{source}') TO '{target}' (FORMAT parquet)")
""",
    "tamis": """
import pyarrow.parquet as pq, tamis
reader = pq.ParquetFile(source)
seen = tamis.Bloom(reader.metadata.num_rows, 1e-6)
with pq.ParquetWriter(target, reader.schema_arrow) as writer:
    for batch in seen.dedup(reader.iter_batches(65536), key="url"):
        writer.write_batch(batch)
""",
    "tamis exact": """
import pyarrow.parquet as pq, tamis
reader = pq.ParquetFile(source)
seen = tamis.DigestSet(bits=64)
with pq.ParquetWriter(target, reader.schema_arrow) as writer:
    for batch in seen.dedup(reader.iter_batches(65536), key="url"):
        writer.write_batch(batch)
""",
}


def dedup(items: int) -> None:
    folder = tempfile.mkdtemp()
    source = os.path.join(folder, "urls.parquet")
    schema = pa.schema([("url", pa.string())])
    with pq.ParquetWriter(source, schema) as writer:
        for start in range(0, items, 1_000_000):
            # Half of the rows repeat an earlier row.
            part = pa.array([url(i * 7919 % (items // 2)) for i in range(start, start + 1_000_000)])
            writer.write_batch(pa.record_batch([part], schema=schema))
    measured = {}
    for name, code in PROGRAMS.items():
        target = os.path.join(folder, f"{name}.parquet")
        program = f"source, target = {source!r}, {target!r}\n{code}\n"
        # The peak of `getrusage` includes the process before `exec`.
        program += "print(next(x for x in open('/proc/self/status') if x.startswith('VmHWM')))\n"
        start = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        took = time.perf_counter() - start
        memory = int(ended.stdout.split()[-2]) / 1024
        measured[name] = took, memory
        kept = pq.read_metadata(target).num_rows
        assert abs(kept - items // 2) <= items * 1e-5, (name, kept)
    case = f"drop repeats of {items // 1_000_000} M URLs from Parquet"
    took, memory = measured["polars"]
    for name, (seconds, mib) in measured.items():
        ours = name.startswith("tamis")
        report(
            f"{case}, time", name, seconds, "s", "polars", seconds / took, "≤ 0.70×" if ours else ""
        )
        report(
            f"{case}, memory", name, mib, "MiB", "polars", mib / memory, "≤ 0.20×" if ours else ""
        )


def imports() -> None:
    def start(code: str) -> float:
        return min(
            seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))
            for _ in range(15)
        )

    took = (start("import tamis") - start("pass")) * 1000
    report("import tamis", "tamis", took, "ms", "", None, "≤ 20 ms")


def main() -> None:
    gc.disable()
    print("| case | contender | best | ratio | target |\n| --- | --- | ---: | ---: | ---: |")
    imports()
    single_calls()
    integers(1_000_000)
    threads(10_000_000)
    strings(10_000_000 if BIG else 1_000_000)
    if BIG:
        integers(100_000_000)
    dedup(20_000_000 if BIG else 2_000_000)


if __name__ == "__main__":
    main()
