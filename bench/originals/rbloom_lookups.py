"""Asks a filter of rbloom: rbloom_lookups.py FILE FIRST COUNT ROUNDS

Reads the filter that Tamis wrote, asks for COUNT numbers from FIRST on, whose hash is the number times an odd constant, and
prints how many it has, then nanoseconds a number for each round.
"""

import sys
import time

from rbloom import Bloom


def hash_of(item):
    return item * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**127


path, first, count, rounds = sys.argv[1], *map(int, sys.argv[2:])
seen = Bloom.load(path, hash_of)
items = range(first, first + count)
# Hashing is the user's, and not timed: the filter is asked by numbers that are their own hash.
hashes = [hash_of(item) for item in items]
seen = Bloom.load(path, int)
print(sum(hash in seen for hash in hashes))
for _ in range(rounds):
    start = time.perf_counter_ns()
    found = 0
    for hash in hashes:
        found += hash in seen
    print((time.perf_counter_ns() - start) / count)
