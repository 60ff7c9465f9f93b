"""Sets that answer "have I seen this?", for single items and whole arrays.

>>> import tamis
>>> seen = tamis.Bloom(1_000_000, 0.01)  # a million items, at most 1 % false positives
>>> seen.add("https://example.org/")  # True: the item is new
True
>>> "https://example.org/" in seen, "https://example.com/" in seen
(True, False)

Which class:

============  ==========================================================================
`Bloom`       the default: an item is new or not, for a planned number of items
`SharedBloom` the same, for several threads that insert at the same time
`Growing`     any number of items at a constant rate
`Cuckoo`      items can be removed, in few bits
`Counting`    items can be removed and counted, up to 15 times and more
`Window`      items expire after a time, or after a number of other items
`DigestSet`   exact, 21 to 29 bytes an item
`DigestFile`  the same, in a file that survives a killed process
`IntSet`      exact, for integers
============  ==========================================================================

`open` reads the files of every Tamis program and of many other systems, and `plan` compares the
sizes of all kinds. An item is a str, bytes, an int of 64 bits, a UUID, or a tuple of these; arrays
are numpy arrays and everything with the Arrow PyCapsule interface. ``docs/python.md`` has the guide.
"""

from tamis._errors import (
    ClosedError,
    FileError,
    FormatError,
    FullError,
    MergeError,
    PlanError,
    ReadOnlyError,
    SaturatedWarning,
    TamisError,
)
from tamis._files import Format, convert, create, formats, from_bytes, open
from tamis._filter import Filter
from tamis._kinds import (
    Bloom,
    Counting,
    Cuckoo,
    DigestFile,
    DigestSet,
    ForeignFilter,
    Growing,
    IntSet,
    SharedBloom,
    Window,
)
from tamis._plan import Plan, Plans, plan
from tamis._tamis import Booleans, __version__

_TYPE_CHECKING = False
if _TYPE_CHECKING:
    from tamis._filter import Item as Item

__all__ = [
    "Bloom",
    "Booleans",
    "ClosedError",
    "Counting",
    "Cuckoo",
    "DigestFile",
    "DigestSet",
    "FileError",
    "Filter",
    "ForeignFilter",
    "Format",
    "FormatError",
    "FullError",
    "Growing",
    "IntSet",
    "MergeError",
    "Plan",
    "PlanError",
    "Plans",
    "ReadOnlyError",
    "SaturatedWarning",
    "SharedBloom",
    "TamisError",
    "Window",
    "__version__",
    "convert",
    "create",
    "formats",
    "from_bytes",
    "open",
    "plan",
]

# Exceptions, pickles and `help` show the public module of a class or function.
for _name in __all__:
    if _name != "__version__":
        globals()[_name].__module__ = "tamis"
