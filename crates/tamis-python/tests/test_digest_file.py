"""A `DigestFile` keeps what it acknowledged: on a full disk, after a fork, and after `close`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tamis
from conftest import ends_well
from test_processes import FORK

# The kernel refuses to write past a limit, as a full disk does.
FULL_DISK = """
import os, resource, sys, tamis

path = sys.argv[1]
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

def limit(len_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (len_bytes, unlimited[1]))

def unlimit():
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)

def fails(action, *words):
    "Fail unless the action raises a FileError that names the file and has the words."
    try:
        action()
    except tamis.FileError as error:
        text = str(error)
        assert path in text and all(word in text for word in words), text
        assert "\\n" not in text and ".tmp" not in text, text
    else:
        raise AssertionError("no error")
"""


def on_a_full_disk(script: str, folder: Path) -> None:
    ends_well(FULL_DISK + script, str(folder / "seen.state"))


def test_items_that_a_full_disk_refused_are_neither_in_the_set_nor_in_the_file(
    tmp_path: Path,
) -> None:
    on_a_full_disk(
        """
seen = tamis.DigestFile(path)
limit(20_000)
acknowledged = []
try:
    for refused in range(100_000):
        seen.add(refused)
        acknowledged.append(refused)
except tamis.FileError as error:
    assert path in str(error), error
assert 100 < len(acknowledged) < 2_000
unlimit()
assert refused not in seen and len(seen) == len(acknowledged)
assert not any(seen.contains([refused])) and all(seen.contains(acknowledged))
for action in (
    lambda: seen.add(refused),
    lambda: seen.add(acknowledged[0]),
    lambda: seen.insert([]),
    lambda: seen.update(["another"]),
    lambda: seen.__ior__(seen.copy()),
    seen.sync,
):
    fails(action, "File too large", "open the file again")
assert refused not in seen and len(seen) == len(acknowledged)
fails(seen.close, "open the file again")
del seen
with tamis.DigestFile(path) as seen:
    assert len(seen) == len(acknowledged) and all(seen.contains(acknowledged))
    assert seen.add(refused)
""",
        tmp_path,
    )


def test_a_batch_that_does_not_fit_on_the_disk_leaves_no_item_in_the_file(tmp_path: Path) -> None:
    on_a_full_disk(
        """
seen = tamis.DigestFile(path)
seen.update(["a", "b"])
before = os.path.getsize(path)
limit(before + 1_000)
fails(lambda: seen.insert([str(n) for n in range(64)]))
assert os.path.getsize(path) == before
unlimit()
del seen
with tamis.DigestFile(path) as seen:
    assert len(seen) == 2 and seen.contains(["a", "b", "0", "63"]) == [True, True, False, False]
""",
        tmp_path,
    )


def test_after_a_failed_long_batch_the_set_and_the_file_hold_the_same_items(tmp_path: Path) -> None:
    on_a_full_disk(
        """
import numpy as np
for name, batch in (("list", [str(n) for n in range(9_000)]), ("array", np.arange(9_000))):
    path = sys.argv[1] + name
    seen = tamis.DigestFile(path)
    limit(70_000)
    fails(lambda: seen.insert(batch))
    unlimit()
    present, length = list(seen.contains(batch)), len(seen)
    assert 3_000 < length < 5_000 and present == [i < length for i in range(9_000)]
    del seen
    with tamis.DigestFile(path) as seen:
        assert len(seen) == length and list(seen.contains(batch)) == present
""",
        tmp_path,
    )


def test_a_file_can_be_read_on_a_full_disk(tmp_path: Path) -> None:
    on_a_full_disk(
        """
with tamis.DigestFile(path) as seen:
    seen.update(range(100))
# The process is killed before it syncs the last items.
child = os.fork()
if child == 0:
    seen = tamis.DigestFile(path)
    seen.update(range(100, 200))
    os.kill(os.getpid(), 9)
os.waitpid(child, 0)
before = open(path, "rb").read()
for space in (0, 3, 20, 50):
    limit(len(before) + space)
    seen = tamis.DigestFile(path)
    assert len(seen) == 200 and all(seen.contains(range(200)))
    assert open(path, "rb").read() == before
    fails(lambda: seen.update(range(200, 300)), "File too large")
    assert len(seen) == 200
    fails(seen.close)
    unlimit()
    # The file holds the same blocks, and perhaps a part of the block that did not fit.
    assert open(path, "rb").read().startswith(before)
with tamis.DigestFile(path) as seen:
    assert len(seen) == 200 and all(seen.contains(range(200)))
""",
        tmp_path,
    )


def test_a_full_disk_leaves_no_new_file(tmp_path: Path) -> None:
    on_a_full_disk(
        """
limit(10)
fails(lambda: tamis.DigestFile(path), "File too large")
assert os.listdir(os.path.dirname(path)) == []
""",
        tmp_path,
    )


def test_a_close_that_failed_fails_again(tmp_path: Path) -> None:
    on_a_full_disk(
        """
seen = tamis.DigestFile(path)
seen.update(range(10))
limit(os.path.getsize(path) + 3)
fails(seen.close, "File too large")
unlimit()
for action in (seen.close, seen.sync, lambda: seen.add(11), lambda: seen.update([])):
    fails(action, "open the file again")
assert all(seen.contains(range(10))) and 11 not in seen
# The file is closed.
with tamis.DigestFile(path) as seen:
    assert len(seen) == 10
