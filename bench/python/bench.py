"""Measures the Python package beside its rivals and the Rust library, in one run.

`cargo xtask bench --filter python` installs the packages and runs this script. The contenders of a
case take turns, and a time is the best of all rounds, because other programs can only add time. A
wrong answer ends the run.
"""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import abloom
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rbloom
import tamis
from chart import chart

RATE = 0.01
CALLS = 200_000
ROUNDS = int(os.environ.get("TAMIS_BENCH_ROUNDS", "15"))
IS_QUICK = "TAMIS_BENCH_QUICK" in os.environ
FLOOR = os.environ["TAMIS_BENCH_FLOOR"]


class Row(NamedTuple):
    """A measured value, and its ratio to the value of another contender."""

    case: str
    name: str
    value: float
    unit: str
    base: str = ""
    ratio: float | None = None
    # The largest ratio, or the largest value of a row without a ratio.
    target: float | None = None

    def is_met(self) -> bool | None:
        found = self.value if self.ratio is None else self.ratio
        return None if self.target is None else found <= self.target

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}× {self.base}"
        unit = "×" if self.ratio is not None else f" {self.unit}"
        target = "" if self.target is None else f"≤ {self.target:g}{unit}"
        met = {True: "✓", False: "✗", None: ""}[self.is_met()]
        value = f"{self.value:.{1 if self.value < 1000 else 0}f} {self.unit}"
        return self.case, self.name, value, ratio, target, met


rows: list[Row] = []


