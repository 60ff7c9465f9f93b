"""The documentation in the package is true, and an import is cheap."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import inspect
import pkgutil
import pydoc
import re
import types
from typing import Any

import pytest
import tamis
from conftest import REPOSITORY, ends_well

MODULES = ["tamis", *(f"tamis.{row.name}" for row in pkgutil.iter_modules(tamis.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_the_modules_have_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = 0
    for name in MODULES:
        tests = finder.find(importlib.import_module(name))
        examples += sum(len(test.examples) for test in tests)
    assert examples > 60


def test_the_example_of_add_is_true() -> None:
    # doctest does not find the methods of the extension.
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    test = parser.get_doctest(tamis.Bloom.add.__doc__ or "", {}, "add", None, 0)
    assert test.examples
    runner.run(test)
    assert runner.failures == 0


def test_the_package_exports_all_public_names_and_no_others() -> None:
    modules = {name for name, it in vars(tamis).items() if isinstance(it, types.ModuleType)}
    shown = {name for name in dir(tamis) if not name.startswith("_")} - modules
    assert shown | {"__version__"} == set(tamis.__all__)
    # A program imports a public module by its own name.
    assert {name for name in modules if not name.startswith("_")} <= {"scrapy"}
    assert list(tamis.__all__) == sorted(tamis.__all__)
    space: dict[str, Any] = {}
    exec("from tamis import *", space)
    assert set(tamis.__all__) <= set(space)


@pytest.mark.parametrize("name", sorted(set(tamis.__all__) - {"__version__"}))
def test_each_public_name_has_documentation(name: str) -> None:
    documentation = inspect.getdoc(getattr(tamis, name))
    assert documentation and documentation.splitlines()[0].endswith((".", ":")), documentation


def test_help_mentions_each_method() -> None:
    text = pydoc.render_doc(tamis.Bloom, renderer=pydoc.plaintext)
    for name in (
        "add",
        "contains",
        "insert",
        "update",
        "dedup",
        "save",
        "load",
        "copy",
        "clear",
        "info",
    ):
        assert re.search(rf"\b{name}\(", text), name
    for name in ("capacity", "rate", "size_bytes", "is_saturated", "skipped_nulls"):
        assert name in text
    text = pydoc.render_doc(tamis.Counting, renderer=pydoc.plaintext)
    for name in ("add_copy", "remove", "discard", "count"):
        assert re.search(rf"\b{name}\(", text), name
    for name in set(tamis.__all__) - {"__version__"}:
        pydoc.render_doc(getattr(tamis, name), renderer=pydoc.plaintext)


def test_the_version_is_that_of_the_workspace() -> None:
    text = (REPOSITORY / "Cargo.toml").read_text()
    match = re.search(r'^version = "([^"]+)"', text, re.MULTILINE)
    assert match is not None and tamis.__version__ == match[1]


def test_an_import_loads_no_array_library() -> None:
    ends_well(
        """
import sys
import tamis
f = tamis.Bloom(100)
f.update(["a", 1, b"x"])
f.contains(["a"]), f.add("b"), repr(f), tamis.from_bytes(f.to_bytes())
import array
f.contains(array.array("i", [1])), f.contains(memoryview(b"ab"))
list(f.dedup([["a"]]))
loaded = {"numpy", "pyarrow", "pandas", "polars", "duckdb", "scrapy"} & set(sys.modules)
assert not loaded, loaded
"""
    )


def test_an_array_of_one_library_loads_no_other() -> None:
    ends_well(
        """
import sys
import numpy
import tamis
f = tamis.Bloom(100)
f.update(numpy.arange(9))
f.contains(numpy.array(["a"])), f.contains(numpy.array(["a", 5], dtype=object))
loaded = {"pyarrow", "pandas", "polars", "numpy.ma"} & set(sys.modules)
assert not loaded, loaded
"""
    )


def test_an_import_is_fast() -> None:
    out = ends_well(
        """
import time
began = time.perf_counter()
import tamis
print(time.perf_counter() - began)
"""
    )
    assert float(out) < 0.5


def test_the_installed_package_has_its_licences() -> None:
    try:
        files = importlib.metadata.files("tamis")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    names = {file.name for file in files or ()}
    assert {"LICENSE-APACHE", "LICENSE-MIT"} <= names
