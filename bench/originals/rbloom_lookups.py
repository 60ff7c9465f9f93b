"""Asks a filter of rbloom: rbloom_lookups.py HASH FILE MEMBERS COUNT

Items are numbers that are their own hash, so that both sides get ready hashes. With HASH `given` it reads the filter that Tamis
wrote and is given a hash function, the cheapest that there is, as files ask for. With `own` it fills a filter itself and hashes
with Python's `hash`, which it calls without a detour through Python: of numbers below 2^61 - 1 that is the number, so
the bits are the same.
"""

import sys

from turns import asked, spread, take_turns

try:
    from rbloom import Bloom
except ImportError as error:
    sys.exit(str(error))


def item(number):
    return spread(number) >> 4


path, members, count = sys.argv[2], *map(int, sys.argv[3:])
if sys.argv[1] == "given":
    seen = Bloom.load(path, int)
else:
    seen = Bloom(members, 0.01)
    seen.update(map(item, range(members)))
take_turns(seen, [item(number) for number in asked(members, count)])
