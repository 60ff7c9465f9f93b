"""``python -m tamis`` runs the program of the wheel."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import tamis
import tamis.__main__ as program

WAIT = 60
"""The limit of each process, in seconds."""


def install(path: Path) -> str:
    """Write an executable file, as pip does, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def place(monkeypatch: pytest.MonkeyPatch, scripts: Path, user_scripts: Path) -> None:
    """Let the default scheme and the scheme of the user install programs in these folders."""
    user = sysconfig.get_preferred_scheme("user")

    def get_path(name: str, scheme: str = "", **_: Any) -> str:
        folder = user_scripts if scheme == user else scripts
        return str(folder if name == "scripts" else folder.with_name("platlib"))

    monkeypatch.setattr(sysconfig, "get_path", get_path)


def test_a_program_in_the_folder_of_scripts_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place(monkeypatch, tmp_path / "env/bin", tmp_path / "user/bin")
    expected = install(tmp_path / "env/bin/tamis")
    assert program.find_program() == expected


def test_a_program_of_the_user_scheme_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place(monkeypatch, tmp_path / "env/bin", tmp_path / "user/bin")
    expected = install(tmp_path / "user/bin/tamis")
    assert program.find_program() == expected


def test_the_scheme_of_the_package_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place(monkeypatch, tmp_path / "env/bin", tmp_path / "user/bin")
    install(tmp_path / "env/bin/tamis")
    expected = install(tmp_path / "user/bin/tamis")
    monkeypatch.setattr(program, "__file__", str(tmp_path / "user/platlib/tamis/__main__.py"))
    assert program.find_program() == expected


def test_a_missing_program_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place(monkeypatch, tmp_path / "env/bin", tmp_path / "user/bin")
    monkeypatch.setattr(program, "__file__", str(tmp_path / "tamis/__main__.py"))
    assert program.main(["--version"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("tamis: the program is not installed"), message
    assert message.count("\n") == 1, message


@pytest.mark.skipif(program.find_program() is None, reason="the package is not from a wheel")
def test_the_program_has_the_version_of_the_package() -> None:
    for command in ([sys.executable, "-m", "tamis"], [os.fspath(program.find_program() or "")]):
        run = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=WAIT, check=True
        )
        assert run.stdout == f"tamis {tamis.__version__}\n", command
