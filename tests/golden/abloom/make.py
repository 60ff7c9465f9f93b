"""Writes abloom.json: see README.md."""
import json
from abloom import BloomFilter


def item(i):
    """Item i: text, bytes, a whole number or a floating point number, in turn."""
    kinds = [
        lambda: f"item {i} é你😀"[: 5 + i % 20],
        lambda: b"\xff\x00" + b"%d" % i,
        lambda: [i, -i, -1, 2**61 - 1 + i, -(2**61) + i, 10**30 + i][i % 6],
        lambda: [i / 8, -i / 8, -0.0, -1.0, 5e-324 * i, 1e300 * i, float("inf"), float("-inf")][i % 8],
    ]
    return kinds[i % 4]()


def written(value):
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    return [type(value).__name__, value if isinstance(value, str) else repr(value)]


filters = []
for capacity, rate, count, free in [
    (1, 0.5, 1, False),
    (20, 0.01, 20, False),
    (50, 0.001, 60, True),
    (10, 1e-15, 10, False),
    (200, 0.99, 80, False),
]:
    bloom = BloomFilter(capacity, rate, serializable=True, free_threading=free)
    # `update` returns nothing; `add` returns whether the item is new.
    new = [bloom.add(item(i)) for i in range(count)]
    file = bloom.to_bytes()
    assert BloomFilter.from_bytes(file).to_bytes() == file
    filters.append({
        "capacity": capacity,
        "rate": rate,
        "free_threading": free,
        "new": "".join("01"[it] for it in new),
        "to_bytes_hex": file.hex(),
        "found_0_399": "".join("01"[item(i) in bloom] for i in range(400)),
    })

plans = []
for items in [1, 2, 10, 100, 12_345, 1_000_000]:
    for rate in [0.999, 0.94, 0.93, 0.9, 0.5, 0.1, 0.03, 0.01, 0.001, 1e-5, 1e-7, 1e-9, 1e-10, 1e-11, 1e-300]:
        plans.append({"items": items, "rate": rate, "bits": BloomFilter(items, rate).bit_count})
# The number of blocks is near a whole number before it is rounded up.
for items, rate in [(15_105, 4.3950738719356774e-05), (59_539, 0.8106692420453958), (27_346, 8.407856697834527e-10),
                    (114_753, 0.5848007247412076), (67_594, 1.6880027874978642e-09), (65_066, 0.00013455342372276007)]:
    plans.append({"items": items, "rate": rate, "bits": BloomFilter(items, rate).bit_count})

with open("abloom.json", "w") as out:
    json.dump({"items": [written(item(i)) for i in range(400)], "filters": filters, "plans": plans}, out, indent=1)
    out.write("\n")
