"""Files in Tamis' own format: save, open, load, convert, and the errors of paths."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tamis
from conftest import ALL_KINDS, GOLDEN, INT_SET, KINDS, Kind, each_kind, ends_well

FILES = [kind for kind in KINDS if kind.has_file]
ITEMS = list(range(1_000))
PROBES = np.arange(-50, 5_000)


def probes(kind: Kind) -> Any:
    return np.arange(5_000) if kind is INT_SET else PROBES


@each_kind([*FILES, INT_SET])
def test_a_saved_set_is_opened_with_equal_answers(kind: Kind, tmp_path: Path) -> None:
    f = kind.create()
    f.update(ITEMS)
    path = tmp_path / f"{kind.name}.tamis"
    f.save(path)
    answers = f.contains(probes(kind)).tolist()
    assert path.read_bytes() == f.to_bytes()
    mapped = tamis.open(path)
    changeable = tamis.open(path, in_memory=True)
    decoded = tamis.from_bytes(path.read_bytes())
    for g in (mapped, changeable, decoded):
        assert g.to_bytes() == f.to_bytes()
        # The window sets its time at the first lookup.
        assert g.contains(probes(kind)).tolist() == answers
        assert [item in g for item in ITEMS] == [True] * len(ITEMS)
        name = "Bloom" if kind.name == "shared" else type(f).__name__
        assert type(g).__name__ == name
        assert g == decoded or kind.name == "window-time"
        assert g.info()["layout"] == f.info()["layout"]
    assert changeable.add(7_777) and 7_777 in changeable
    loaded = type(f).load(path)
    assert type(loaded) is type(f) and loaded.contains(probes(kind)).tolist() == answers
    assert loaded.add(7_777)
    assert tamis.open(path, verify=False).contains(probes(kind)).tolist() == answers


@each_kind([kind for kind in FILES if kind.name != "window-time"])
def test_a_mapped_filter_is_read_only_and_its_copy_changes(kind: Kind, tmp_path: Path) -> None:
    f = kind.create()
    f.update(ITEMS)
    f.save(tmp_path / "f.tamis")
    with tamis.open(tmp_path / "f.tamis") as mapped:
        assert mapped.info()["is_mapped"] is True and bool(mapped)
        changes = [
            lambda: mapped.add(-1),
            lambda: mapped.insert([-1]),
            lambda: mapped.insert(np.array([-1])),
            lambda: mapped.update([-1]),
            lambda: list(mapped.dedup([[-1]])),
            lambda: mapped.clear(),
            lambda: mapped.__ior__(f),
        ]
        if kind.counts:
            changes += [
                lambda: mapped.remove(1),  # type: ignore[attr-defined]
                lambda: mapped.discard(1),  # type: ignore[attr-defined]
                lambda: mapped.add_copy(-1),  # type: ignore[attr-defined]
            ]
            assert mapped.count(1) == 1  # type: ignore[attr-defined]
        for change in changes:
            with pytest.raises(tamis.ReadOnlyError, match="f.copy"):
                change()
        copy = mapped.copy()
        assert copy.add(-1) and -1 in copy and -1 not in mapped
        assert type(copy) is type(mapped) and not copy.info()["is_mapped"]
        if kind.merges:
            merged = mapped | mapped
            assert merged.contains(ITEMS) == [True] * 1_000


@each_kind(FILES)
def test_a_closed_filter_refuses_every_operation(kind: Kind, tmp_path: Path) -> None:
    f = kind.create()
    f.update(ITEMS)
    f.save(tmp_path / "f.tamis")
    closed: Any = tamis.open(tmp_path / "f.tamis")
    closed.close()
    closed.close()
    operations = [
        lambda: 5 in closed,
        lambda: closed.contains([5]),
        lambda: closed.contains(PROBES),
        lambda: closed.contains(PROBES.astype("U5"), threads=2),
        lambda: closed.add(5),
        lambda: closed.insert([5]),
        lambda: closed.insert(PROBES),
        lambda: closed.update([5]),
        lambda: list(closed.dedup([[5]])),
        lambda: closed.clear(),
        lambda: closed.copy(),
        lambda: closed | f,
        lambda: f | closed,
        lambda: closed.__ior__(f),
        lambda: bool(closed),
        lambda: closed.info(),
        lambda: closed.capacity,
        lambda: closed.rate,
        lambda: closed.size_bytes,
        lambda: closed.estimate_items(),
        lambda: closed.estimate_rate(),
        lambda: closed.is_saturated,
        lambda: closed.to_bytes(),
        lambda: closed.to_bytes("guava"),
        lambda: closed.save(tmp_path / "g.tamis"),
        lambda: closed.__reduce__(),
    ]
    if kind.counts:
        operations += [
            lambda: closed.remove(5),
            lambda: closed.discard(5),
            lambda: closed.count(5),
            lambda: closed.add_copy(5),
        ]
    if kind.name.startswith("window"):
        operations.append(lambda: closed.advance(5))
    for i, operation in enumerate(operations):
        with pytest.raises(tamis.ClosedError):
            operation()
            pytest.fail(f"operation {i} did not raise")
    assert not (tmp_path / "g.tamis").exists()
    assert "closed" in repr(closed) and "closed" in closed._repr_html_()
    assert closed != f and closed == closed
    with pytest.raises(ValueError):
        5 in closed


def test_a_filter_in_memory_stays_usable_after_close() -> None:
    for kind in ALL_KINDS:
        with kind.create() as f:
            f.add(1)
        assert 1 in f and f.add(2), kind.name


def test_the_mapping_of_a_replaced_file_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "f.tamis"
    f = tamis.Bloom(1_000)
    f.add("old")
    f.save(path)
    mapped = tamis.open(path)
    f.add("new")
    f.save(path)
    assert "new" not in mapped and "old" in mapped and "new" in tamis.open(path)
    mapped.save(path)
    assert "new" not in tamis.open(path)


@each_kind([kind for kind in FILES])
def test_a_file_with_a_key_is_readable_by_its_owner_only(kind: Kind, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        secret = kind.create(key=b"0123456789abcdef")
        secret.add("a")
        path = tmp_path / "secret.tamis"
        secret.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        # Neither an open file of other permissions nor a second save opens it to others.
        path.chmod(0o644)
        secret.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        mapped = tamis.open(path)
        mapped.save(tmp_path / "again.tamis")
        assert stat.S_IMODE((tmp_path / "again.tamis").stat().st_mode) == 0o600
        assert mapped.info()["is_keyed"] is True and "a" in mapped
        plain = kind.create()
        plain.save(tmp_path / "plain.tamis")
        assert stat.S_IMODE((tmp_path / "plain.tamis").stat().st_mode) == 0o644
        assert plain.info()["is_keyed"] is False
        secret.save(tmp_path / "explicit", "tamis")
        assert stat.S_IMODE((tmp_path / "explicit").stat().st_mode) == 0o600
        tamis.convert(path, tmp_path / "converted.tamis")
        assert stat.S_IMODE((tmp_path / "converted.tamis").stat().st_mode) == 0o600
    finally:
        os.umask(mask)


class Path_:
    def __init__(self, path: Any) -> None:
        self.path = path

    def __fspath__(self) -> Any:
        if isinstance(self.path, Exception):
            raise self.path
        return self.path


@pytest.mark.parametrize(
    "name", ["plain", "sp ace", "名字", "é" * 80, "new\nline", "\udcff\udc80", "😀"]
)
def test_paths_of_all_forms_are_written_and_read(name: str, tmp_path: Path) -> None:
    f = tamis.Bloom(100)
    f.add(name.encode("utf-8", "surrogateescape"))
    path = tmp_path / f"{name}.tamis"
    for form in (path, str(path), Path_(str(path))):
        f.save(form)
        with tamis.open(form) as g:
            assert g == f
        assert tamis.Bloom.load(form) == f
        path.unlink()
    assert list(tmp_path.iterdir()) == []


WRONG_PATHS: list[tuple[Any, Any, str]] = [
    ("missing.tamis", FileNotFoundError, "missing.tamis"),
    ("missing/f.tamis", FileNotFoundError, "missing/f.tamis"),
    (".", tamis.FileError, "not a regular file"),
    ("", (FileNotFoundError, tamis.FileError), ""),
    ("a\0b", (ValueError, tamis.FileError), "(?i)nul|null"),
    ("x" * 300, tamis.FileError, "x" * 300),
    ("/dev/null", tamis.FileError, "/dev/null: not a regular file"),
    ("/dev/full", tamis.FileError, "/dev/full: not a regular file"),
    ("/proc/self/mem", (tamis.FileError, tamis.FormatError, OSError), "/proc/self/mem"),
    (5, TypeError, "PathLike|path"),
    (None, TypeError, "PathLike|path"),
    (Path_(5), TypeError, "PathLike|path"),
    (Path_(ZeroDivisionError("from fspath")), ZeroDivisionError, "from fspath"),
]


@pytest.mark.parametrize(("path", "error", "match"), WRONG_PATHS, ids=range(len(WRONG_PATHS)))
def test_a_wrong_path_raises_and_is_named(
    path: Any, error: Any, match: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for operation in (tamis.open, tamis.Bloom.load, tamis.SharedBloom.load):
        for options in ({}, {"format": "tamis"}, {"format": "guava"}):
            if options and operation == tamis.SharedBloom.load:
                continue
            with pytest.raises(error, match=match or None):
                operation(path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_does_not_block_open_and_is_not_replaced(tmp_path: Path) -> None:
    out = ends_well(
        """
