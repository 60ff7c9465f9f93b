"""The sets behave as other objects of Python: copies, pickles, comparisons and representations."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tamis
from conftest import ALL_KINDS, INT_SET, Kind, each_kind

FOREIGN = Kind(
    "foreign",
    lambda **_: tamis.create("guava", items_planned=1_000, rate_planned=0.01, funnel="long"),
)
EVERY = [*ALL_KINDS, FOREIGN]
KEYED = [kind for kind in ALL_KINDS if kind is not INT_SET]
CLASSES: list[Any] = [
    tamis.Bloom,
    tamis.SharedBloom,
    tamis.Growing,
    tamis.Cuckoo,
    tamis.Counting,
    tamis.Window,
    tamis.DigestSet,
    tamis.IntSet,
    tamis.ForeignFilter,
]
PROBES = list(range(300))


def filled(kind: Kind, **options: Any) -> Any:
    f = kind.create(**options)
    f.update(range(100))
    return f


def copies(f: Any) -> list[Any]:
    pickles = [pickle.loads(pickle.dumps(f, protocol)) for protocol in range(6)]
    return [f.copy(), copy.copy(f), copy.deepcopy(f), copy.deepcopy([f, f])[1], *pickles]


@each_kind(EVERY)
def test_a_copy_is_equal_and_independent(kind: Kind) -> None:
    f = filled(kind)
    answers = f.contains(PROBES)
    for g in copies(f):
        assert type(g) is type(f) and g is not f
        assert g == f and not g != f and g.contains(PROBES) == answers
        # The memory of an exact set depends on the order of its inserts.
        exact = {"size_bytes": 0, "bits": 0} if kind.is_exact else {}
        assert g.info() | exact == f.info() | exact
        g.add(200)
        assert 200 in g and f.contains(PROBES) == answers
        assert g != f or 200 in f


@each_kind(KEYED)
@pytest.mark.parametrize(
    "options", [{"key": b"0123456789abcdef"}, {"seed": 7}], ids=["key", "seed"]
)
def test_a_copy_keeps_the_key_and_the_seed(kind: Kind, options: Any) -> None:
    f = filled(kind, **options)
    assert f.info()["is_keyed"] == ("key" in options)
    for g in copies(f):
        assert g == f and g.contains(PROBES) == f.contains(PROBES)
        assert g.info()["is_keyed"] == ("key" in options)
        if kind.merges:
            # Only filters with one hash function merge.
            assert (g | f).contains(PROBES[:100]) == [True] * 100
            with pytest.raises(tamis.MergeError):
                g |= kind.create()


def test_a_copy_of_a_window_keeps_its_clock() -> None:
    manual = tamis.Window(1_000, seconds=100, clock=False)
    manual.advance(1_000)
    manual.add("a")
    for g in copies(manual):
        # The clock of the system would make the filter forget the item.
        assert "a" in g
        g.advance(2_000)
        assert "a" not in g and "a" in manual
    clocked = tamis.Window(1_000, seconds=1_000_000)
    clocked.add("a")
    for g in copies(clocked):
        assert "a" in g
        with pytest.raises(ValueError, match="clock of the system"):
            g.advance(4e15)
        assert "a" in g
    refreshing = tamis.Window(1_000, seconds=100, clock=False, refresh=True, slices=4)
    for g in copies(refreshing):
        assert g.info()["refresh"] is True and g.info()["slices"] == refreshing.info()["slices"]


def test_a_window_with_a_clock_forgets_by_the_clock() -> None:
    f = tamis.Window(1_000, seconds=0.05)
    f.add("a")
    f.insert(["b"])
    f.insert(np.array(["c"]))
    assert f.contains(["a", "b", "c"]) == [True] * 3
    threading.Event().wait(0.2)
    assert "a" not in f and f.contains(["b"]) == [False]
    assert f.contains(np.array(["c"])).tolist() == [False]
    assert f.add("a") is True


@pytest.mark.parametrize("bits", [64, 128])
def test_a_copy_of_a_digest_set_keeps_its_bits(bits: Any) -> None:
    f = tamis.DigestSet(bits=bits, key=bytes(16), items=1_000)
    f.update(range(5_000))
    for g in copies(f):
        assert len(g) == 5_000 and g == f and g.insert(range(5_000)) == [False] * 5_000
        with pytest.raises(tamis.MergeError):
            g |= tamis.DigestSet(bits=64 if bits == 128 else 128, key=bytes(16))
    assert len(pickle.dumps(f)) < 5_000 * bits // 8 + 500


def test_a_pickle_of_a_mapped_filter_is_in_memory(tmp_path: Path) -> None:
    f = filled(ALL_KINDS[0])
    f.save(tmp_path / "f.tamis")
    with tamis.open(tmp_path / "f.tamis") as mapped:
        for g in copies(mapped):
            assert (
                g == mapped and g == f and not g.info()["is_mapped"] and g.add(-5) in (True, False)
            )


class Own(tamis.Bloom):
    """A subclass with attributes."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.name = "own"
        self.parts = [1]

    def double(self) -> int:
        return 2 * len(self.parts)