def report(*row: Any, **more: Any) -> None:
    rows.append(Row(*row, **more))
    print("  ".join(rows[-1].cells()), flush=True)


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def best_of(rounds: int, runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the best time of each run, in seconds. The runs take turns."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best.get(name, 1e9), seconds(run))
    return best


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


def count(filter: Any, items: list[Any]) -> int:
    return sum(item in filter for item in items)


def single_calls() -> None:
    makers: dict[str, Callable[[], Any]] = {
        "rbloom": lambda: rbloom.Bloom(1_000_000, RATE),
        "abloom": lambda: abloom.BloomFilter(1_000_000, RATE),
        "abloom serializable": lambda: abloom.BloomFilter(1_000_000, RATE, serializable=True),
        "tamis": lambda: tamis.Bloom(1_000_000, RATE),
        "tamis SharedBloom": lambda: tamis.SharedBloom(1_000_000, RATE),
    }
    numbers = list(range(CALLS)), list(range(10 * CALLS, 11 * CALLS))
    texts = [[f"https://example.org/products/{i:014d}" for i in part] for part in numbers]
    for kind, (present, absent) in (("int", numbers), ("43-byte str", texts)):
        best: dict[tuple[str, str], float] = {}

        def measure(operation: str, name: str, run: Callable[[], object]) -> None:
            took = seconds(run) / CALLS * 1e9
            best[operation, name] = min(best.get((operation, name), 1e9), took)

        for _ in range(ROUNDS):
            for name, make in makers.items():
                filter = make()
                measure("add", name, lambda: add(filter, present))
                measure("hit", name, lambda: test(filter, present))
                measure("miss", name, lambda: test(filter, absent))
                filter = make()
                measure("update(list)", name, lambda: filter.update(present))
                assert count(filter, present[:1000]) == 1000, name
        for operation in ("add", "hit", "miss", "update(list)"):
            times = {name: best[operation, name] for name in makers}
            base, target = "abloom serializable", 1.0
            if operation == "update(list)":
                base, target = min(list(makers)[:3], key=times.__getitem__), 0.7
            for name, took in times.items():
                ratio = took / times[base] if name.startswith("tamis") else None
                wanted = target if name == "tamis" else None
                report(f"{operation}, {kind}", name, took, "ns", base, ratio, wanted)


# Arrays


def rust(integers: int, urls: int) -> dict[str, float]:
    """Return the time of an item of each batch in Rust, in nanoseconds."""
    command = [FLOOR, str(integers), str(urls)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: float(took) for name, took in (line.split("\t") for line in lines.splitlines())}


def beside_rust(
    integers: int, urls: int, rounds: int, runs: dict[str, Callable[[], object]]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the best times of the runs and of Rust, in nanoseconds an item. Both take turns."""
    items = urls or integers
    floor: dict[str, float] = {}
    best: dict[str, float] = {}
    for _ in range(3):
        for name, took in rust(integers, urls).items():
            floor[name] = min(floor.get(name, 1e9), took)
        for name, took in best_of(rounds, runs).items():
            best[name] = min(best.get(name, 1e9), took / items * 1e9)
    return best, floor


def rivals(items: list[Any], absent: list[Any], rounds: int) -> dict[str, float]:
    """Return the time of the faster rival's loop, in nanoseconds an item."""
    best: dict[str, float] = {}
    for make in (abloom.BloomFilter, rbloom.Bloom):
        filter = make(len(items), RATE)
        add(filter, items)
        assert count(filter, items[:1000]) == 1000
        runs = {
            "insert": lambda make=make: add(make(len(items), RATE), items),
            "hit": lambda filter=filter: test(filter, items),
            "miss": lambda filter=filter: test(filter, absent),
        }
        for name, took in best_of(rounds, runs).items():
            best[name] = min(best.get(name, 1e9), took / len(items) * 1e9)
    return best


def integers(items: int) -> None:
    present = np.arange(items, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    absent = present ^ np.uint64(1 << 63)
    case = f"numpy uint64, {items // 1_000_000} M"
    seen = tamis.Bloom(items, RATE)
    seen.update(present)
    assert seen.contains(present).all()
    rate = seen.contains(absent).mean()
    runs: dict[str, Callable[[], object]] = {
        "insert": lambda: tamis.Bloom(items, RATE).insert(present),
        "hit": lambda: seen.contains(present),
        "miss": lambda: seen.contains(absent),
    }
    is_small = items <= 1_000_000
    best, floor = beside_rust(items, 0, 40 if is_small else 2, runs)
    loop = rivals(present.tolist(), absent.tolist(), 3 if is_small else 1)
    for name, took in best.items():
        shown = f"{case}, {name}"
        report(shown, "Rust batch", floor[name], "ns")
        report(shown, "tamis", took, "ns", "Rust batch", took / floor[name], 1.2)
        target = {"insert": 1 / 5, "hit": 1 / 7}.get(name)
        report(shown, "faster rival's loop", loop[name], "ns")
        base = "the rival's loop"
        report(shown, "tamis", took, "ns", base, took / loop[name], target and round(target, 3))
    report(f"{case}, false positives at capacity", "tamis", rate * 100, "%")


def strings(items: int) -> None:
    values = [url(i) for i in range(items)]
    array = pa.array(values)
    case = f"Arrow strings of 61 bytes, {items // 1_000_000} M"
    seen = tamis.Bloom(items, RATE)
    seen.update(array)
    assert seen.contains(array).true_count == items
    runs: dict[str, Callable[[], object]] = {
        "insert": lambda: tamis.Bloom(items, RATE).insert(array),
        "hit": lambda: seen.contains(array),
    }
    best, floor = beside_rust(1_000_000, items, 3, runs)
    loop = rivals(values, values, 1)
    for name, took in best.items():
        base = floor[f"url {name}"]
        shown = f"{case}, {name}"
        report(shown, "Rust batch", base, "ns")
        report(shown, "tamis", took, "ns", "Rust batch", took / base, 1.25)
        report(shown, "faster rival's loop", loop[name], "ns")
        report(shown, "tamis", took, "ns", "the rival's loop", took / loop[name], 0.25)


def threads(items: int) -> None:
    present = np.arange(items, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    seen = tamis.SharedBloom(items, RATE)
    seen.update(present)
    assert seen.contains(present, threads=2).all()
    runs: dict[str, Callable[[], object]] = {
        "hit": lambda: seen.contains(present),
        "hit, 2 threads": lambda: seen.contains(present, threads=2),
        "insert, 2 threads": lambda: tamis.SharedBloom(items, RATE).insert(present, threads=2),
    }
    best, floor = beside_rust(items, 0, 3, runs)
    case = f"shared filter, {items // 1_000_000} M"
    one, two = best["hit"], best["hit, 2 threads"]
    report(f"{case}, hit", "1 thread", one, "ns")
    report(f"{case}, hit", "2 threads", two, "ns", "1 thread", two / one, round(1 / 1.8, 2))
    both, base = best["insert, 2 threads"], floor["shared insert, 2 threads"]
    report(f"{case}, insert", "2 threads in Rust", base, "ns")
    report(f"{case}, insert", "2 threads", both, "ns", "Rust", both / base)


def pairs(items: int) -> None:
    import polars as pl

    table = pl.DataFrame(
        {"user": [f"user-{i % 50_000}" for i in range(items)], "day": np.arange(items) % 365}
    )
    kept: dict[str, int] = {}

    def run(name: str, frame: Callable[[], Any]) -> Callable[[], object]:
        return lambda: kept.update({name: len(frame())})

    key = ["user", "day"]
    best = best_of(
        5,
        {
            "polars": run("polars", lambda: table.unique(key, maintain_order=True)),
            "tamis": run("tamis", lambda: next(tamis.DigestSet().dedup(table, key=key))),
        },
    )
    assert kept["polars"] == kept["tamis"]
    case = f"drop repeats of {items // 1_000_000} M rows by two columns"
    for name, took in best.items():
        ratio = took / best["polars"] if name == "tamis" else None
        report(case, name, took * 1000, "ms", "polars", ratio)


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


def programs(items: int, rounds: int = 2) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "urls.parquet"
        schema = pa.schema([("url", pa.string())])
        with pq.ParquetWriter(source, schema) as writer:
            for start in range(0, items, 1_000_000):
                # Half of the rows repeat an earlier row.
                part = [url(i * 7919 % (items // 2)) for i in range(start, start + 1_000_000)]
                writer.write_batch(pa.record_batch([pa.array(part)], schema=schema))
        best: dict[str, tuple[float, float]] = {}
        for _ in range(rounds):
            for name, code in PROGRAMS.items():
                took, memory = program(code, source, folder / f"{name}.parquet", items)
                before = best.get(name, (1e9, 1e9))
                best[name] = min(before[0], took), min(before[1], memory)
    case = f"drop repeats of {items // 1_000_000} M URLs from Parquet"
    for i, (what, unit, target) in enumerate((("time", "s", 0.7), ("memory", "MiB", 0.2))):
        for name, values in best.items():
            ratio = None if name == "polars" else values[i] / best["polars"][i]
            wanted = target if name.startswith("tamis") else None
            report(f"{case}, {what}", name, values[i], unit, "polars", ratio, wanted)


def program(code: str, source: Path, target: Path, items: int) -> tuple[float, float]:
    """Return the time of a program in seconds, and its largest memory in MiB."""
    text = f"source, target = {str(source)!r}, {str(target)!r}\n{code}\n"
    # The peak of `getrusage` includes the process before `exec`.
    text += "print(next(x for x in open('/proc/self/status') if x.startswith('VmHWM')))\n"
    command = [sys.executable, "-c", text]
    start = time.perf_counter()
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    took = time.perf_counter() - start
    kept = pq.read_metadata(target).num_rows
    assert abs(kept - items // 2) <= items * 1e-5, (code, kept)
    return took, int(ended.stdout.split()[-2]) / 1024


def imports() -> None:
    def start(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    best = best_of(15, {"import": lambda: start("import tamis"), "nothing": lambda: start("pass")})
    took = (best["import"] - best["nothing"]) * 1000
    report("import tamis", "tamis", took, "ms", target=20.0)


# The page


def machine() -> str:
    cpu = Path("/proc/cpuinfo").read_text()
    fields = dict(line.split("\t: ", 1) for line in cpu.splitlines() if "\t: " in line)
    fields |= {name.strip(): value for name, value in fields.items()}
    name = f"{fields['model name']}, family {fields['cpu family']}, model {fields['model']}"
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}"


def page() -> str:
    packages = ("rbloom", "abloom", "polars", "duckdb", "pyarrow", "numpy")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    header = ("case", "contender", "best", "ratio", "target", "")
    table = [header, *(row.cells() for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    right = (False, False, True, True, True, False)

    def line(cells: tuple[str, ...]) -> str:
        aligned = zip(cells, widths, right, strict=True)
        return (
            "| "
            + " | ".join(
                cell.rjust(width) if is_right else cell.ljust(width)
                for cell, width, is_right in aligned
            )
            + " |"
        )

    rule = (
        "| "
        + " | ".join(
            "-" * (width - 1) + ":" if is_right else "-" * max(width, 1)
            for width, is_right in zip(widths, right, strict=True)
        )
        + " |"
    )
    return f"""# Measured: the Python package

After reading this page you know what the calls, the batches and the jobs of the package `tamis` cost beside other Python
packages and beside the Rust library.

Made by `cargo xtask bench --filter python`, in one run in which the contenders took turns. A time is the best of all
rounds. A ratio compares two contenders of one run: compare the ratios, not the times.

* Machine: {machine()}
* Rivals: {versions}

![Times beside other packages](python.svg)

*Rust batch* is the same batch in a Rust program. *The rival's loop* is a loop of single calls over a list, by the faster
of abloom and rbloom; the conversion of the array to a list is not counted. abloom keeps the hash that Python stores
in a `str`; *abloom serializable*, whose filters can be saved, computes its own hash, as Tamis does.

{line(header)}
{rule}
{chr(10).join(line(row) for row in table[1:])}
"""


def main() -> None:
    gc.disable()
    imports()
    single_calls()
    integers(1_000_000)
    pairs(1_000_000)
    threads(10_000_000)
    strings(1_000_000 if IS_QUICK else 10_000_000)
    if not IS_QUICK:
        integers(100_000_000)
    programs(2_000_000 if IS_QUICK else 20_000_000)
    missed = [row for row in rows if row.is_met() is False]
    print(f"{len(missed)} of {sum(row.target is not None for row in rows)} targets are missed")
    if out := os.environ.get("TAMIS_BENCH_OUT"):
        folder = Path(out, "python")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "README.md").write_text(page())
        (folder / "python.svg").write_text(chart(rows))


if __name__ == "__main__":
    main()
