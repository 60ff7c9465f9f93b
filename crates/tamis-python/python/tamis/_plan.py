"""Plans of filters."""

from __future__ import annotations

from typing import NamedTuple

from tamis import _html, _tamis


class Plan(NamedTuple):
    """The size and the cost of one kind of filter."""

    kind: str
    """The name of the kind."""
    items: int
    """The planned number of distinct items."""
    rate: float
    """The false positive rate when all planned items are in the filter."""
    size_bytes: int
    """The memory and the size of the file, in bytes."""
    bits_per_item: float
    """The bits for each planned item."""
    cache_lines: int
    """The number of cache lines that a lookup reads."""
    summary: str
    """What the kind is for."""


class Plans(list[Plan]):
    """The plans of all kinds. The first one is the recommended one."""

    why: str = ""
    """The reason for the recommended kind."""

    def __repr__(self) -> str:
        return _html.plans_text(self)

    def _repr_html_(self) -> str:
        return _html.plans_table(self)


def plan(items: int, rate: float) -> Plans:
    """Compare the sizes and the costs of all kinds for `items` distinct items at `rate`.

    >>> import tamis
    >>> best = tamis.plan(1_000_000, 0.01)[0]
    >>> best.kind, round(best.bits_per_item, 1), best.cache_lines
    ('split-block', 10.1, 1)
    """
    rows = _tamis.plans(items, rate)
    plans = Plans(Plan(**{name: row[name] for name in Plan._fields}) for row in rows)
    plans.why = rows[0]["why"]
    return plans
