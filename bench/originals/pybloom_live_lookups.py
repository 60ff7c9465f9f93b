"""Asks a filter of pybloom_live: pybloom_live_lookups.py FILE MEMBERS COUNT

Reads the filter that Tamis wrote. Items are numbers as text, of which it computes a digest, as Tamis does.
"""

import sys

from turns import asked, spread, take_turns

try:
    from pybloom_live import BloomFilter
except ImportError as error:
    sys.exit(str(error))

path, members, count = sys.argv[1], *map(int, sys.argv[2:])
with open(path, "rb") as file:
    seen = BloomFilter.fromfile(file)
take_turns(seen, [str(spread(number)) for number in asked(members, count)])