import os, sys, tamis
path = sys.argv[1] + "/pipe.tamis"
os.mkfifo(path)
for operation in (tamis.open, tamis.Bloom.load, tamis.SharedBloom.load):
    try:
        operation(path)
    except tamis.FileError as error:
        assert path in str(error)
        print("error")
try:
    tamis.Bloom(10).save(path)
except tamis.FileError as error:
    assert path in str(error)
    print("error")
import stat
assert stat.S_ISFIFO(os.stat(path).st_mode)
assert os.listdir(sys.argv[1]) == ["pipe.tamis"]
""",
        str(tmp_path),
        seconds=15,
    )
    assert out.split() == ["error"] * 4


@each_kind([*FILES, INT_SET])
def test_a_failed_save_keeps_the_old_file_and_names_the_path(kind: Kind, tmp_path: Path) -> None:
    f = kind.create()
    f.add(1)
    for path in (tmp_path / "missing" / "f.tamis", tmp_path, Path("/dev/full"), Path("/dev/null")):
        with pytest.raises((tamis.FileError, FileNotFoundError), match=str(path)):
            f.save(path)
    assert not os.path.isfile("/dev/full")
    with pytest.raises((ValueError, tamis.FileError), match="(?i)nul"):
        f.save("a\0b")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into every folder")
def test_a_read_only_folder_keeps_its_file(tmp_path: Path) -> None:
    f = tamis.Bloom(100)
    path = tmp_path / "f.tamis"
    f.save(path)
    before = path.read_bytes()
    f.add("a")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(OSError, match="f.tamis"):
            f.save(path)
        assert path.read_bytes() == before
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_can_neither_write_nor_read(tmp_path: Path) -> None:
    # Python and the package must be readable by the other user, so the child starts as root.
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.owner() == "root" and folder != Path("/tmp") and len(folder.parts) > 2:
            folder.chmod(folder.stat().st_mode | 0o055)
    ends_well(
        """