class Slotted(tamis.DigestSet):
    __slots__ = ("name",)

    name: str


class OwnWindow(tamis.Window):
    pass


class OwnCuckoo(tamis.Cuckoo):
    pass


class OwnShared(tamis.SharedBloom):
    pass


def test_a_subclass_keeps_its_class_and_its_attributes() -> None:
    f = Own(1_000)
    f.add("a")
    f.name = "changed"
    f.parts.append(2)
    for g in [*copies(f), f | f, f | tamis.Bloom(1_000)]:
        assert type(g) is Own and "a" in g and g.name == "changed" and g.double() == 4
    assert copy.deepcopy(f).parts is not f.parts and copy.copy(f).parts is f.parts
    f |= tamis.Bloom(1_000)
    assert type(f) is Own
    slotted = Slotted()
    slotted.name = "x"
    for g in copies(slotted):
        assert type(g) is Slotted and g.name == "x"
    for cls in (OwnWindow, OwnCuckoo, OwnShared):
        h = cls(100)
        assert all(type(g) is cls for g in copies(h))


class Locked(tamis.Bloom):
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.lock = threading.Lock()


def test_a_subclass_chooses_its_state_and_is_loaded(tmp_path: Path) -> None:
    f = Locked(100)
    f.add("a")
    f.lock, f.name = threading.Lock(), "x"  # type: ignore[attr-defined]
    for g in copies(f):
        assert type(g) is Locked and "a" in g and g.name == "x" and g.lock is not f.lock
    f.save(tmp_path / "f.tamis")
    assert type(Locked.load(tmp_path / "f.tamis")) is Locked
    assert Locked.load(tmp_path / "f.tamis") == f


def test_a_filter_that_refers_to_itself_is_copied() -> None:
    f = Own(100)
    f.parts = [f]
    g = copy.deepcopy(f)
    assert g.parts[0] is g
    h = pickle.loads(pickle.dumps(f))
    assert h.parts[0] is h


@each_kind(EVERY)
def test_filters_compare_by_content_and_have_no_hash(kind: Kind) -> None:
    f, g = filled(kind), filled(kind)
    assert f == g and not f != g and f == f
    g.add(250)
    assert f != g or 250 in f
    assert (f == 5) is False and (f == "x") is False and (f == None) is False  # noqa: E711
    assert f != kind.create()
    for operation in (lambda: hash(f), lambda: {f}, lambda: {f: 1}):
        with pytest.raises(TypeError, match="unhashable"):
            operation()
    for operation in (lambda: f < g, lambda: f >= g, lambda: f & g, lambda: f - g, lambda: f + g):
        with pytest.raises(TypeError):
            operation()


@each_kind(EVERY)
def test_only_an_exact_set_has_a_length(kind: Kind) -> None:
    f = filled(kind)
    if kind.is_exact:
        assert len(f) == 100 and len(kind.create()) == 0  # type: ignore[arg-type]
    else:
        with pytest.raises(TypeError, match="has no len"):
            len(f)
    for operation in (lambda: iter(f), lambda: f[0], lambda: list(f), lambda: f()):
        with pytest.raises(TypeError):
            operation()


@each_kind(EVERY)
def test_a_set_is_true_if_it_has_an_item(kind: Kind) -> None:
    f = kind.create()
    assert bool(f) is False
    f.add(1)
    assert bool(f) is True
    if kind is not FOREIGN:
        f.clear()
        assert bool(f) is False and 1 not in f and f.add(1) is True


