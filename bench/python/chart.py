"""Draws the chart of the benchmark: one bar for each contender of some cases."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

# The cases of the chart, by the start of their names.
_CASES = (
    "hit, 43-byte str",
    "update(list), 43-byte str",
    "numpy uint64, 1 M, hit",
    "Arrow strings of 61 bytes, 10 M, hit",
    "drop repeats of 20 M URLs from Parquet, time",
    "drop repeats of 20 M URLs from Parquet, memory",
)
_TITLE = "Best time of an item or of a program, and memory"
_STYLE = """text { font: 13px system-ui, sans-serif; fill: #24292f }
.page { fill: #fff }
.title { font-size: 16px; font-weight: 600 }
.case { font-weight: 600 }
.ours { fill: #0a7d56 }
.rival { fill: #9aa5b1 }
.floor { fill: #d9b44a }"""
_WIDTH, _LEFT, _BAR = 760, 240, 400


def chart(rows: list[Any]) -> str:
    """Return the picture of the rows as an SVG."""
    parts, y = [], 28
    for case in _CASES:
        bars = {row.name: row for row in rows if row.case == case}
        if not bars:
            continue
        y += 30
        parts.append(f'<text x="16" y="{y}" class="case">{escape(case)}</text>')
        longest = max(row.value for row in bars.values())
        for name, row in bars.items():
            y += 24
            kind = "floor" if name == "Rust batch" else "rival"
            kind = "ours" if name.startswith("tamis") else kind
            width = max(row.value / longest * _BAR, 1)
            parts += [
                f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end">{escape(name)}</text>',
                f'<rect x="{_LEFT}" y="{y - 13}" width="{width:.1f}" height="18" rx="2" '
                f'class="{kind}"/>',
                f'<text x="{_LEFT + width + 6:.1f}" y="{y}">{row.value:.1f} {row.unit}</text>',
            ]
    size = f"0 0 {_WIDTH} {y + 20}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img">'
    return "\n".join(
        [
            head,
            f"<title>{_TITLE}</title>\n<style>\n{_STYLE}\n</style>",
            f'<rect width="{_WIDTH}" height="{y + 20}" class="page"/>',
            f'<text x="16" y="28" class="title">{_TITLE}</text>',
            *parts,
            "</svg>\n",
        ]
    )
