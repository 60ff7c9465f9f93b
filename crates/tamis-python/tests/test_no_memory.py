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
make = {"bloom": tamis.Bloom, "shared": tamis.SharedBloom, "counting": tamis.Counting}[sys.argv[1]]
f = make(12_500_000 if sys.argv[1] == "counting" else 50_000_000)
f.add("a")
f.save(path)
with open(path, "rb") as file:
    data = file.read()
mapped = tamis.open(path)
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
    "load": lambda: make.load(path),
    "from_bytes": lambda: tamis.from_bytes(data),
    "create": lambda: make(50_000_000),
}.items():
    try:
        operation()
    except MemoryError:
        continue
    raise SystemExit(f"{name}: no MemoryError")
assert "a" in f and f.add("b") and "b" in f
f.save(path)
"""


@pytest.mark.parametrize("kind", ["bloom", "shared", "counting"])
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