@each_kind(EVERY)
def test_the_representation_names_the_class_and_the_items(kind: Kind) -> None:
    f = kind.create()
    name = type(f).__name__
    assert re.fullmatch(rf"<tamis\.{name} [\w-]+: .*items 0.*>", repr(f)), repr(f)
    f.update(range(100))
    assert re.search(r"items (about )?1?\d\d\b", repr(f)), repr(f)
    assert str(f) == repr(f) == f"{f}"
    html = f._repr_html_()
    assert html.startswith("<table>") and html.endswith("</table>") and f"tamis.{name}" in html
    assert html.count("<tr>") == html.count("</tr>") >= 3


def test_the_representation_tells_of_a_passed_rate_and_a_full_filter() -> None:
    f = tamis.Bloom(100)
    with pytest.warns(tamis.SaturatedWarning):
        f.update(range(100_000))
    assert "every bit is set" in repr(f) and "has passed its rate" in repr(f)
    assert "has passed its rate" in f._repr_html_()


INFO = {
    "kind": str,
    "format": (str, type(None)),
    "layout": str,
    "capacity": (int, type(None)),
    "items": float,
    "items_are": str,
    "bits": int,
    "size_bytes": int,
    "fill": float,
    "rate": (float, type(None)),
    "present_rate": float,
    "is_saturated": bool,
    "is_mapped": bool,
    "is_keyed": bool,
}


@each_kind(EVERY)
def test_info_has_the_same_keys_for_every_set(kind: Kind) -> None:
    f = filled(kind)
    info = f.info()
    for key, types in INFO.items():
        assert isinstance(info[key], types), (key, info[key])
    more = (
        {"window_seconds", "window_items", "slices", "refresh"} if "window" in kind.name else set()
    )
    more |= {"details"} if kind is FOREIGN else set()
    assert set(info) == set(INFO) | more
    assert f.capacity == info["capacity"] and f.rate == info["rate"]
    assert f.size_bytes == info["size_bytes"] > 0
    assert f.estimate_items() == info["items"] and f.estimate_rate() == info["present_rate"]
    assert f.is_saturated == info["is_saturated"] and f.skipped_nulls == 0
    assert 90 < info["items"] < 110
    for name in ("capacity", "rate", "size_bytes", "is_saturated", "skipped_nulls"):
        with pytest.raises(AttributeError):
            setattr(f, name, 5)


def test_with_returns_the_filter_and_closes_its_file(tmp_path: Path) -> None:
    f = tamis.Bloom(100)
    f.save(tmp_path / "f.tamis")
    with tamis.open(tmp_path / "f.tamis") as g:
        assert type(g) is tamis.Bloom and 1 not in g
    with pytest.raises(tamis.ClosedError):
        1 in g
    with pytest.raises(ZeroDivisionError), tamis.open(tmp_path / "f.tamis") as g:
        raise ZeroDivisionError
    with pytest.raises(tamis.ClosedError):
        g.contains([1])
    with tamis.Bloom(100) as h:
        h.add(1)
    assert 1 in h


def test_a_set_has_no_attributes_but_those_of_its_class() -> None:
    for kind in EVERY:
        f: Any = kind.create()
        with pytest.raises(AttributeError):
            f.nope = 1
        with pytest.raises(AttributeError):
            f.add = 1


PUBLIC = {
    "add", "capacity", "clear", "close", "contains", "copy", "dedup", "estimate_items",
    "estimate_rate", "info", "insert", "is_saturated", "load", "rate", "save", "size_bytes",
    "skipped_nulls", "to_bytes", "update",
}  # fmt: skip
MORE: dict[str, set[str]] = {
    "Cuckoo": {"add_copy", "count", "discard", "remove"},
    "Counting": {"add_copy", "count", "discard", "remove"},
    "Window": {"advance"},
    "IntSet": {"remove", "discard"},
    "ForeignFilter": {"format"},
}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_class_shows_exactly_its_public_names(cls: Any) -> None:
    shown = {name for name in dir(cls) if not name.startswith("_")}
    assert shown == PUBLIC | MORE.get(cls.__name__, set())
    for name in shown:
        attribute = inspect.getattr_static(cls, name)
        assert inspect.getdoc(getattr(cls, name)) or isinstance(attribute, property), name
        assert inspect.getdoc(attribute), name


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_each_method_has_a_signature(cls: Any) -> None:
    for name in PUBLIC | MORE.get(cls.__name__, set()):
        attribute = getattr(cls, name)
        if callable(attribute):
            assert str(inspect.signature(attribute)).startswith("("), name
    assert str(inspect.signature(cls.add)) == "(self, item, /)"
    contains = inspect.signature(cls.contains).parameters
    assert list(contains) == ["self", "items", "threads", "progress"]
    assert contains["items"].kind is inspect.Parameter.POSITIONAL_ONLY
    assert contains["threads"].kind is inspect.Parameter.KEYWORD_ONLY


