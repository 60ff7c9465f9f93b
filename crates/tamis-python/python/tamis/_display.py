"""How filters and plans look at a prompt and in a notebook."""

from __future__ import annotations

from tamis._errors import ClosedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tamis._filter import Filter
    from tamis._plan import Plans


def _size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _rate(rate: float | None) -> str:
    if rate is None:
        return "unknown"
    return "0" if rate == 0 else f"{rate:.3g}"


def _items(report: dict[str, Any]) -> str:
    items = report["items"]
    if items != items:
        return "unknown"
    if items == float("inf"):
        return "every bit is set"
    about = "" if report["items_are"] in ("exact", "inserted", "distinct") else "about "
    return f"{about if items else ''}{items:,.0f}"


def _rows(filter: Filter) -> list[tuple[str, str]]:
    report = filter.info()
    rows = [("kind", report["format"] or report["kind"])]
    if report["capacity"] is not None:
        rows.append(("capacity", f"{report['capacity']:,}"))
    rows.append(("items", _items(report)))
    if report["items_are"] != "exact":
        rows.append(("fill", f"{report['fill']:.1%}"))
        rows.append(("planned rate", _rate(report["rate"])))
        rows.append(("present rate", _rate(report["present_rate"])))
    if report.get("window_seconds") is not None:
        rows.append(("remembers", f"{report['window_seconds']:g} s"))
    rows.append(("size", _size(report["size_bytes"])))
    if report["is_keyed"]:
        rows.append(("key", "secret"))
    if report["is_mapped"]:
        rows.append(("file", "mapped, read-only"))
    if report["is_saturated"]:
        rows.append(("warning", "the filter has passed its rate"))
    return rows


def text(filter: Filter) -> str:
    """The representation of a filter at a prompt."""
    name = type(filter).__name__
    try:
        rows = _rows(filter)
    except ClosedError:
        return f"<tamis.{name}: closed>"
    parts = ", ".join(f"{label} {value}" for label, value in rows[1:])
    return f"<tamis.{name} {rows[0][1]}: {parts}>"


def table(filter: Filter) -> str:
    """The representation of a filter in a notebook."""
    name = type(filter).__name__
    try:
        report = _rows(filter)
    except ClosedError:
        report = [("file", "closed")]
    rows = "".join(
        f"<tr><th style='text-align:left'>{label}</th><td style='text-align:left'>{value}</td></tr>"
        for label, value in report
    )
    return f"<table><caption style='text-align:left'>tamis.{name}</caption>{rows}</table>"


def _plan_rows(plans: Plans) -> list[tuple[str, ...]]:
    return [
        (
            plan.kind,
            _size(plan.size_bytes),
            f"{plan.bits_per_item:.1f}",
            _rate(plan.rate),
            str(plan.cache_lines),
            plan.call.partition("(")[0] + ("(kind=…)" if "kind=" in plan.call else ""),
        )
        for plan in plans
    ]


_HEADERS = ("kind", "size", "bits/item", "rate", "cache lines", "class")


def _is_number(column: int) -> bool:
    return 0 < column < len(_HEADERS) - 1


def plans_text(plans: Plans) -> str:
    """The plans at a prompt, as a table whose columns align."""
    rows = [_HEADERS, *_plan_rows(plans)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADERS))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if _is_number(i) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    if len(lines) > 1:
        lines[1] += "  <- best"
    return "\n".join([*lines, plans.why])


def plans_table(plans: Plans) -> str:
    """The plans in a notebook."""
    # The import takes longer than the rest of the package.
    from html import escape

    def cells(tag: str, row: tuple[str, ...]) -> str:
        return "".join(
            f"<{tag} style='text-align:{'right' if _is_number(i) else 'left'}'>{escape(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    head = cells("th", _HEADERS)
    rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in _plan_rows(plans))
    caption = f"<caption style='text-align:left;caption-side:bottom'>{escape(plans.why)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