import os, sys, tamis
path = sys.argv[1] + "/f.tamis"
f = tamis.Bloom(100, key=bytes(16))
f.save(path)
before = open(path, "rb").read()
os.setgid(65534)
os.setuid(65534)
f.add("a")
try:
    f.save(path)
except OSError as error:
    assert path in str(error), error
else:
    raise AssertionError("the folder was changed")
try:
    tamis.open(path)
except PermissionError as error:
    assert path in str(error), error
else:
    raise AssertionError("the file of a key was read")
""",
        str(tmp_path),
    )


def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    ends_well(
        """
import os, resource, signal, sys, tamis
path = sys.argv[1] + "/f.tamis"
small = tamis.Bloom(100)
small.save(path)
before = open(path, "rb").read()
# A limit on the size of a file fails as a full disk does.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for big in (tamis.Bloom(1_000_000), tamis.SharedBloom(1_000_000)):
    for options in ({}, {"format": "tamis"}):
        try:
            big.save(path, **options)
        except OSError as error:
            assert path in str(error), error
        else:
            raise AssertionError("the file was written")
assert open(path, "rb").read() == before
assert os.listdir(sys.argv[1]) == ["f.tamis"]
""",
        str(tmp_path),
    )


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.tamis").symlink_to("target.tamis")
    f = tamis.Bloom(100)
    f.save(tmp_path / "link.tamis")
    assert (tmp_path / "link.tamis").is_symlink()
    assert tamis.open(tmp_path / "target.tamis") == f
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        tamis.open(tmp_path / "loop")
    with pytest.raises(OSError, match="loop"):
        f.save(tmp_path / "loop")


def test_load_refuses_a_set_of_another_class(tmp_path: Path) -> None:
    path = tmp_path / "f.tamis"
    tamis.Cuckoo(100).save(path)
    with pytest.raises(TypeError, match="f.tamis: holds a Cuckoo, not a Bloom"):
        tamis.Bloom.load(path)
    assert type(tamis.Filter.load(path)) is tamis.Cuckoo
    with pytest.raises(TypeError, match="f.tamis: holds a Cuckoo, not a SharedBloom"):
        tamis.SharedBloom.load(path)
    tamis.Bloom(100, kind="classic").save(path)
    with pytest.raises(tamis.FormatError, match="split-block"):
        tamis.SharedBloom.load(path)


def test_load_keeps_the_class_of_a_subclass(tmp_path: Path) -> None:
    class Own(tamis.SharedBloom):
        pass

    tamis.Bloom(100).save(tmp_path / "f.tamis")
    assert type(Own.load(tmp_path / "f.tamis")) is Own


def test_a_window_of_time_keeps_its_items_in_its_file(tmp_path: Path) -> None:
    f = tamis.Window(1_000, seconds=3_600)
    f.update(["a", "b"])
    f.save(tmp_path / "f.tamis")
    for options in ({}, {"in_memory": True}, {"verify": False}):
        g = tamis.open(tmp_path / "f.tamis", **options)
        assert type(g) is tamis.Window and "a" in g and "c" not in g
        assert g.info()["window_seconds"] == 3_600


def test_a_window_of_the_time_of_the_program_keeps_its_items_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "f.tamis"
    f = tamis.Window(1_000, seconds=3_600, clock=False)
    f.advance(1_000)
    f.add("a")
    f.save(path)
    data = f.to_bytes()
    for g in (
        tamis.open(path, clock=False),
        tamis.open(path, clock=False, in_memory=True),
        tamis.from_bytes(data, clock=False),
        tamis.Window.load(path, clock=False),
        pickle.loads(pickle.dumps(f)),
        f.copy(),
    ):
        assert isinstance(g, tamis.Window) and "a" in g
        g.advance(1_000 + 3_600)
        assert "a" in g
        g.advance(1_000 + 3 * 3_600)
        assert "a" not in g
    # The clock of the system is far later.
    assert "a" not in tamis.open(path) and "a" not in tamis.from_bytes(data)


def test_a_shared_filter_equals_a_bloom_filter_of_the_same_bits(tmp_path: Path) -> None:
    f, g = tamis.Bloom(1_000), tamis.SharedBloom(1_000)
    f.update(ITEMS)
    g.update(ITEMS)
    f.save(tmp_path / "f.tamis")
    with tamis.open(tmp_path / "f.tamis") as mapped:
        for one in (f, g, mapped):
            assert all(one == two and not one != two for two in (f, g, mapped))
        g.add("another item")
        assert f != g and g != f and mapped != g and g != mapped


def test_a_shared_filter_is_loaded_with_the_options_of_open(tmp_path: Path) -> None:
    f = tamis.Bloom(1_000)
    f.update(ITEMS)
    f.save(tmp_path / "f.tamis")
    for options in ({}, {"format": "tamis"}, {"verify": False}):
        g = tamis.SharedBloom.load(tmp_path / "f.tamis", **options)
        assert type(g) is tamis.SharedBloom and g == f
        assert g.insert(ITEMS, threads=2) == [False] * len(ITEMS)


def test_a_copy_of_a_file_that_was_not_verified_is_whole_or_raises(tmp_path: Path) -> None:
    path = tmp_path / "f.tamis"
    for f in (tamis.Bloom(100), tamis.Growing(items=100), tamis.Cuckoo(100), tamis.Window(100)):
        f.update(range(100))
        f.save(path)
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            try:
                g = tamis.open(path, verify=False)
            except tamis.FormatError:
                continue
            with contextlib.suppress(tamis.FormatError):
                assert g.copy() == g


def test_a_file_is_converted_only_with_the_same_rule(tmp_path: Path) -> None:
    f = tamis.Bloom(1_000)
    f.update(ITEMS)
    f.save(tmp_path / "f.tamis")
    tamis.convert(tmp_path / "f.tamis", tmp_path / "g.tamis")
    assert tamis.open(tmp_path / "g.tamis") == f
    with pytest.raises(tamis.FormatError):
        tamis.convert(tmp_path / "f.tamis", tmp_path / "f.guava")
    with pytest.raises(ValueError, match="f.unknown: its name shows no format: give to="):
        tamis.convert(tmp_path / "f.tamis", tmp_path / "f.unknown")
    with pytest.raises(ValueError, match='"nope" is not a format'):
        tamis.convert(tmp_path / "f.tamis", tmp_path / "f.x", to="nope")
    with pytest.raises(FileNotFoundError, match="missing"):
        tamis.convert(tmp_path / "missing", tmp_path / "f.tamis")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.tamis", "g.tamis"]


def test_an_exact_set_of_digests_has_no_file() -> None:
    f = tamis.DigestSet()
    for operation in (f.to_bytes, lambda: f.save("/tmp/never.tamis")):
        with pytest.raises(tamis.FormatError, match="pickle it"):
            operation()
    assert not os.path.exists("/tmp/never.tamis")


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("tamis/*.tamis")))
def test_a_golden_file_of_the_rust_library_has_its_items(name: str, tmp_path: Path) -> None:
    path = GOLDEN / "tamis" / name
    items = [f"item {i}" for i in range(100)]
    for f in (
        tamis.open(path),
        tamis.open(path, in_memory=True),
        tamis.from_bytes(path.read_bytes()),
    ):
        assert f.contains(items) == [True] * 100
        assert all(item in f for item in items)
        others = f.contains([f"other {i}" for i in range(10_000)])
        assert sum(others) < 300
        assert f.to_bytes() == path.read_bytes(), "the metadata is kept"
        f.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == path.read_bytes()
        assert f.capacity == (None if name == "growing.tamis" else 100)
        assert f.rate == (0.001 if name == "classic.tamis" else 0.01)
    assert f.info()["is_keyed"] == (name == "classic.tamis")


def test_there_is_a_golden_file_for_each_kind() -> None:
    names = {path.stem for path in GOLDEN.glob("tamis/*.tamis")}
    assert names >= {"classic", "counting", "cuckoo", "growing", "parquet", "split-block", "window"}


def test_the_name_of_a_file_shows_its_format(tmp_path: Path) -> None:
    f = tamis.create("guava", items=100, rate=0.01, funnel="long")
    f.save(tmp_path / "f.guava")
    assert (tmp_path / "f.guava").read_bytes() == f.to_bytes()
    for name in ("f.guava", "f.spark", "f.roaring"):
        with pytest.raises(tamis.FormatError):
            tamis.Bloom(100).save(tmp_path / name)
    tamis.IntSet().save(tmp_path / "ids.tamis")
    assert type(tamis.open(tmp_path / "ids.tamis")) is tamis.IntSet
    tamis.Bloom(100).save(tmp_path / "f.unknown")
    tamis.Bloom(100).save(tmp_path / "g.guava", format="tamis")
    assert type(tamis.open(tmp_path / "g.guava")) is tamis.Bloom


def test_an_error_of_a_file_has_its_number_and_its_name(tmp_path: Path) -> None:
    missing = tmp_path / "no folder" / "f.tamis"
    f = tamis.Bloom(100)
    for operation in (
        lambda: tamis.open(missing),
        lambda: tamis.Bloom.load(missing),
        lambda: f.save(missing),
        lambda: tamis.DigestFile(missing),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            operation()
        error = caught.value
        assert isinstance(error, tamis.FileError) and isinstance(error, tamis.TamisError)
        assert error.errno == errno.ENOENT and error.filename == str(missing)
        assert "os error" not in str(error) and str(missing) in str(error)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\x1f\x8b\x08\0rest", "gunzip"),
        (b"\x28\xb5\x2f\xfdrest", "zstd -d"),
        (b"BZh9rest", "bunzip2"),
        (b"\xfd7zXZ\0rest", "xz -d"),
        (b"PAR1rest", "Parquet table"),
        (pickle.dumps([1]), "pickle.load"),
        (b"id,url\n1,a\n", "no format of filters is recognised; if the file is a filter"),
    ],
)
def test_a_file_that_is_no_filter_is_named(data: bytes, message: str, tmp_path: Path) -> None:
    for name in ("f.dat", "f.tamis") if data[:2] != b"id" else ("f.dat",):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(tamis.FormatError, match=f"{name}: .*{message}"):
            tamis.open(tmp_path / name)


def test_a_state_file_is_named(tmp_path: Path) -> None:
    with tamis.DigestFile(tmp_path / "f.state") as f:
        f.add("a")
    with pytest.raises(tamis.FormatError, match="f.state: .*tamis.DigestFile"):
        tamis.open(tmp_path / "f.state")


def test_paths_and_data_of_any_type_of_bytes_are_taken(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "f.tamis")
    f = tamis.Bloom(100, key=bytearray(16))
    f.add("a")
    f.save(path)
    assert tamis.open(path) == f and tamis.Bloom.load(path) == f
    data = f.to_bytes()
    for same in (data, bytearray(data), memoryview(data), memoryview(data + data)[: len(data)]):
        assert tamis.from_bytes(same) == f
    with pytest.raises(TypeError):
        tamis.from_bytes("text")  # type: ignore[arg-type]
    with tamis.DigestFile(os.fsencode(tmp_path / "f.state")) as g:
        assert g.add("a")


def test_an_option_without_an_effect_raises(tmp_path: Path) -> None:
    tamis.Bloom(100, key=bytes(16)).save(tmp_path / "f.tamis")
    for options in ({"key": "k"}, {"md5": True}, {"funnel": "long"}, {"format_version": "2"}):
        [name] = options
        for operation in (
            lambda: tamis.open(tmp_path / "f.tamis", **options),
            lambda: tamis.Bloom.load(tmp_path / "f.tamis", **options),
            lambda: tamis.from_bytes((tmp_path / "f.tamis").read_bytes(), **options),
        ):
            with pytest.raises(ValueError, match=f"{name} has no effect on .* the format tamis"):
                operation()
    with pytest.raises(ValueError, match="key has no effect on a filter of the format guava"):
        tamis.create("guava", items=10, rate=0.1, funnel="long", key="k")
    with pytest.raises(ValueError, match="call its class, for example tamis.Bloom"):
        tamis.create("tamis", items=10, rate=0.1, key=bytes(16))