def test_public_names_have_the_public_module() -> None:
    for name in tamis.__all__:
        if name != "__version__":
            assert getattr(tamis, name).__module__ == "tamis", name
    assert pickle.dumps(tamis.Bloom).count(b"tamis._kinds") == 0
    assert repr(tamis.Bloom) == "<class 'tamis.Bloom'>"


def test_the_plan_of_a_filter_is_equal_to_its_report() -> None:
    for kind in ALL_KINDS:
        f = kind.create()
        f.update(range(100))
        info = f.info()
        assert (f.capacity, f.rate, f.size_bytes) == (
            info["capacity"],
            info["rate"],
            info["size_bytes"],
        )


def test_the_signatures_of_the_classes_name_the_options() -> None:
    expected = {
        tamis.Bloom: ["items", "rate", "kind", "key", "seed"],
        tamis.SharedBloom: ["items", "rate", "key", "seed"],
        tamis.Growing: ["rate", "items", "key", "seed"],
        tamis.Cuckoo: ["items", "rate", "bucket", "key", "seed"],
        tamis.Counting: ["items", "rate", "key", "seed"],
        tamis.Window: ["items", "rate", "seconds", "slices", "refresh", "clock", "key", "seed"],
        tamis.DigestSet: ["bits", "items", "key", "seed"],
        tamis.IntSet: [],
    }
    for cls, names in expected.items():
        parameters = inspect.signature(cls).parameters
        assert list(parameters) == names, cls
        for name in names[2:]:
            assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


def test_errors_are_errors_of_python_too() -> None:
    pairs = [
        (tamis.PlanError, ValueError),
        (tamis.ClosedError, ValueError),
        (tamis.MergeError, ValueError),
        (tamis.FormatError, ValueError),
        (tamis.FileError, OSError),
        (tamis.SaturatedWarning, UserWarning),
    ]
    for error, base in pairs:
        assert issubclass(error, base)
        again = pickle.loads(pickle.dumps(error("a message")))
        assert type(again) is error and str(again) == "a message"
    for error in (tamis.FullError, tamis.ReadOnlyError, *[pair[0] for pair in pairs[:-1]]):
        assert issubclass(error, tamis.TamisError)


def test_a_missing_item_is_named_by_the_key_error() -> None:
    for f in (tamis.Counting(100), tamis.Cuckoo(100), tamis.IntSet()):
        with pytest.raises(KeyError) as error:
            f.remove(77)
        assert error.value.args == (77,)
        assert f.discard(77) is False


def test_a_counter_that_is_full_cannot_be_removed() -> None:
    f = tamis.Counting(1_000)
    for _ in range(20):
        f.add_copy("a")
    with pytest.raises(tamis.FullError, match="more often than the filter can count"):
        for _ in range(20):
            f.remove("a")
    assert "a" in f


def test_a_filter_may_be_a_part_of_a_cycle() -> None:
    f = Own(100)
    f.parts = [f]
    alive = weakref.ref(f)
    del f
    import gc

    gc.collect()
    assert alive() is None


def test_answers_are_booleans_of_python() -> None:
    f = tamis.Bloom(100)
    assert f.add("a") is True and f.add("a") is False
    assert ("a" in f) is True and ("b" in f) is False
    assert set(map(type, f.contains(["a", "b"]))) == {bool}
    assert f.contains([]) == [] and f.insert([]) == [] and f.update([]) is None
    assert f.contains(()) == [] and f.contains({}) == [] and f.contains(iter(())) == []
    assert f.contains({"a": 1, "b": 2}) == [True, False]
