"""Plans of filters."""

from __future__ import annotations

from tamis import _display, _tamis


class Plan:
    """The size and the cost of one kind of filter.

    ``kind`` is the name of the kind, ``items`` the planned number of distinct items, and ``rate`` the
    false positive rate when all planned items are in the filter. ``size_bytes`` is the memory and
    the size of the file, ``bits_per_item`` the bits for each planned item, and ``cache_lines`` the
    number of cache lines that a lookup reads. ``summary`` says what the kind is for, and ``call``
    how to create the filter.
    """

    __slots__ = (
        "kind",
        "items",
        "rate",
        "size_bytes",
        "bits_per_item",
        "cache_lines",
        "summary",
        "call",
    )

    kind: str
    items: int
    rate: float
    size_bytes: int
    bits_per_item: float
    cache_lines: int
    summary: str
    call: str

    def __init__(
        self,
        kind: str,
        items: int,
        rate: float,
        size_bytes: int,
        bits_per_item: float,
        cache_lines: int,
        summary: str,
        call: str,
    ) -> None:
        self.kind = kind
        self.items = items
        self.rate = rate
        self.size_bytes = size_bytes
        self.bits_per_item = bits_per_item
        self.cache_lines = cache_lines
        self.summary = summary
        self.call = call

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Plan({values})"


class Plans(list[Plan]):
    """The plans of all kinds. The first one is the recommended one."""

    why: str = ""
    """The reason for the recommended kind."""

    def __repr__(self) -> str:
        return _display.plans_text(self)

    def _repr_html_(self) -> str:
        return _display.plans_table(self)


def plan(items: int, rate: float) -> Plans:
    """Compare the sizes and the costs of all kinds for `items` distinct items at `rate`.

    The first plan is the recommended one. A kind that cannot keep the rate is left out. Raises
    `PlanError` if no kind can.

    >>> import tamis
    >>> best = tamis.plan(1_000_000, 0.01)[0]
    >>> best.kind, round(best.bits_per_item, 1), best.cache_lines
    ('split-block', 10.1, 1)
    >>> best.call
    'Bloom(1000000, 0.01)'
    """
    rows = _tamis.plans(items, rate)
    plans = Plans()
    plans.why = rows[0].pop("why")
    for row in rows:
        plans.append(Plan(**row, call=_CALLS[row["kind"]].format(items=items, rate=rate)))
    return plans


# How to create a filter of each kind.
_CALLS = {
    "split-block": "Bloom({items}, {rate})",
    "classic": "Bloom({items}, {rate}, kind='classic')",
    "parquet": "Bloom({items}, {rate}, kind='parquet')",
    "cuckoo": "Cuckoo({items}, {rate})",
    "counting": "Counting({items}, {rate})",
    "growing": "Growing({rate})",
    "window": "Window({items}, {rate})",
}
