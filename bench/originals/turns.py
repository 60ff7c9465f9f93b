"""How the originals of Python take turns with others: said by standard input, answered by standard output."""

import sys
import time


def spread(number):
    """An odd constant spreads numbers: the same as in `src/originals.rs`."""
    return number * 0x9E3779B97F4A7C15 % 2**64


def asked(members, count):
    """The numbers to ask for: half of them below `members`, and so in the filter."""
    return range(members - count // 2, members - count // 2 + count)


def take_turns(seen, items):
    """Asks for all items at each line that comes, and prints nanoseconds and how many it has.

    The first line it prints says that it is ready.
    """

    def ask():
        # Of the loops that Python has this is the fastest; what it costs itself is in the time, as it is for whoever asks. `issuperset`
        # loops outside of Python, but ends at the first item that is absent.
        return [item in seen for item in items]

    ask()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter_ns()
        answers = ask()
        nanos = time.perf_counter_ns() - start
        print(nanos, answers.count(True), flush=True)
