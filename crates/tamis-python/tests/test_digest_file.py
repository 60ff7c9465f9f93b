"""A `DigestFile` whose disk is full keeps what it acknowledged, and can be opened again."""

from __future__ import annotations

from pathlib import Path

from conftest import ends_well

# The kernel refuses to write past the limit, as a full disk does.
SCRIPT = """
import resource, sys, tamis

path = sys.argv[1]
seen = tamis.DigestFile(path)
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, unlimited[1]))
acknowledged = []
try:
    for item in range(100_000):
        seen.add(item)
        acknowledged.append(item)
except tamis.FileError as error:
    assert path in str(error), error
else:
    raise AssertionError("the limit was not reached")
assert 100 < len(acknowledged) < 2_000
try:
    seen.add("another")
except tamis.FileError as error:
    assert "open the file again" in str(error), error
try:
    seen.close()
except tamis.FileError:
    pass
else:
    raise AssertionError("the items cannot be synced")
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
with tamis.DigestFile(path) as seen:
    assert all(seen.contains(acknowledged))
    assert seen.add("another")
"""


def test_a_file_on_a_full_disk_is_closed_and_keeps_its_items(tmp_path: Path) -> None:
    ends_well(SCRIPT, str(tmp_path / "seen.state"))
