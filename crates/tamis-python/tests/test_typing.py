"""The types of the package: correct programs are accepted, and mistakes are rejected.

mypy takes some seconds. pyright needs Node.js, so the check of a wheel runs it on the same files:
``pyright tests/typing/accepted.py``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tamis
from conftest import environment

FOLDER = Path(__file__).parent / "typing"
PACKAGE = Path(tamis.__file__).parent
# mypy finds an installed package itself, and refuses the folder of all installed packages.
# `cargo xtask wheel --check` runs mypy on the installed package.
IS_INSTALLED = PACKAGE.parent.name == "site-packages"


def mypy(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run mypy with an own cache, and fail if it does not end in time."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={folder}", *arguments]
    path = {**environment(), "MYPYPATH": str(PACKAGE.parent)}
    if IS_INSTALLED:
        path = dict(os.environ)
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=path)
    except subprocess.TimeoutExpired:
        pytest.fail("mypy did not end within 60 s")


def expected() -> set[int]:
    lines = (FOLDER / "rejected.py").read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# error")}


def test_mypy_accepts_correct_programs_and_rejects_mistakes(tmp_path: Path) -> None:
    files = [FOLDER / "accepted.py", FOLDER / "rejected.py"]
    if not IS_INSTALLED:
        files.append(PACKAGE)
    done = mypy(*map(str, files), folder=tmp_path)
    found = re.findall(r"^(.*\.py):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    wrong = [row for row in found if not row[0].endswith("rejected.py")]
    assert wrong == []
    rejected = {int(line) for _, line, _ in found}
    assert rejected == expected(), done.stdout


def test_pyright_accepts_correct_programs_and_rejects_mistakes() -> None:
    # The program pyright of PyPI downloads Node.js, so the test runs only if it is installed.
    pyright = pytest.importorskip("pyright")
    if not os.environ.get("TAMIS_PYRIGHT"):
        pytest.skip("set TAMIS_PYRIGHT=1 to run pyright")
    command = [sys.executable, "-m", pyright.__name__, "--outputjson", str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    errors = json.loads(done.stdout)["generalDiagnostics"]
    lines = {
        row["range"]["start"]["line"] + 1
        for row in errors
        if row["severity"] == "error" and row["file"].endswith("rejected.py")
    }
    assert [row for row in errors if row["file"].endswith("accepted.py")] == []
    assert lines == expected()


def test_the_package_states_that_it_has_types() -> None:
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_tamis.pyi").exists()


def test_the_stub_of_the_extension_has_all_its_names() -> None:
    from tamis import _tamis

    stub = (PACKAGE / "_tamis.pyi").read_text()
    names = {name for name in dir(_tamis) if not name.startswith("_")}
    assert names == set(re.findall(r"^(?:class|def) (\w+)", stub, re.MULTILINE))
    for name in names:
        assert re.search(rf"^(class|def) {name}\b", stub, re.MULTILINE), name
    for cls in (_tamis.Core, _tamis.Slots, _tamis.Handle, _tamis.Booleans, _tamis.ArrowChunks):
        for name in vars(cls):
            if not name.startswith("__") or name in ("__contains__", "__arrow_c_array__"):
                assert re.search(rf"\bdef {name}\b", stub), f"{cls.__name__}.{name}"
