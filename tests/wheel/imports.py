"""Checks that `import tamis` imports no large package, and prints the duration of the import.

`cargo xtask wheel --check` runs this file. The duration is no test, because other programs run at the same time.
"""

import statistics
import subprocess
import sys
import time

RUNS = 15
DEADLINE_SECONDS = 60
LARGE = {"numpy", "pandas", "polars", "pyarrow", "scrapy"}


def run(code: str) -> float:
    """Run code in a new process, and return the duration in milliseconds."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", code], check=True, timeout=DEADLINE_SECONDS)
    return (time.perf_counter() - started) * 1e3


run(f"import sys, tamis; large = {LARGE} & {{*sys.modules}}; assert not large, large")
pairs = [(run("pass"), run("import tamis")) for _ in range(RUNS)]
nothing, package = map(statistics.median, zip(*pairs))
print(f"import tamis takes {package - nothing:.1f} ms (median of {RUNS}; the aim is 20 ms)")
