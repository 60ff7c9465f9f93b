"""Operations without memory raise MemoryError, and change nothing."""

from __future__ import annotations

import sys

import pytest
from conftest import ends_well

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory")

# Creates a filter of 64 MB, and then allows 32 MB more.
START = """
import os, pickle, resource, sys, tempfile
import tamis
path = os.path.join(tempfile.mkdtemp(), "f.tamis")
make = {
    "bloom": tamis.Bloom,
    "shared": tamis.SharedBloom,
    "counting": tamis.Counting,
    "guava": lambda items: tamis.create("guava", items=items, rate=0.01, funnel="chars"),
}[sys.argv[1]]
f = make(12_500_000 if sys.argv[1] == "counting" else 50_000_000)
f.add("a")
f.save(path, *(["guava"] if sys.argv[1] == "guava" else []))
with open(path, "rb") as file:
    data = file.read()
mapped = tamis.open(path) if sys.argv[1] != "guava" else f
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20), used + (32 << 20)))
for name, operation in {
    "copy": lambda: f.copy(),
    "copy of a mapped file": lambda: mapped.copy(),
    "|": lambda: f | f,
    "to_bytes": lambda: f.to_bytes(),
    "to_bytes of a mapped file": lambda: mapped.to_bytes(),
    "pickle": lambda: pickle.dumps(f),
    "open": lambda: tamis.open(path, in_memory=True),
    "from_bytes": lambda: tamis.from_bytes(data),
    "create": lambda: make(50_000_000),
}.items():
    try:
        operation()
    except MemoryError:
        continue
    raise SystemExit(f"{name}: no MemoryError")
assert "a" in f and f.add("b") and "b" in f
"""


@pytest.mark.parametrize("kind", ["bloom", "shared", "counting", "guava"])
def test_an_operation_without_memory_raises_memory_error(kind: str) -> None:
    ends_well(START, kind)


def test_a_batch_goes_on_if_the_system_starts_no_thread() -> None:
    ends_well(
        """
import os, resource, threading
import numpy as np
import tamis
f = tamis.SharedBloom(1_000_000)
items = np.arange(500_000)
# The limit does not apply to root.
if os.geteuid() == 0:
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    threading.Thread(target=print).start()
except RuntimeError:
    pass
else:
    raise SystemExit("a thread started")
assert f.insert(items, threads=64).sum() > 490_000
assert f.contains(items, threads=3).all()
"""
    )


def test_exact_sets_and_answers_without_memory_raise_memory_error() -> None:
    ends_well(
        """
import pickle, resource
import numpy as np
import tamis
f = tamis.DigestSet()
f.update(np.arange(3_000_000))
answers = tamis.Booleans(600_000_000)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), used + (24 << 20)))
for name, operation in {
    "copy": lambda: f.copy(),
    "|": lambda: f | f,
    "pickle": lambda: pickle.dumps(f),
    "_to_bytes": lambda: answers._to_bytes(),
    "_join": lambda: tamis.Booleans._join([answers, answers]),
    "__arrow_c_array__": lambda: answers.__arrow_c_array__(),
}.items():
    try:
        operation()
    except MemoryError:
        continue
    raise SystemExit(f"{name}: no MemoryError")
assert 5 in f
"""
    )