""",
        tmp_path,
    )


def test_a_closed_file_refuses_also_empty_batches(tmp_path: Path) -> None:
    seen = tamis.DigestFile(tmp_path / "seen.state", key=b"k" * 16)
    seen.update([1, 2])
    seen.close()
    seen.close()
    empty = np.array([], dtype=np.int64)
    for action in (
        seen.sync,
        lambda: seen.update([]),
        lambda: seen.update(iter(())),
        lambda: seen.update(empty),
        lambda: seen.insert([]),
        lambda: seen.insert(empty),
        lambda: seen.contains([]),
        lambda: seen.contains(empty),
        lambda: seen.__ior__(tamis.DigestSet(key=b"k" * 16)),
        lambda: len(seen),
        lambda: 1 in seen,
    ):
        with pytest.raises(tamis.ClosedError):
            action()


def test_an_open_file_takes_empty_batches(tmp_path: Path) -> None:
    with tamis.DigestFile(tmp_path / "seen.state", key=b"k" * 16) as seen:
        assert seen.insert([]) == [] and seen.contains(iter(())) == []
        assert len(seen.insert(np.array([], dtype=np.int64))) == 0
        seen.update([])
        seen |= tamis.DigestSet(key=b"k" * 16)
        assert len(seen) == 0


def test_a_batch_with_repeated_items_takes_the_space_of_its_new_items(tmp_path: Path) -> None:
    path = tmp_path / "seen.state"
    with tamis.DigestFile(path) as seen:
        seen.update(["c", "a"])
        before = path.stat().st_size
        assert seen.insert(["b", "a", "b", "d", "b"]) == [True, False, False, True, False]
        assert path.stat().st_size == before + 16 + 2 * 16
        assert len(seen) == 4


def test_a_forked_process_cannot_write_to_the_file_of_its_parent(tmp_path: Path) -> None:
    ends_well(
        FORK
        + """
path, key = sys.argv[1], b"k" * 16
seen, other = tamis.DigestFile(path, key=key), tamis.DigestSet(key=key)
seen.update(["a", "b"])
seen.sync()
other.add("c")
parent, before = os.getpid(), open(path, "rb").read()
def child():
    for action in (
        lambda: seen.add("c"),
        lambda: seen.add("a"),
        lambda: seen.insert(["c", "d"]),
        lambda: seen.insert(np.arange(9)),
        lambda: seen.update(["c"]),
        lambda: seen.update([]),
        lambda: seen.__ior__(other),
        lambda: seen.__ior__(tamis.DigestSet(key=key)),
        seen.sync,
    ):
        try:
            action()
        except tamis.FileError as error:
            text = str(error)
            assert text.startswith(path) and f"pid {parent}" in text and "open it" in text, text
        else:
            raise AssertionError("no error")
    assert seen.contains(["a", "b", "c"]) == [True, True, False] and len(seen) == 2
    assert "a" in seen and "c" not in seen and len(seen.copy()) == 2
    try:
        tamis.DigestFile(path)
    except tamis.FileError as error:
        assert "already open" in str(error), error
    else:
        raise AssertionError("the parent has the lock")
    if closes:
        seen.close()
        seen.close()
for closes in (False, True):
    in_child(child)
    assert open(path, "rb").read() == before
# The end of a child, and a `close` in a child, keep the lock of the parent.
def third():
    try:
        tamis.DigestFile(path)
    except tamis.FileError:
        return
    raise AssertionError("the parent has the lock")
in_child(third)
seen.add("parent")
seen.close()
with tamis.DigestFile(path) as seen:
    assert len(seen) == 3 and "parent" in seen
""",
        str(tmp_path / "seen.state"),
    )


def test_a_forked_process_that_ends_normally_leaves_the_file_unchanged(tmp_path: Path) -> None:
    ends_well(
        """
import os, sys, tamis
path = sys.argv[1]
seen = tamis.DigestFile(path)
seen.add("a")
child = os.fork()
if child == 0:
    sys.exit(0)  # the interpreter drops the set
assert os.waitpid(child, 0)[1] == 0
seen.add("b")
try:
    tamis.DigestFile(path)
except tamis.FileError:
    pass
else:
    raise AssertionError("the parent has the lock")
seen.close()
with tamis.DigestFile(path) as seen:
    assert len(seen) == 2
""",
        str(tmp_path / "seen.state"),
    )


def test_a_child_that_lives_on_does_not_hold_the_lock_of_its_parent(tmp_path: Path) -> None:
    ends_well(
        """
import os, signal, sys, tamis
path = sys.argv[1]
seen = tamis.DigestFile(path)
seen.add("a")
child = os.fork()
if child == 0:
    signal.alarm(60)
    signal.pause()
try:
    seen.close()
    with tamis.DigestFile(path) as seen:
        assert seen.add("b")
    seen = tamis.DigestFile(path)
    del seen
    with tamis.DigestFile(path) as seen:
        assert len(seen) == 2
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
""",
        str(tmp_path / "seen.state"),
    )


def test_the_error_of_a_second_open_says_where_the_file_is_open(tmp_path: Path) -> None:
    path = tmp_path / "seen.state"
    with tamis.DigestFile(path), pytest.raises(tamis.FileError) as found:
        tamis.DigestFile(path)
    assert str(found.value) == (
        f"{path}: the state file is already open in this or another process; close it there first"
    )


def test_a_link_to_a_missing_file_creates_the_file(tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    link.symlink_to("folder/seen.state")
    with pytest.raises(tamis.FileError, match="No such file") as found:
        tamis.DigestFile(link)
    assert str(found.value).endswith(f"No such file or directory: '{link}'") and ".tmp" not in str(
        found.value
    )
    folder.mkdir()
    with tamis.DigestFile(link) as seen:
        seen.add("a")
    assert link.is_symlink() and (folder / "seen.state").is_file()
    assert [it.name for it in folder.iterdir()] == ["seen.state"]
    with tamis.DigestFile(link) as seen:
        assert "a" in seen
