"""Each line with `# error` is a mistake that mypy --strict and pyright reject."""

from __future__ import annotations

import tamis

tamis.Bloom()  # error
tamis.Bloom("a")  # error
tamis.Bloom(5, "a")  # error
tamis.Bloom(5, kind="cuckoo")  # error
tamis.Bloom(5, 0.1, "classic")  # error
tamis.Bloom(5, key="a")  # error
tamis.Cuckoo(5, bucket=3)  # error
tamis.DigestSet(bits=32)  # error
tamis.DigestSet(5)  # error
tamis.IntSet([5])  # error
tamis.Window(5, seconds="a")  # error
tamis.Bloom(5).add()  # error
tamis.Bloom(5).add(item="a")  # error
tamis.Bloom(5).remove("a")  # error
tamis.Bloom(5).advance(5)  # error
tamis.Counting(5).remove(1.5)  # error
tamis.Counting(5).count(None)  # error
tamis.IntSet().remove("a")  # error
tamis.Bloom(5).contains(["a"], threads="a")  # error
tamis.Bloom(5).contains(["a"], nope=1)  # error
tamis.Bloom(5).save(5)  # error
tamis.Bloom(5) | 5  # error
len(tamis.Bloom(5))  # error
tamis.open(5)  # error
tamis.open("a", in_memory="a")  # error
tamis.from_bytes("a")  # error
tamis.plan("a", 0.1)  # error
tamis.plan(5, 0.1)[0].nope  # error
tamis.nope  # error
number: int = tamis.Bloom(5).add("a").nope  # error
tamis.Bloom(5).add(1.5)  # error
tamis.Bloom(5).add(None)  # error
tamis.Bloom(5).add([1])  # error
