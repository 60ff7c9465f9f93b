"""``python -m tamis`` runs the program ``tamis``, which a wheel installs beside the package."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator


def _candidates() -> Iterator[str]:
    """Yield the paths where pip installs the program, the scheme of this package first."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    schemes.sort(key=lambda scheme: sysconfig.get_path("platlib", scheme) != package)
    for scheme in schemes:
        yield os.path.join(sysconfig.get_path("scripts", scheme), "tamis")
    # An environment with the packages of the system sees the package of the system.
    system = {"base": sys.base_prefix, "installed_base": sys.base_prefix}
    yield os.path.join(sysconfig.get_path("scripts", vars=system), "tamis")
    # `pip install --target FOLDER` installs programs in `FOLDER/bin`.
    yield os.path.join(package, "bin", "tamis")


def find_program() -> str | None:
    """Return the path of the installed program, or None if there is no program."""
    for path in _candidates():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def main(arguments: list[str]) -> int:
    """Replace this process with the program. Return 2 if the program is not installed."""
    program = find_program()
    if program is None:
        print(
            "tamis: the program is not installed, because this package was built from source: "
            "run 'pip install --force-reinstall --only-binary tamis tamis'",
            file=sys.stderr,
        )
        return 2
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
