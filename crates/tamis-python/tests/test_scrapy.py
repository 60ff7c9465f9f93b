"""The dupe filters for Scrapy, with crawls of a small server in this process."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import logging
import multiprocessing
import multiprocessing.context
import os
import pickle
import shutil
import signal
import socket
import socketserver
import sqlite3
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scrapy")

import scrapy_crawl
import tamis
from conftest import server_program
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.request import RequestFingerprinter
from scrapy.utils.test import get_crawler
from tamis.scrapy import DupeFilter, ServerDupeFilter, _scrapy_files
from tamis.scrapy import _seen as seen_module
from tamis.scrapy._journal import Journal
from tamis.scrapy._seen import ExactSet, FilterSet
from tamis.scrapy._server import ServerError, ServerSet

DEADLINE_SECONDS = 60

TAMIS = "tamis.scrapy.DupeFilter"
SERVER = "tamis.scrapy.ServerDupeFilter"


class Page:
    """What the server answers to a path."""

    def __init__(
        self,
        *links: str,
        status: int = 200,
        headers: dict[str, str] | None = None,
        body: str | None = None,
        gate: threading.Event | None = None,
        then: Page | None = None,
        is_broken: bool = False,
    ) -> None:
        self.status = status
        self.headers = headers or {}
        self.gate = gate
        #: The page from the second request on.
        self.then = then
        #: Whether the connection ends in the middle of the response.
        self.is_broken = is_broken
        if body is None:
            anchors = []
            for link in links:
                path, _, options = link.partition(" ")
                anchors.append(f"<a data-options='{options or '{}'}' href='{path}'>x</a>")
            body = "<html><body>" + "".join(anchors) + "</body></html>"
        self.body = body.encode()


class Site:
    """A server of pages that records the paths of its requests."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.hits: list[str] = []
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with site._lock:
                    page = site.pages.get(self.path, Page(status=404))
                    if page.then is not None and self.path in site.hits:
                        page = page.then
                    site.hits.append(self.path)
                if page.gate is not None:
                    page.gate.wait(DEADLINE_SECONDS)
                if page.is_broken:
                    self.close_connection = True
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
                    return
                try:
                    self.send_response(page.status)
                    self.send_header("Content-Type", "text/html")
                    self.send_header("Content-Length", str(len(page.body)))
                    for name, value in page.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(page.body)
                except OSError:
                    self.close_connection = True

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, ValueError):
                    pass

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self._thread.start()

    def take_hits(self) -> list[str]:
        """Return the paths since the last call, without robots.txt."""
        with self._lock:
            hits, self.hits = self.hits, []
        return [it for it in hits if it != "/robots.txt"]

    def close(self) -> None:
        for page in self.pages.values():
            if page.gate is not None:
                page.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(DEADLINE_SECONDS)


class Crawl:
    """A crawler in a child process."""

    def __init__(
        self,
        site: Site,
        folder: Path,
        settings: dict[str, Any],
        crawlers: int = 1,
        start: tuple[str, ...] = ("/",),
    ) -> None:
        self._out = folder / f"crawl-{time.monotonic_ns()}.out"
        self._log = self._out.with_suffix(".log")
        self._out.touch()
        self._log.touch()
        job = (site.base, start, settings, crawlers, str(self._out), str(self._log))
        self.process = context().Process(target=scrapy_crawl.main, args=job)
        self.process.start()

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def events(self) -> list[dict[str, Any]]:
        lines = self._out.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            assert self.process.is_alive(), f"the crawler ended before {what}: {self.log}"
            assert time.monotonic() < deadline, f"no {what} in time: {self.log}"
            time.sleep(0.01)

    def kill(self) -> None:
        self.process.kill()
        self.process.join(DEADLINE_SECONDS)

    def end(self) -> list[dict[str, Any]]:
        """Wait for the end. Returns the statistics of each crawler."""
        self.process.join(DEADLINE_SECONDS)
        if self.process.exitcode is None:
            self.process.kill()
            raise AssertionError(f"the crawler did not end in time: {self.log}")
        return [it["stats"] for it in self.events() if "stats" in it]


@functools.cache
def context() -> multiprocessing.context.ForkServerContext:
    """Return the way to start crawlers: forks of one process that has imported Scrapy."""
    paths = [str(Path(__file__).parent), str(Path(tamis.__file__).parents[1])]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["scrapy_crawl", "tamis.scrapy"])
    return context


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


def crawl(site: Site, folder: Path, **settings: Any) -> dict[str, Any]:
    """Crawl the site to the end. Returns the statistics."""
    settings.setdefault("DUPEFILTER_CLASS", TAMIS)
    run = Crawl(site, folder, settings)
    (stats,) = run.end()
    assert stats.get("finish_reason") == "finished", run.log
    stats["log"] = run.log
    stats["events"] = run.events()
    return stats


def graph(site: Site) -> set[str]:
    """Make a graph of 20 pages that link each other many times. Returns all paths."""
    paths = [f"/{i}" for i in range(20)]
    site.pages["/"] = Page("/0", "/1", "/1", "/")
    for i in range(20):
        site.pages[paths[i]] = Page(*(paths[(i * k + 1) % 20] for k in range(1, 6)), "/")
    reached, todo = {"/"}, ["/0", "/1"]
    while todo:
        path = todo.pop()
        if path not in reached:
            reached.add(path)
            todo += [paths[(int(path[1:]) * k + 1) % 20] for k in range(1, 6)]
    return reached


def once(hits: list[str]) -> set[str]:
    """Return the paths, each of which was requested once."""
    assert len(hits) == len(set(hits)), sorted(it for it in hits if hits.count(it) > 1)
    return set(hits)


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def dupe_filter(cls: type[DupeFilter] = DupeFilter, **settings: Any) -> DupeFilter:
    """Create a dupe filter in this process, as Scrapy does."""
    crawler = get_crawler(Spider, settings)
    crawler.spider = Spider("a")
    return cls.from_crawler(crawler)


def state_files(folder: Path) -> list[str]:
    return sorted(it.name for it in folder.glob("tamis-seen-*.state"))


# The default filter.


def test_the_default_filter_crawls_the_pages_of_scrapys_own_filter_once(
    site: Site, tmp_path: Path
) -> None:
    pages = graph(site)
    own = crawl(site, tmp_path, DUPEFILTER_CLASS="scrapy.dupefilters.RFPDupeFilter")
    assert once(site.take_hits()) == pages
    stats = crawl(site, tmp_path)
    assert once(site.take_hits()) == pages
    assert stats["dupefilter/unique"] == len(pages)
    assert stats["dupefilter/filtered"] == own["dupefilter/filtered"] > len(pages)
    assert "dupefilter/expected_skips" not in stats

    def lines(log: str) -> list[str]:
        found = [it for it in log.splitlines() if "Filtered duplicate" in it]
        return sorted(it.split("DEBUG: ", 1)[1] for it in found)

    assert len(lines(stats["log"])) == 1
    assert "no more duplicates will be shown" in lines(stats["log"])[0]
    # Which duplicate is the first depends on the order of the responses.
    assert lines(stats["log"])[0].split(">")[1] == lines(own["log"])[0].split(">")[1]


def test_dupefilter_debug_logs_each_duplicate_as_scrapys_own_filter(
    site: Site, tmp_path: Path
) -> None:
    site.pages = {"/": Page("/a", "/a", "/b"), "/a": Page("/b"), "/b": Page("/")}
    found = []
    for name in (TAMIS, "scrapy.dupefilters.RFPDupeFilter"):
        log = crawl(site, tmp_path, DUPEFILTER_CLASS=name, DUPEFILTER_DEBUG=True)["log"]
        lines = [it.split("DEBUG: ", 1)[1] for it in log.splitlines() if "Filtered dup" in it]
        found.append(sorted(lines))
    assert found[0] == found[1]
    assert len(found[0]) == 3 and "(referer: http" in found[0][0]


def test_dont_filter_and_custom_fingerprints(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "/": Page("/x", "/x", '/again {"dont_filter":true}', '/again {"dont_filter":true}'),
        "/x": Page("/", "/xx", "/yyyy"),
    }
    stats = crawl(site, tmp_path, REQUEST_FINGERPRINTER_CLASS="words")
    hits = site.take_hits()
    assert sorted(hits) == ["/", "/again", "/again", "/x", "/xx", "/yyyy"]
    assert stats["dupefilter/unique"] == 4 and stats["dupefilter/filtered"] == 2


@pytest.mark.parametrize("seen", ["exact", "bloom"])
def test_fingerprints_are_bytes_of_any_length(tmp_path: Path, seen: str) -> None:
    class Lengths:
        def fingerprint(self, request: Request) -> bytes:
            return b"\xff" * int(request.url.rsplit("/", 1)[1])

    settings = {"REQUEST_FINGERPRINTER_CLASS": Lengths, "JOBDIR": str(tmp_path), "TAMIS_SEEN": seen}
    requests = [Request(f"http://a/{n}") for n in (0, 1, 8, 16, 20, 70_000)]
    filter = dupe_filter(**settings)
    assert [filter.request_seen(it) for it in requests] == [False] * 6
    assert [filter.request_seen(it) for it in requests] == [True] * 6
    filter.close("shutdown")
    filter = dupe_filter(**settings)
    assert [filter.request_seen(it) for it in requests] == [True] * 6
    filter.close("shutdown")


WRONG_TIMES = (0, -1, "abc", "", "nan", "inf", True, 0.5, 1e30, [5])


@pytest.mark.parametrize(
    ("name", "value", "rest"),
    [
        *(("TAMIS_EXPIRE", it, {}) for it in WRONG_TIMES),
        *(("TAMIS_RATE", it, {"TAMIS_SEEN": "bloom"}) for it in (0, 1, "abc", "nan", -0.1)),
        *(("TAMIS_ITEMS", it, {"TAMIS_SEEN": "bloom"}) for it in (0, "abc", 1.5, "nan", 1e300)),
        ("TAMIS_SEEN", "exakt", {}),
        ("TAMIS_MARK", "failure", {}),
    ],
)
def test_a_wrong_setting_is_one_clear_error(
    tmp_path: Path, name: str, value: object, rest: dict[str, str]
) -> None:
    with pytest.raises(ValueError) as error:
        dupe_filter(**{name: value, "JOBDIR": str(tmp_path / "job"), **rest})
    assert str(error.value).startswith(f"{name} must be ") and repr(value) in str(error.value)
    # The folder is free again.
    filter = dupe_filter(JOBDIR=str(tmp_path / "job"), **rest)
    filter.close("finished")


# Jobs.


@pytest.mark.parametrize("mark", ["scheduled", "success"])
def test_a_finished_job_crawls_nothing_again(site: Site, tmp_path: Path, mark: str) -> None:
    pages = graph(site)
    job = {"JOBDIR": str(tmp_path / "job"), "TAMIS_MARK": mark}
    crawl(site, tmp_path, **job)
    assert once(site.take_hits()) == pages
    stats = crawl(site, tmp_path, **job)
    assert site.take_hits() == []
    assert stats["dupefilter/filtered"] == 1 and "dupefilter/unique" not in stats


def tree(site: Site) -> set[str]:
    """Make a tree of 6 pages with 5 leaves each. The last three pages do not answer."""
    gate = threading.Event()
    site.pages["/"] = Page(*(f"/{i}" for i in range(6)))
    for i in range(6):
        options = ' {"dont_filter":true}'
        leaves = [f"/{i}/{k}" + (options if k == 0 else "") for k in range(5)]
        site.pages[f"/{i}"] = Page(*leaves, gate=gate if i >= 3 else None)
        for k in range(5):
            site.pages[f"/{i}/{k}"] = Page("/")
    return set(site.pages)


def fingerprints(site: Site, paths: set[str]) -> dict[str, bytes]:
    fingerprinter = RequestFingerprinter()
    return {it: fingerprinter.fingerprint(Request(site.base + it)) for it in paths}


@pytest.mark.parametrize("mark", ["scheduled", "success"])
@pytest.mark.parametrize("seen", ["exact", "bloom"])
def test_a_killed_crawler_loses_no_page(site: Site, tmp_path: Path, mark: str, seen: str) -> None:
    pages = tree(site)
    folder = tmp_path / "job"
    # The default queue writes less to the disk than the others.
    job = {
        "JOBDIR": str(folder),
        "TAMIS_MARK": mark,
        "TAMIS_SEEN": seen,
        "CONCURRENT_REQUESTS": 4,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleLifoDiskQueue",
    }
    first = Crawl(site, tmp_path, {"DUPEFILTER_CLASS": TAMIS, **job})
    first.wait_for(lambda: sum(it.count("/") == 2 for it in site.hits) >= 5, "leaves")
    first.kill()
    before = set(site.take_hits())
    assert before < pages
    if seen == "exact" and mark == "scheduled":
        known = ExactSet(str(folder), None)
        filtered = {it for it in before if not it.endswith("/0") or it == "/0"}
        assert all(known.contains(it) for it in fingerprints(site, filtered).values())
        known.close()
    for page in site.pages.values():
        page.gate = None
    stats = crawl(site, tmp_path, **job)
    hits = site.take_hits()
    assert before | set(hits) == pages
    if seen == "exact":
        # The second crawler went on, and did not start again.
        assert "/" not in hits and len(once(hits)) < len(pages)
    assert "Resuming a crawl that was killed" in stats["log"]
    # Without a kill, nothing is recovered.
    assert "that was killed" not in crawl(site, tmp_path, **job)["log"]
    assert site.take_hits() == []


def test_a_killed_crawler_crawls_exactly_the_pages_without_a_response_again(
    site: Site, tmp_path: Path
) -> None:
    pages = tree(site)
    settings = {"DUPEFILTER_CLASS": TAMIS, "TAMIS_MARK": "success", "JOBDIR": str(tmp_path / "job")}
    answered = {it for it in pages if it[1:2] in ("", "0", "1", "2")}
    # A page leaves the journal last, after its callback.
    report = ("tamis.scrapy._journal:Journal.remove", len(answered), "after")
    first = Crawl(site, tmp_path, {**settings, "REPORT": report})
    first.wait_for(lambda: {"called": True} in first.events(), "all pages that answer")
    first.kill()
    assert once(site.take_hits()) == answered | {"/3", "/4", "/5"}
    for page in site.pages.values():
        page.gate = None
    crawl(site, tmp_path, **settings)
    assert once(site.take_hits()) == pages - answered


# Kills at many points. A run of the spider of numbers has no server, and takes about 0.3 s.

OWN = "scrapy.dupefilters.RFPDupeFilter"


def run_numbers(site: Site, folder: Path, **settings: Any) -> Crawl:
    """Run the spider of numbers to its end, or until it is killed."""
    settings = {"DUPEFILTER_CLASS": TAMIS, "JOBDIR": str(folder / "job"), **settings}
    # The default queue writes less to the disk than the others.
    queue = "scrapy.squeues.PickleLifoDiskQueue"
    one = {"NUMBERS": True, "CONCURRENT_REQUESTS": 1, "SCHEDULER_DISK_QUEUE": queue}
    run = Crawl(site, folder, {**one, **settings})
    run.end()
    assert (run.process.exitcode == -signal.SIGKILL) == ("KILL" in settings), run.log
    return run


def numbers(runs: list[Crawl]) -> list[str]:
    return [it["page"] for run in runs for it in run.events() if "page" in it]


def all_numbers() -> set[str]:
    second = {f"data:,0/{i}" for i in range(10)}
    return {"data:,0"} | second | {f"{it}/{i}" for it in second for i in range(9)}


def assert_all_numbers(runs: list[Crawl]) -> None:
    lost = all_numbers() - set(numbers(runs))
    assert not lost, (sorted(lost), [it.log for it in runs])


PARSE = "scrapy_crawl:Numbers.parse"
CLOSE = {"CLOSESPIDER_PAGECOUNT": 15}

# Where a crawler is killed: a function, the number of the call, before or after the call.
KILLS: dict[str, list[tuple[str, int, str, dict[str, Any]]]] = {
    "at each step of the first requests": [(PARSE, n, "before", {}) for n in (1, 2, 3, 5, 20)],
    "between the journal, the set and the queue": [
        ("tamis.scrapy._journal:Journal.add", 8, "after", {}),
        ("tamis.scrapy._seen:ExactSet.add", 25, "before", {}),
        ("tamis.scrapy._seen:ExactSet.add", 30, "after", {}),
        ("scrapy.pqueues:ScrapyPriorityQueue.push", 20, "after", {}),
        ("tamis.scrapy._journal:Journal.remove", 5, "before", {}),
        ("tamis.scrapy._journal:Journal.remove", 5, "after", {}),
    ],
    "while the crawler stops": [
        ("scrapy.core.scheduler:Scheduler.close", 1, "before", CLOSE),
        ("json:dump", 1, "before", CLOSE),
        ("tamis.scrapy._dupe_filter:DupeFilter.close", 1, "before", CLOSE),
        ("tamis.scrapy._journal:Journal.close", 1, "before", CLOSE),
        ("tamis.scrapy._journal:Journal.close", 1, "after", CLOSE),
    ],
    "while a job opens": [
        (PARSE, 5, "before", {}),
        ("tamis.scrapy._journal:Journal.start", 1, "before", {}),
        ("tamis.scrapy._journal:Journal.start", 1, "after", {}),
        ("tamis.scrapy._scrapy_files:Queue.delete", 1, "after", {}),
        ("scrapy.core.scheduler:Scheduler.open", 1, "after", {}),
        ("scrapy.pqueues:ScrapyPriorityQueue.push", 3, "before", {}),
    ],
}


@pytest.mark.parametrize("name", KILLS)
def test_a_crawler_that_is_killed_again_and_again_loses_no_page(
    site: Site, tmp_path: Path, name: str
) -> None:
    runs = [
        run_numbers(site, tmp_path, KILL=(path, number, when), **settings)
        for path, number, when, settings in KILLS[name]
    ]
    runs.append(run_numbers(site, tmp_path))
    assert_all_numbers(runs)
    assert numbers([run_numbers(site, tmp_path)]) == []


@pytest.mark.parametrize(
    "path",
    [
        PARSE,
        "tamis.scrapy._journal:Journal.add",
        "tamis.scrapy._journal:Journal.start",
        "tamis.scrapy._scrapy_files:Queue.forget_state",
        "tamis.scrapy._seen:ExactSet.add",
    ],
)
def test_a_job_of_scrapys_own_filter_loses_no_page_by_a_kill(
    site: Site, tmp_path: Path, path: str
) -> None:
    """The requests of the queue are not in the journal of the first crawler of Tamis."""
    runs = [run_numbers(site, tmp_path, DUPEFILTER_CLASS=OWN, CLOSESPIDER_PAGECOUNT=5)]
    number = 1 if path.endswith(("start", "state")) else 4
    runs.append(run_numbers(site, tmp_path, KILL=(path, number, "after")))
    runs.append(run_numbers(site, tmp_path))
    assert_all_numbers(runs)
    # The fingerprints of Scrapy's own filter are known, and the requests of its queue.
    assert len(numbers(runs)) < 101 + 10


@pytest.mark.parametrize("own", [{"CLOSESPIDER_PAGECOUNT": 5}, {"KILL": (PARSE, 7, "before")}])
@pytest.mark.parametrize("tamis_", [{"CLOSESPIDER_PAGECOUNT": 4}, {"KILL": (PARSE, 4, "before")}])
def test_a_job_that_changes_its_filter_in_both_directions_loses_no_page(
    site: Site, tmp_path: Path, tamis_: dict[str, Any], own: dict[str, Any]
) -> None:
    runs = [run_numbers(site, tmp_path, **tamis_)]
    own_run = run_numbers(site, tmp_path, DUPEFILTER_CLASS=OWN, **own)
    if "KILL" in own and "KILL" not in tamis_:
        # The journal does not have the requests of Scrapy's own filter, which the kill has lost.
        queue = tmp_path / "job" / "requests.queue"
        refused = run_numbers(site, tmp_path)
        assert f"cannot start: {queue}: the queue of Scrapy cannot be read: " in refused.log
        assert numbers([refused]) == [] and not list(queue.parent.glob("*.unread*"))
        # The advice of the message.
        shutil.rmtree(queue)
        (tmp_path / "job" / "requests.seen").unlink()
    runs.append(run_numbers(site, tmp_path))
    assert_all_numbers([*runs, own_run])


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("tamis.scrapy._seen:ExactSet.add", 20),
        ("tamis.scrapy._seen:ExactSet.contains", 20),
        ("tamis.scrapy._journal:Journal.add", 20),
        ("tamis.scrapy._journal:Journal.remove", 3),
    ],
)
def test_a_set_or_a_journal_that_fails_loses_no_page(
    site: Site, tmp_path: Path, path: str, number: int
) -> None:
    failed = run_numbers(site, tmp_path, FAIL=(path, number, "before"))
    assert failed.end()[0]["finish_reason"] == "dupefilter_error"
    runs = [failed, run_numbers(site, tmp_path, KILL=(PARSE, 5, "before"))]
    runs.append(run_numbers(site, tmp_path))
    assert_all_numbers(runs)
    assert len(numbers(runs)) < 101 + 20


PUSH = "scrapy.pqueues:ScrapyPriorityQueue.push"
POP = "scrapy.pqueues:ScrapyPriorityQueue.pop"


@pytest.mark.parametrize("mark", ["scheduled", "success"])
@pytest.mark.parametrize("number", [1, 5])
def test_a_recovery_whose_queue_fails_stops_the_spider_and_loses_no_page(
    site: Site, tmp_path: Path, number: int, mark: str
) -> None:
    job = {"TAMIS_MARK": mark}
    runs = [run_numbers(site, tmp_path, KILL=(PARSE, 3, "before"), **job)]
    runs.append(run_numbers(site, tmp_path, FAIL_ONCE=(PUSH, number, "before"), **job))
    assert runs[1].end()[0]["finish_reason"] == "dupefilter_error", runs[1].log
    assert runs[1].log.count("The dupe filter failed, and closes the spider: ") == 1
    runs.append(run_numbers(site, tmp_path, **job))
    assert runs[2].end()[0]["finish_reason"] == "finished"
    assert_all_numbers(runs)
    assert numbers([run_numbers(site, tmp_path, **job)]) == []


@pytest.mark.parametrize("stop", [{}, {"CLOSESPIDER_PAGECOUNT": 30}])
@pytest.mark.parametrize("mark", ["scheduled", "success"])
@pytest.mark.parametrize(
    ("path", "number"),
    [
        # The first page, a page of the first page, and a page with `dont_filter`.
        *((PUSH, number) for number in (1, 4, 12)),
        # A request that left the file of the queue. Every other call is of the queue in memory.
        (POP, 8),
    ],
)
def test_a_queue_that_fails_once_loses_no_page(
    site: Site, tmp_path: Path, path: str, number: int, mark: str, stop: dict[str, Any]
) -> None:
    job = {"TAMIS_MARK": mark}
    failing = {"FAIL_ONCE": (path, number, "before" if path == PUSH else "after")}
    runs = [run_numbers(site, tmp_path, **failing, **job, **stop)]
    runs.append(run_numbers(site, tmp_path, **job))
    assert_all_numbers(runs)
    log = runs[0].log
    if runs[0].end()[0]["finish_reason"] == "finished":
        assert log.count(" were not crawled, and stay in the job") == 1, log
    # At most the pages whose callbacks ran are crawled again.
    assert len(numbers(runs)) < 101 + 10
    runs = [run_numbers(site, tmp_path, **job)]
    assert numbers(runs) == [] and "stay in the job" not in runs[0].log


@pytest.mark.parametrize("dont_filter", ["false", "true"])
@pytest.mark.parametrize("how", ["middleware", "signal"])
def test_a_request_that_is_dropped_on_purpose_is_not_crawled_again(
    site: Site, tmp_path: Path, how: str, dont_filter: str
) -> None:
    options = f' {{"dont_filter":{dont_filter}}}'
    site.pages = {"/": Page("/a", *(f"/drop/{i}{options}" for i in range(5))), "/a": Page()}
    site.pages |= {f"/drop/{i}": Page() for i in range(5)}
    job = {"DUPEFILTER_CLASS": TAMIS, "JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 1}
    if how == "signal":
        # The requests of a killed crawler are dropped when they are scheduled again.
        Crawl(site, tmp_path, {**job, "KILL": ("scrapy_crawl:Pages.parse", 2, "before")}).end()
        site.take_hits()
    log = crawl(site, tmp_path, DROP=how, **job)["log"]
    assert not any("drop" in it for it in site.take_hits())
    assert "stay in the job" not in log
    crawl(site, tmp_path, **job)
    assert site.take_hits() == []


def test_a_crawler_that_is_killed_after_its_set_failed_loses_no_page(
    site: Site, tmp_path: Path
) -> None:
    failing = {"FAIL": ("tamis.scrapy._seen:ExactSet.add", 15, "before")}
    killing = {"KILL": ("scrapy.core.scheduler:Scheduler.close", 1, "before")}
    runs = [run_numbers(site, tmp_path, **failing, **killing), run_numbers(site, tmp_path)]
    assert_all_numbers(runs)


@pytest.mark.parametrize("stops", [0, 1, 3, 12])
def test_a_queue_that_scrapys_own_filter_has_lost_is_refused(
    site: Site, tmp_path: Path, stops: int
) -> None:
    queue = tmp_path / "job" / "requests.queue"
    runs = []
    if stops:
        runs = [run_numbers(site, tmp_path, DUPEFILTER_CLASS=OWN, CLOSESPIDER_PAGECOUNT=stops)]
        # The file of the queue may be unchanged, if the killed crawler had only begun.
        past = time.time() - 5
        for path in (*queue.rglob("*"), queue, queue.parent / "requests.seen"):
            os.utime(path, (past, past))
    runs.append(run_numbers(site, tmp_path, DUPEFILTER_CLASS=OWN, KILL=(PARSE, 5, "before")))
    refused = run_numbers(site, tmp_path)
    assert f"cannot start: {queue}: the queue of Scrapy cannot be read: " in refused.log
    # The advice of the message.
    shutil.rmtree(queue)
    (tmp_path / "job" / "requests.seen").unlink(missing_ok=True)
    assert_all_numbers([*runs, run_numbers(site, tmp_path)])


@pytest.mark.parametrize("has_state", [False, True])
def test_a_queue_whose_last_request_scrapys_own_filter_has_lost_is_refused(
    tmp_path: Path, has_state: bool
) -> None:
    queue = tmp_path / "requests.queue"
    queue.mkdir()
    (tmp_path / "requests.seen").write_text("ab" * 20 + "\n")
    if has_state:
        (queue / "active.json").write_text("[0]")
        os.utime(queue / "active.json", (1e9, 1e9))
    with pytest.raises(tamis.FileError, match="the queue of Scrapy cannot be read: the crawler"):
        dupe_filter(JOBDIR=str(tmp_path))
    # The advice of the message.
    shutil.rmtree(queue)
    (tmp_path / "requests.seen").unlink()
    filter = dupe_filter(JOBDIR=str(tmp_path))
    assert not filter._seen.contains(b"\xab" * 20)
    filter.close("finished")


def test_a_queue_that_cannot_be_read_is_kept_beside_an_open_journal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    queue = tmp_path / "requests.queue"
    for content in ("[0]", "[1]", "[2]"):
        filter = dupe_filter(JOBDIR=str(tmp_path))
        filter.request_seen(Request("http://a/"))
        assert filter._job is not None
        filter._job.abandon()
        filter._seen.close()
        (queue / "0").mkdir(parents=True)
        (queue / "0" / "info.json").write_text("no JSON")
        (queue / "active.json").write_text(content)
    filter = dupe_filter(JOBDIR=str(tmp_path))
    filter.close("shutdown")
    assert caplog.text.count("The crawl goes on with the journal. ") == 3
    # No queue is deleted.
    names = ("requests.queue.unread", "requests.queue.unread-2", "requests.queue.unread-3")
    found = [(tmp_path / it / "active.json").read_text() for it in names]
    assert found == ["[0]", "[1]", "[2]"]
    assert not queue.exists() and not (tmp_path / "tamis-copy").exists()


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("where", ["shutil.copyfile", "scrapy.core.scheduler.Scheduler.open"])
def test_a_queue_that_cannot_be_copied_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, code: int, is_closed: bool
) -> None:
    queue = tmp_path / "requests.queue"
    filter = dupe_filter(JOBDIR=str(tmp_path))
    if is_closed:
        filter.close("shutdown")
    else:
        assert filter._job is not None
        filter._job.abandon()
        filter._seen.close()
    (queue / "0").mkdir(parents=True)
    for name in ("info.json", "q00000"):
        (queue / "0" / name).write_text("x" * 100)
    (queue / "active.json").write_text("[0]")

    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as context:
        context.setattr(where, fail)
        with pytest.raises(tamis.FileError) as error:
            dupe_filter(JOBDIR=str(tmp_path))
    message = str(error.value)
    assert type(error.value) is tamis.FileError
    assert message.startswith(f"{queue}: ") and os.strerror(code) in message
    assert "restore" not in message and "shutil" not in message and "[(" not in message
    assert sorted(it.name for it in queue.rglob("*")) == ["0", "active.json", "info.json", "q00000"]
    assert not (tmp_path / "tamis-copy").exists()
    assert not list(tmp_path.glob("*.unread*"))


def test_a_copied_queue_of_scrapys_own_filter_goes_on_after_a_touch(
    site: Site, tmp_path: Path
) -> None:
    runs = [run_numbers(site, tmp_path, DUPEFILTER_CLASS=OWN, CLOSESPIDER_PAGECOUNT=5)]
    state = tmp_path / "job" / "requests.queue" / "active.json"
    os.utime(state, (1, 1))
    assert f"touch {state}" in run_numbers(site, tmp_path).log
    state.touch()
    runs.append(run_numbers(site, tmp_path))
    assert_all_numbers(runs)
    assert len(numbers(runs)) < 101 + 10


@pytest.mark.parametrize(
    "settings",
    [
        {"TAMIS_MARK": "success"},
        {"TAMIS_SEEN": "bloom"},
        {"TAMIS_SEEN": "bloom", "TAMIS_MARK": "success", "TAMIS_EXPIRE": 3600},
    ],
)
def test_a_job_of_each_kind_loses_no_page_by_kills(
    site: Site, tmp_path: Path, settings: dict[str, Any]
) -> None:
    runs = [
        run_numbers(site, tmp_path, KILL=(PARSE, 3, "before"), **settings),
        run_numbers(site, tmp_path, CLOSESPIDER_PAGECOUNT=4, **settings),
        run_numbers(site, tmp_path, KILL=(PARSE, 12, "before"), **settings),
        run_numbers(site, tmp_path, **settings),
    ]
    assert_all_numbers(runs)


def test_a_start_request_that_the_spider_makes_once_survives_a_kill(
    site: Site, tmp_path: Path
) -> None:
    runs = [run_numbers(site, tmp_path, START_ONCE=True, KILL=(PARSE, 1, "before"))]
    runs += [run_numbers(site, tmp_path, START_ONCE=True) for _ in range(2)]
    assert_all_numbers(runs)
    assert numbers(runs[2:]) == []


def test_a_request_that_copies_the_meta_of_a_start_request_survives_a_kill(
    site: Site, tmp_path: Path
) -> None:
    site.pages["/"] = Page('/a {"copy_meta":true,"dont_filter":true}')
    site.pages["/a"] = Page()
    job = {"DUPEFILTER_CLASS": TAMIS, "JOBDIR": str(tmp_path / "job")}
    Crawl(site, tmp_path, {**job, "KILL": ("scrapy_crawl:Pages.parse", 2, "before")}).end()
    assert site.take_hits() == ["/", "/a"]
    crawl(site, tmp_path, **job)
    assert site.take_hits() == ["/a"]


def test_a_request_of_an_idle_spider_survives_a_set_that_fails(site: Site, tmp_path: Path) -> None:
    # Before, 91 pages are tested twice each, because an insert tests the page, too.
    failing = {"IDLE": True, "FAIL": ("tamis.scrapy._seen:ExactSet.contains", 183, "before")}
    runs = [run_numbers(site, tmp_path, **failing)]
    assert runs[0].end()[0]["finish_reason"] == "dupefilter_error"
    assert_all_numbers(runs)
    assert numbers([run_numbers(site, tmp_path)]) == ["data:,idle"]


def test_a_request_that_cannot_be_read_stays_in_the_job(site: Site, tmp_path: Path) -> None:
    runs = [run_numbers(site, tmp_path, KILL=(PARSE, 3, "before"))]

    def change(statement: str, *values: object) -> Any:
        with contextlib.closing(sqlite3.connect(tmp_path / "job" / "tamis-unfinished.db")) as db:
            row = db.execute(statement, values).fetchone()
            db.commit()
            return row

    key, request = change("SELECT key, request FROM requests ORDER BY rowid")
    change("UPDATE requests SET request = ? WHERE key = ?", b"x", key)
    for _ in range(2):
        runs.append(run_numbers(site, tmp_path))
        assert runs[-1].log.count("An unfinished request cannot be read, and stays in the job") == 1
    assert set(numbers(runs)) < all_numbers()
    change("UPDATE requests SET request = ? WHERE key = ?", request, key)
    runs.append(run_numbers(site, tmp_path))
    assert_all_numbers(runs)
    assert change("SELECT count(*) FROM requests") == (0,)


@pytest.mark.parametrize("seen", ["exact", "bloom"])
def test_a_kill_does_not_lose_the_fingerprints_of_scrapys_own_filter(
    site: Site, tmp_path: Path, seen: str
) -> None:
    items = [bytes([i]) * 20 for i in range(100)]
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "requests.seen").write_text("".join(it.hex() + "\n" for it in items))
    step = ("tamis:DigestFile.add", 50) if seen == "exact" else ("tamis:Growing.save", 1)
    run_numbers(site, tmp_path, TAMIS_SEEN=seen, KILL=(*step, "before"))
    # A filter of Scrapy loses its queue by a kill, so later fingerprints are not read.
    with open(folder / "requests.seen", "a") as file:
        file.write("ff" * 20 + "\n")
    for _ in range(2):
        filter = dupe_filter(JOBDIR=str(folder), TAMIS_SEEN=seen)
        assert all(filter._seen.contains(it) for it in items)
        assert not filter._seen.contains(b"\xff" * 20)
        filter.close("shutdown")


def test_a_spider_that_closes_as_finished_with_a_queue_loses_no_page(
    site: Site, tmp_path: Path
) -> None:
    runs = [run_numbers(site, tmp_path, FINISH_AT=5)]
    assert runs[0].end()[0]["finish_reason"] == "finished"
    runs.append(run_numbers(site, tmp_path, KILL=(PARSE, 3, "before")))
    runs.append(run_numbers(site, tmp_path))
    assert_all_numbers(runs)


def test_a_crawler_that_stops_in_order_goes_on(site: Site, tmp_path: Path) -> None:
    pages = tree(site)
    for page in site.pages.values():
        page.gate = None
    job = {"JOBDIR": str(tmp_path / "job"), "TAMIS_MARK": "success", "CONCURRENT_REQUESTS": 2}
    run = Crawl(site, tmp_path, {"DUPEFILTER_CLASS": TAMIS, "CLOSESPIDER_PAGECOUNT": 6, **job})
    assert run.end()[0]["finish_reason"] == "closespider_pagecount"
    before = once(site.take_hits())
    stats = crawl(site, tmp_path, **job)
    after = once(site.take_hits())
    assert not before & after and before | after == pages
    assert "Resuming crawl (" in stats["log"] and "that was killed" not in stats["log"]


def test_a_second_crawler_with_the_same_job_fails(site: Site, tmp_path: Path) -> None:
    for seen in ("exact", "bloom"):
        pages = tree(site)
        job = {
            "DUPEFILTER_CLASS": TAMIS,
            "JOBDIR": str(tmp_path / f"job-{seen}"),
            "TAMIS_SEEN": seen,
        }
        first = Crawl(site, tmp_path, job)
        first.wait_for(lambda: "/3" in site.hits, "page")
        second = Crawl(site, tmp_path, job)
        second.end()
        message = f"cannot start: {job['JOBDIR']}: another crawler is using this JOBDIR"
        assert second.log.count(message) == 1 and second.process.exitcode != 0
        for page in site.pages.values():
            if page.gate is not None:
                page.gate.set()
        first.end()
        assert once(site.take_hits()) == pages
        site.pages.clear()


def test_a_damaged_file_of_a_job_is_refused_with_advice(tmp_path: Path) -> None:
    request = Request("http://a/")
    for seen, pattern in (
        ("exact", "tamis-seen-*.state"),
        ("bloom", "tamis-seen.tamis"),
        ("exact", "tamis-unfinished.db"),
    ):
        folder = tmp_path / f"{seen}-{len(pattern)}"
        job = {"JOBDIR": str(folder), "TAMIS_SEEN": seen}
        filter = dupe_filter(**job)
        assert not filter.request_seen(request)
        filter.close("shutdown")
        (path,) = folder.glob(pattern)
        whole = path.read_bytes()
        path.write_bytes(b"\xff" * 16 + whole[16:])
        with pytest.raises(tamis.TamisError) as error:
            dupe_filter(**job)
        assert str(path) in str(error.value)
        # After the advice was taken, the job goes on.
        path.write_bytes(whole)
        filter = dupe_filter(**job)
        assert filter.request_seen(request)
        filter.close("shutdown")


def test_a_read_only_job_is_refused_with_its_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
    dupe_filter(JOBDIR=str(tmp_path / "old")).close("shutdown")
    for path in (tmp_path / "new", tmp_path / "old", *(tmp_path / "old").iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    is_root = os.geteuid() == 0
    if is_root:
        # The permissions do not bind root.
        for parent in (tmp_path, *tmp_path.parents[:2]):
            parent.chmod(0o755)
        os.seteuid(65534)
    try:
        for name in ("new", "old"):
            caplog.clear()
            with pytest.raises(tamis.FileError) as error:
                dupe_filter(JOBDIR=str(tmp_path / name))
            message = f"{tmp_path / name / 'tamis-unfinished.db'}: cannot be written: "
            assert str(error.value).startswith(message)
            logged = [it.getMessage() for it in caplog.records if it.levelno == logging.ERROR]
            assert logged == [f"The dupe filter cannot start: {error.value}"]
    finally:
        if is_root:
            os.seteuid(0)


@pytest.mark.parametrize("seen", ["exact", "bloom"])
def test_a_job_of_scrapys_own_filter_goes_on(site: Site, tmp_path: Path, seen: str) -> None:
    pages = graph(site)
    folder = tmp_path / "job"
    crawl(site, tmp_path, JOBDIR=str(folder), DUPEFILTER_CLASS="scrapy.dupefilters.RFPDupeFilter")
    assert once(site.take_hits()) == pages
    assert (folder / "requests.seen").exists()
    crawl(site, tmp_path, JOBDIR=str(folder), TAMIS_SEEN=seen)
    assert site.take_hits() == []


def test_both_formats_of_scrapys_own_filter_are_read(tmp_path: Path) -> None:
    items = [bytes([i]) * 20 for i in range(100)]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    lines = "".join(it.hex() + "\n" for it in items) + "abc"
    (tmp_path / "a" / "requests.seen").write_text(lines)
    records = b"".join(len(it).to_bytes(2, "big") + it for it in items) + b"\x00\x14abc"
    (tmp_path / "b" / "requests.seen").write_bytes(records)
    for folder in (tmp_path / "a", tmp_path / "b"):
        for _ in range(2):
            filter = dupe_filter(JOBDIR=str(folder))
            assert all(filter._seen.contains(it) for it in items)
            assert isinstance(filter._seen, ExactSet)
            assert sum(len(it.digests) for it in filter._seen._generations) == 100
            filter.close("shutdown")


A, B, LONG = b"\xab" * 20, b"\x0a" * 20, b"a" * 0x3030


def record(item: bytes) -> bytes:
    return len(item).to_bytes(2, "big") + item


@pytest.mark.parametrize(
    ("content", "items"),
    [
        (b"", []),
        (b"\r\n", []),
        (b"\r\n" + A.hex().encode() + b"\r\n" + B.hex().encode() + b"\r\n", [A, B]),
        (A.hex().upper().encode() + b"\n\n" + B.hex().encode() + b" \n", [A, B]),
        # A torn line, which the next crawler continued.
        (A.hex().encode() + b"\nabc" + B.hex().encode() + b"\n" + A.hex().encode() + b"\n", [A, A]),
        (A.hex().encode() + b"\n" + B.hex().encode()[:10], [A]),
        (record(A) + record(B), [A, B]),
        (record(A) + record(B)[:-1], [A]),
        (record(LONG) + record(A), [LONG, A]),
        (record(b"\n" * 0x0D0A) + record(A), [b"\n" * 0x0D0A, A]),
        # Scrapy 2.19 goes on with the file of an earlier version.
        (A.hex().encode() + b"\n" + record(B) + record(A), [A, B, A]),
        (A.hex().encode() + b"\r\n\r\n" + record(B) + record(A), [A, B, A]),
        (A.hex().encode() + b"\n" + B.hex().encode()[:7] + record(B) + record(A), [A, B, A]),
    ],
)
def test_each_file_of_scrapys_own_filter_is_read(
    tmp_path: Path, content: bytes, items: list[bytes]
) -> None:
    path = tmp_path / "requests.seen"
    path.write_bytes(content)
    assert list(_scrapy_files.fingerprints(str(tmp_path), len(content))) == items
    # What is written later is not read.
    path.write_bytes(content + record(b"later"))
    assert b"later" not in _scrapy_files.fingerprints(str(tmp_path), len(content))


def test_a_request_that_cannot_be_serialized_is_crawled(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "/": Page('/a {"unserializable":true}', "/b"),
        "/a": Page("/"),
        "/b": Page("/a"),
    }
    for mark in ("scheduled", "success"):
        crawl(site, tmp_path, JOBDIR=str(tmp_path / mark), TAMIS_MARK=mark)
        assert once(site.take_hits()) == {"/", "/a", "/b"}


def test_the_journal_keeps_the_order_and_its_requests(tmp_path: Path) -> None:
    spider = Spider("a")
    journal = Journal(str(tmp_path))
    for key in (b"z", b"a", b"m", b"a"):
        journal.add(key, Request(f"http://a/{key.decode()}", meta={"n": 1}), spider)
    assert list(journal.keys()) == [b"z", b"m", b"a"]
    assert journal.request(b"m", spider).url == "http://a/m"
    with pytest.raises(tamis.FileError, match="another crawler is using this JOBDIR"):
        Journal(str(tmp_path))
    journal.start()
    journal.abandon()
    journal = Journal(str(tmp_path))
    assert journal.was_open and len(list(journal.keys())) == 3
    journal.start()
    journal.remove(b"z")
    journal.close("a")
    journal = Journal(str(tmp_path))
    assert not journal.was_open and journal.keys() == [b"m", b"a"]
    assert journal.value("signature") == "a"
    journal.start()
    journal.stay_open()
    journal.close("b")
    journal = Journal(str(tmp_path))
    assert journal.was_open and journal.value("signature") == "a"
    journal.abandon()


def test_a_journal_that_was_not_started_changes_nothing(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.add(b"a", Request("http://a/"), Spider("a"))
    journal.abandon()
    journal = Journal(str(tmp_path))
    assert journal.is_new and list(journal.keys()) == []
    journal.abandon()


# Expiry.


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_page_expires_after_the_time_and_not_before(tmp_path: Path, is_stored: bool) -> None:
    folder = str(tmp_path) if is_stored else None
    clock = Clock(1_000_000.0)
    seen = ExactSet(folder, 100, clock)
    inserted: dict[bytes, float] = {}
    for second in range(0, 700, 3):
        clock.now = 1_000_000.0 + second
        for key, at in list(inserted.items()):
            age = clock.now - at
            if age < 100:
                assert seen.contains(key), (key, age)
            elif age > 126:
                assert not seen.contains(key), (key, age)
        item = str(second).encode()
        assert seen.add(item) and not seen.add(item)
        inserted[item] = clock.now
        if is_stored and second % 60 == 0:
            # A restart changes nothing.
            seen.close()
            assert 1 <= len(state_files(tmp_path)) <= 6
            seen = ExactSet(folder, 100, clock)
    clock.now += 126
    assert not seen.contains(b"0")
    if is_stored:
        assert state_files(tmp_path) == [f"tamis-seen-{clock.now:.0f}.state"]
    seen.close()


def test_files_of_expired_generations_are_deleted_at_a_restart(tmp_path: Path) -> None:
    clock = Clock(5000.5)
    for _ in range(6):
        seen = ExactSet(str(tmp_path), 40, clock)
        assert seen.add(str(clock.now).encode())
        seen.close()
        clock.now += 10
    assert state_files(tmp_path) == [f"tamis-seen-{n}.state" for n in range(5010, 5060, 10)]
    clock.now = 6000.0
    ExactSet(str(tmp_path), 40, clock).close()
    assert state_files(tmp_path) == ["tamis-seen-6000.state"]


def test_a_short_time_of_expiry_has_a_file_for_each_second(tmp_path: Path) -> None:
    clock = Clock(10_000.9)
    seen = ExactSet(str(tmp_path), 1, clock)
    for i in range(100):
        clock.now += 0.13
        assert seen.add(f"{i}".encode())
        assert seen.contains(f"{i - 1}".encode()) or i == 0
    assert len(state_files(tmp_path)) <= 4
    seen.close()


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_clock_that_goes_backwards_keeps_items_for_the_time(
    tmp_path: Path, is_restarted: bool, is_stored: bool
) -> None:
    if is_restarted and not is_stored:
        pytest.skip("a set in memory has no restart")
    folder = str(tmp_path) if is_stored else None
    clock = Clock(9_000_000.0)
    seen = ExactSet(folder, 100, clock)
    assert seen.add(b"old")
    clock.now += 30
    assert seen.add(b"new")
    for now in (2_000_000, 1_000_000):
        clock.now = now
        if is_restarted:
            seen.close()
            seen = ExactSet(folder, 100, clock)
        assert seen.contains(b"old") and seen.contains(b"new")
    clock.now += 50
    assert seen.add(b"later")
    clock.now += 49
    assert seen.contains(b"old") and seen.contains(b"new")
    clock.now += 30
    assert not seen.contains(b"old") and not seen.contains(b"new") and seen.contains(b"later")
    if is_stored:
        assert all(it < "tamis-seen-2" for it in state_files(tmp_path))
    seen.close()


@pytest.mark.parametrize("now", [0.0, 1.0, 0.5, -0.5, -1000.0])
def test_a_clock_near_1970_loses_no_item(tmp_path: Path, now: float) -> None:
    clock = Clock(1000.0)
    seen = ExactSet(str(tmp_path), 100, clock)
    for item in (b"a", b"b", b"c"):
        assert seen.add(item)
        clock.now += 30
    seen.close()
    for clock.now in (now, now + 1, now + 30):
        seen = ExactSet(str(tmp_path), 100, clock)
        assert all(seen.contains(it) for it in (b"a", b"b", b"c"))
        seen.close()
    clock.now = now + 200
    seen = ExactSet(str(tmp_path), 100, clock)
    assert not any(seen.contains(it) for it in (b"a", b"b", b"c"))
    assert len(state_files(tmp_path)) == 1
    seen.close()
    # A window has no time before 1970.
    clock.now = now
    window = FilterSet(None, 100, 0.001, 1000, clock)
    assert window.add(b"a") and window.contains(b"a")


def test_expiry_of_a_job_with_the_clock_of_the_system(site: Site, tmp_path: Path) -> None:
    pages = graph(site)
    folder = tmp_path / "job"
    job = {"JOBDIR": str(folder), "TAMIS_EXPIRE": "3600"}
    crawl(site, tmp_path, **job)
    assert once(site.take_hits()) == pages
    crawl(site, tmp_path, **job)
    assert site.take_hits() == []
    (name,) = state_files(folder)
    # A quarter more time: 4500 seconds.
    (folder / name).rename(folder / f"tamis-seen-{time.time() - 4502:.0f}.state")
    crawl(site, tmp_path, **job)
    assert once(site.take_hits()) == pages
    assert len(state_files(folder)) == 1


# Marks of success.

ONE_AT_A_TIME = {"TAMIS_MARK": "success", "CONCURRENT_REQUESTS": 1}


def test_a_failed_page_is_crawled_again_when_it_is_linked_again(site: Site, tmp_path: Path) -> None:
    good = Page()
    never = threading.Event()
    site.pages = {
        "/": Page("/500", "/broken", "/slow", "/fine", "/a"),
        "/a": Page("/b", "/500", "/broken", "/slow", "/fine"),
        "/b": Page("/500", "/broken", "/slow", "/fine"),
        "/500": Page(status=500, then=good),
        "/broken": Page(is_broken=True, then=good),
        "/slow": Page(gate=never, then=good),
        "/fine": good,
    }
    stats = crawl(site, tmp_path, DOWNLOAD_TIMEOUT=0.5, **ONE_AT_A_TIME)
    hits = site.take_hits()
    assert {it: hits.count(it) for it in site.pages} == {
        "/": 1,
        "/a": 1,
        "/b": 1,
        "/500": 2,
        "/broken": 2,
        "/slow": 2,
        "/fine": 1,
    }, stats["log"]
    failed = {it["failed"].rsplit("/", 1)[1]: it["why"] for it in stats["events"] if "failed" in it}
    assert set(failed) == {"broken", "slow"} and "Timeout" in failed["slow"]


def test_without_marks_of_success_a_failed_page_is_not_crawled_again(
    site: Site, tmp_path: Path
) -> None:
    site.pages = {"/": Page("/500", "/a"), "/a": Page("/500"), "/500": Page(status=500)}
    crawl(site, tmp_path, CONCURRENT_REQUESTS=1)
    assert once(site.take_hits()) == {"/", "/a", "/500"}


def test_a_retried_page_is_not_crawled_by_another_request_meanwhile(
    site: Site, tmp_path: Path
) -> None:
    site.pages = {
        "/": Page("/flaky", "/broken", "/a"),
        "/a": Page("/flaky", "/broken", "/b"),
        "/b": Page("/flaky", "/broken"),
        "/flaky": Page(status=503, then=Page("/c")),
        "/broken": Page(is_broken=True, then=Page("/c")),
        "/c": Page("/flaky", "/broken"),
    }
    for job in ({}, {"JOBDIR": str(tmp_path / "job")}):
        site.take_hits()
        crawl(site, tmp_path, RETRY_ENABLED=True, **ONE_AT_A_TIME, **job)
        hits = site.take_hits()
        assert hits.count("/flaky") == hits.count("/broken") == 2
        # The retry came after the second link.
        assert hits.index("/a") < len(hits) - 1 - hits[::-1].index("/flaky")
        assert all(hits.count(it) == 1 for it in ("/", "/a", "/b", "/c"))
    crawl(site, tmp_path, **ONE_AT_A_TIME, **job)
    assert site.take_hits() == []


def test_a_redirect_marks_the_first_request(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "/": Page("/moved", "/also-moved", "/gone", "/a"),
        "/moved": Page(status=302, headers={"Location": "/twice"}),
        "/twice": Page(status=301, headers={"Location": "/target"}),
        "/also-moved": Page(status=302, headers={"Location": "/target"}),
        "/gone": Page(status=302, headers={"Location": "/500"}),
        "/500": Page(status=500),
        "/target": Page("/moved", "/target", "/also-moved", "/twice"),
        "/a": Page("/moved", "/b"),
        "/b": Page("/moved", "/also-moved", "/target", "/twice"),
    }
    job = {"JOBDIR": str(tmp_path / "job")}
    crawl(site, tmp_path, **ONE_AT_A_TIME, **job)
    assert once(site.take_hits()) == set(site.pages)
    # The second job starts with a new page.
    site.pages["/new"] = Page(*(it for it in site.pages if it != "/"))
    settings = {"DUPEFILTER_CLASS": TAMIS, **ONE_AT_A_TIME, **job}
    run = Crawl(site, tmp_path, settings, start=("/new",))
    run.end()
    assert set(site.take_hits()) == {"/new", "/gone", "/500"}, run.log


def test_a_page_that_robots_txt_denies_is_no_success(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "/robots.txt": Page(body="User-agent: *\nDisallow: /private\n"),
        "/": Page("/private", "/a"),
        "/a": Page("/private"),
        "/private": Page(),
        "/new": Page("/private", "/a"),
    }
    for mark, expected in (("scheduled", {"/new"}), ("success", {"/new", "/private"})):
        site.pages["/robots.txt"] = Page(body="User-agent: *\nDisallow: /private\n")
        job = {"JOBDIR": str(tmp_path / mark), "ROBOTSTXT_OBEY": True, "TAMIS_MARK": mark}
        crawl(site, tmp_path, **job)
        assert once(site.take_hits()) == {"/", "/a"}
        site.pages["/robots.txt"] = Page(body="")
        run = Crawl(site, tmp_path, {"DUPEFILTER_CLASS": TAMIS, **job}, start=("/new",))
        run.end()
        assert once(site.take_hits()) == expected, run.log


def test_a_spider_may_copy_the_meta_of_a_response(site: Site, tmp_path: Path) -> None:
    copied = ' {"copy_meta":true}'
    site.pages = {
        "/": Page("/500" + copied, "/a" + copied),
        "/500": Page("/b" + copied, '/c {"copy_meta":true,"dont_filter":true}', status=500),
        "/a": Page("/d" + copied),
        "/b": Page(),
        "/c": Page(),
        "/d": Page("/500"),
    }
    crawl(site, tmp_path, **ONE_AT_A_TIME)
    hits = site.take_hits()
    # The pages that /500 links are no retry of /500, so /500 is crawled again.
    assert hits.count("/500") == 2 and hits.count("/b") == 1 and hits.count("/c") == 2


# Bloom filters.


@pytest.mark.parametrize("expire", [None, 3600])
def test_expected_skips_agree_with_the_pages_that_were_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expire: int | None
) -> None:
    monkeypatch.setattr(seen_module.os, "urandom", lambda n: bytes(range(n)))
    settings = {"TAMIS_SEEN": "bloom", "TAMIS_RATE": 0.2, "JOBDIR": str(tmp_path)}
    if expire:
        settings |= {"TAMIS_EXPIRE": expire, "TAMIS_ITEMS": 4000}
    crawler = get_crawler(Spider, settings)
    filter = DupeFilter.from_crawler(crawler)
    count = 4000
    skipped = sum(filter.request_seen(Request(f"http://a/{i}")) for i in range(count))
    filter.close("shutdown")
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    assert stats["dupefilter/unique"] == count - skipped
    expected = stats["dupefilter/expected_skips"]
    # Five standard deviations of a binomial distribution.
    assert abs(skipped - expected) < 5 * (expected * 0.8 + 1) ** 0.5
    assert 5 < skipped < 0.2 * count + 5 * (count * 0.2 * 0.8) ** 0.5
    assert (tmp_path / "tamis-seen.tamis").exists()
    # No false negatives after a restart.
    filter = dupe_filter(**settings)
    assert all(filter.request_seen(Request(f"http://a/{i}")) for i in range(count))
    filter.close("shutdown")


def test_a_crawl_with_a_filter_reports_its_expected_skips(site: Site, tmp_path: Path) -> None:
    pages = graph(site)
    folder = tmp_path / "job"
    stats = crawl(site, tmp_path, TAMIS_SEEN="bloom", JOBDIR=str(folder))
    assert once(site.take_hits()) == pages
    assert 0 <= stats["dupefilter/expected_skips"] < 0.01
    assert (folder / "tamis-seen.tamis").exists()
    crawl(site, tmp_path, TAMIS_SEEN="bloom", JOBDIR=str(folder))
    assert site.take_hits() == []


def test_the_window_of_a_filter_expires(tmp_path: Path) -> None:
    start = time.time() + 1000
    clock = Clock(start)
    seen = FilterSet(str(tmp_path), 100, 0.0001, 1000, clock)
    assert seen.add(b"a") and not seen.add(b"a")
    for second in (50, 99.9):
        clock.now = start + second
        seen.close()
        seen = FilterSet(str(tmp_path), 100, 0.0001, 1000, clock)
        assert seen.contains(b"a")
    clock.now = start + 201
    assert not seen.contains(b"a") and seen.add(b"a")
    # The clock goes backwards, and the window goes on.
    clock.now = start
    assert seen.contains(b"a")
    clock.now = start + 201
    assert not seen.contains(b"a")


@pytest.mark.parametrize("adds", [True, False])
def test_a_window_expires_after_a_clock_was_set_back_between_two_runs(
    tmp_path: Path, adds: bool
) -> None:
    clock = Clock(1_000_000.0)

    def reopen(seen: FilterSet | None) -> FilterSet:
        if seen is not None:
            seen.close()
        return FilterSet(str(tmp_path), 100, 0.0001, 1000, clock)

    seen = reopen(None)
    assert seen.add(b"old")
    clock.now += 60
    assert seen.add(b"new") and seen.contains(b"old")
    # Each run starts with a clock that is set back, and takes 30 seconds.
    for run in range(1, 8):
        clock.now -= 5000
        seen = reopen(seen)
        clock.now += 30
        if adds:
            seen.add(str(run).encode())
        age = 30 * run
        assert seen.contains(b"new") or age >= 100
        assert not seen.contains(b"new") or age <= 200
        assert not seen.contains(b"old") or age + 60 <= 200
    clock.now += 201
    assert not seen.contains(b"new") and not seen.contains(b"7")
    seen.close()


def test_a_window_without_a_stored_time_is_read(tmp_path: Path) -> None:
    clock = Clock(1_000_000.0)
    seen = FilterSet(str(tmp_path), 100, 0.0001, 1000, clock)
    assert seen.add(b"a")
    seen.close()
    for text in ("", "nan", None):
        (tmp_path / "tamis-seen.time").unlink()
        if text is not None:
            (tmp_path / "tamis-seen.time").write_text(text)
        seen = FilterSet(str(tmp_path), 100, 0.0001, 1000, clock)
        assert seen.contains(b"a")
        seen.add(b"b")
        seen.close()


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"TAMIS_RATE": 0.01}, {"TAMIS_RATE": 0.02}, ["rate", "0.01", "0.02", "TAMIS_RATE"]),
        ({}, {"TAMIS_EXPIRE": 60}, ["kind growing", "window", "TAMIS_EXPIRE"]),
        ({"TAMIS_EXPIRE": 60}, {}, ["kind window", "growing", "TAMIS_EXPIRE"]),
        ({"TAMIS_EXPIRE": 60}, {"TAMIS_EXPIRE": 61}, ["window seconds 60", "61", "TAMIS_EXPIRE"]),
        ({"TAMIS_EXPIRE": 60}, {"TAMIS_EXPIRE": 60, "TAMIS_ITEMS": 9}, ["1000000", "TAMIS_ITEMS"]),
        ({}, {"TAMIS_SEEN": "exact"}, ["'bloom'", "'exact'", "TAMIS_SEEN"]),
        ({"TAMIS_SEEN": "exact"}, {}, ["'exact'", "'bloom'", "TAMIS_SEEN"]),
    ],
)
def test_a_job_with_another_filter_than_the_settings_is_refused(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], words: list[str]
) -> None:
    bloom = {"TAMIS_SEEN": "bloom", "JOBDIR": str(tmp_path)}
    dupe_filter(**(bloom | first)).close("shutdown")
    with pytest.raises(ValueError) as error:
        dupe_filter(**(bloom | second))
    message = str(error.value)
    assert message.startswith(f"{tmp_path}{os.sep}tamis-seen") and "JOBDIR" in message
    assert all(it in message for it in words), message
    dupe_filter(**(bloom | first)).close("shutdown")


# Failures.


class Failing:
    """A set whose file or server fails at the second request."""

    def __init__(self) -> None:
        self.items: set[bytes] = set()

    def contains(self, fingerprint: bytes) -> bool:
        return fingerprint in self.items

    def add(self, fingerprint: bytes) -> bool:
        if self.items:
            raise tamis.FileError("the disk is full")
        self.items.add(fingerprint)
        return True

    def rate(self) -> float | None:
        return None

    def close(self) -> None:
        pass


def test_a_set_that_fails_lets_the_request_pass(caplog: pytest.LogCaptureFixture) -> None:
    filter = DupeFilter(Failing(), get_crawler(Spider))
    requests = [Request(f"http://a/{i}") for i in range(3)]
    assert [filter.request_seen(it) for it in requests] == [False] * 3
    assert [filter.request_seen(it) for it in requests[1:]] == [True] * 2
    errors = [it.getMessage() for it in caplog.records if it.levelno == logging.ERROR]
    assert errors == ["The dupe filter failed, and closes the spider: the disk is full"]


@pytest.mark.parametrize("mark", ["scheduled", "success"])
def test_a_warning_that_is_an_error_loses_no_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mark: str
) -> None:
    settings = {"TAMIS_SEEN": "bloom", "TAMIS_EXPIRE": 3600, "TAMIS_ITEMS": 10, "TAMIS_RATE": 0.4}
    filter = dupe_filter(JOBDIR=str(tmp_path), TAMIS_MARK=mark, **settings)
    warning = "was planned for 10 items"
    with warnings.catch_warnings():
        warnings.simplefilter("error", tamis.SaturatedWarning)
        count = 0
        while warning not in caplog.text:
            count += 1
            assert count < 10_000
            request = Request(f"http://a/{count}")
            passes = not filter.request_seen(request)
            if mark == "success":
                filter._on_response(Response(request.url), request)
        # The request of the warning passes, is known, and is in the journal.
        assert passes and filter._seen.contains(filter._fingerprinter.fingerprint(request))
        assert filter._job is not None
        keys = filter._job.journal.keys()
        assert filter._fingerprinter.fingerprint(request) in keys
        # The crawl goes on.
        assert filter._failed is None
        assert not all(filter.request_seen(Request(f"http://b/{i}")) for i in range(100))
    filter.close("shutdown")


def test_an_error_of_any_kind_loses_no_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filter = dupe_filter(JOBDIR=str(tmp_path))
    requests = [Request(f"http://a/{i}") for i in range(3)]
    assert not filter.request_seen(requests[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactSet, "add", lambda self, item: 1 // 0)
        assert [filter.request_seen(it) for it in requests[1:]] == [False, False]
        assert [filter.request_seen(it) for it in requests[1:]] == [True, True]
    (error,) = [it for it in caplog.records if it.levelno == logging.ERROR]
    assert "ZeroDivisionError" in caplog.text and "closes the spider" in error.getMessage()
    filter.close("dupefilter_error")
    journal = Journal(str(tmp_path))
    assert journal.was_open and len(list(journal.keys())) == 3
    journal.abandon()


def test_a_set_that_cannot_be_closed_leaves_the_job_open(tmp_path: Path) -> None:
    filter = dupe_filter(JOBDIR=str(tmp_path))
    assert not filter.request_seen(Request("http://a/"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactSet, "close", lambda self: scrapy_crawl.fail())
        with pytest.raises(tamis.FileError, match="the disk is full"):
            filter.close("shutdown")
    filter._seen.close()
    journal = Journal(str(tmp_path))
    assert journal.was_open and len(journal.keys()) == 1
    journal.abandon()


# Servers.


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Start `tamis serve` on a free port."""
    pytest.importorskip("redis")
    program = server_program()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    command = [program, "serve", "--port", str(port), "--dir", str(folder), "--http-port", "no"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, server.stderr and server.stderr.read().decode()
                assert time.monotonic() < deadline, "the server did not listen in time"
                time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(DEADLINE_SECONDS)
        if server.stderr is not None:
            server.stderr.close()


def command(port: int, *words: object) -> Any:
    """Run a command on the server."""
    import redis

    with redis.Redis(port=port, socket_timeout=DEADLINE_SECONDS) as client:
        return client.execute_command(*words)


def test_two_spiders_crawl_each_page_once_together(
    site: Site, tmp_path: Path, server_port: int
) -> None:
    pages = graph(site)
    settings = {
        "DUPEFILTER_CLASS": SERVER,
        "TAMIS_URL": f"redis://127.0.0.1:{server_port}/0",
        "TAMIS_ITEMS": 1000,
        "CONCURRENT_REQUESTS": 1,
    }
    starts = (("/", "/0"), ("/", "/1", "/19"))
    runs = [Crawl(site, tmp_path, settings, start=it) for it in starts]
    stats = [it for run in runs for it in run.end()]
    assert once(site.take_hits()) == pages, [it.log for it in runs]
    assert sum(it.get("dupefilter/unique", 0) for it in stats) == len(pages)
    assert all(0 <= it.get("dupefilter/expected_skips", 0) < 0.1 for it in stats)
    info = command(server_port, "TM.INFO", "pages:seen")
    assert info[b"rate_planned"] == 0.0001 and info[b"kind"] != b"window"
    # Two spiders of one process.
    both = {**settings, "TAMIS_KEY": "other"}
    run = Crawl(site, tmp_path, both, crawlers=2)
    assert len(run.end()) == 2 and once(site.take_hits()) == pages


def test_expiry_on_a_server_is_a_window(site: Site, tmp_path: Path, server_port: int) -> None:
    pages = graph(site)
    settings = {
        "DUPEFILTER_CLASS": SERVER,
        "TAMIS_URL": f"redis://127.0.0.1:{server_port}/0",
        "TAMIS_KEY": "window",
        "TAMIS_ITEMS": 1000,
        "TAMIS_EXPIRE": 3600,
        "TAMIS_MARK": "success",
    }
    crawl(site, tmp_path, **settings)
    assert once(site.take_hits()) == pages
    info = command(server_port, "TM.INFO", "window")
    assert (info[b"kind"], info[b"span_millis"], info[b"slices"]) == (b"window", 3_600_000, 1)
    crawl(site, tmp_path, **settings)
    assert site.take_hits() == []


def test_a_key_of_another_kind_is_refused(server_port: int) -> None:
    url = f"redis://127.0.0.1:{server_port}/0"
    command(server_port, "SET", "text", "a")
    command(server_port, "CF.RESERVE", "cuckoo", 100)
    ServerSet(url, "plain", None, 0.01, 100).close()
    ServerSet(url, "hour", 3600, 0.01, 100).close()
    for key, expire, words in (
        ("text", None, "not a filter"),
        ("text", 3600, "not a filter"),
        ("cuckoo", None, "not a filter"),
        ("cuckoo", 3600, "the settings need a window"),
        ("plain", 3600, "the settings need a window"),
        ("hour", None, "need a Bloom filter, not a window"),
        ("hour", 60, "3600000 ms"),
    ):
        with pytest.raises(ServerError) as error:
            ServerSet(url, key, expire, 0.01, 100)
        message = str(error.value)
        assert words in message and repr(key) in message and "TAMIS_KEY" in message
    # The same plan is the same filter.
    seen = ServerSet(url, "plain", None, 0.01, 100)
    assert seen.add(b"a") and not seen.add(b"a") and seen.contains(b"a")
    assert 0 <= (seen.rate() or 0) < 0.01
    seen.close()


class FakeServer:
    """A server that answers each command by a function, and may close a connection."""

    def __init__(self, answer: Callable[[list[bytes]], bytes | None]) -> None:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while header := self.rfile.readline():
                    words = []
                    for _ in range(int(header[1:])):
                        length = int(self.rfile.readline()[1:])
                        words.append(self.rfile.read(length + 2)[:-2])
                    # A Redis server before version 6 does not have these commands.
                    is_old = words[0] in (b"HELLO", b"CLIENT")
                    reply = unknown(words) if is_old else answer(words)
                    if reply is None:
                        return
                    self.wfile.write(reply)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"redis://127.0.0.1:{self.server.server_address[1]}/0?protocol=2"
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self.thread.start()

    def __enter__(self) -> str:
        return self.url

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(DEADLINE_SECONDS)


def unknown(words: list[bytes]) -> bytes:
    return b"-ERR unknown command '" + words[0] + b"'\r\n"


def test_a_server_without_filters_or_without_windows_is_refused() -> None:
    pytest.importorskip("redis")
    with FakeServer(unknown) as url:
        for expire, words in ((None, "module RedisBloom"), (60, "tamis serve")):
            with pytest.raises(ServerError) as error:
                ServerSet(url, "key", expire, 0.01, 100)
            assert "127.0.0.1:" in str(error.value) and words in str(error.value)


def test_a_server_that_is_down_is_one_clear_message(site: Site, tmp_path: Path) -> None:
    pytest.importorskip("redis")
    site.pages = {"/": Page()}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"DUPEFILTER_CLASS": SERVER, "TAMIS_URL": f"redis://127.0.0.1:{port}/0"}
    run = Crawl(site, tmp_path, settings)
    run.end()
    message = f"start: 127.0.0.1:{port}: the server of TAMIS_URL cannot be reached: "
    assert run.log.count(message) == 1 and run.process.exitcode != 0
    assert site.take_hits() == []


def test_a_connection_that_breaks_loses_no_page() -> None:
    """The server inserts, and closes the connection before the answer."""
    pytest.importorskip("redis")
    items: set[bytes] = set()
    breaks = {b"b"}

    def answer(words: list[bytes]) -> bytes | None:
        if words[0] == b"BF.RESERVE":
            return b"+OK\r\n"
        if words[0] == b"BF.EXISTS":
            return b":%d\r\n" % (words[2] in items)
        if words[0] != b"BF.ADD":
            return unknown(words)
        is_new = words[2] not in items
        items.add(words[2])
        if words[2] in breaks:
            breaks.remove(words[2])
            return None
        return b":%d\r\n" % is_new

    with FakeServer(answer) as url:
        seen = ServerSet(url, "key", None, 0.01, 100)
        assert [seen.add(it) for it in (b"a", b"b", b"b", b"c")] == [True, True, False, True]
        assert seen.rate() == 0.01
        seen.close()


def test_a_server_that_stops_closes_the_spider(site: Site, tmp_path: Path) -> None:
    pytest.importorskip("redis")
    left = 12
    items: set[bytes] = set()
    site.pages = {"/": Page(*(f"/{i}" for i in range(30)))}

    def answer(words: list[bytes]) -> bytes | None:
        nonlocal left
        if words[0] == b"BF.RESERVE":
            return b"+OK\r\n" if left else b"-ERR item exists\r\n"
        if words[0] == b"BF.EXISTS":
            return b":%d\r\n" % (words[2] in items)
        if words[0] != b"BF.ADD":
            return unknown(words)
        if not left:
            return None
        left -= 1
        is_new = words[2] not in items
        items.add(words[2])
        return b":%d\r\n" % is_new

    with FakeServer(answer) as url:
        settings = {"DUPEFILTER_CLASS": SERVER, "TAMIS_URL": url, "JOBDIR": str(tmp_path / "job")}
        run = Crawl(site, tmp_path, settings)
        (stats,) = run.end()
        assert stats["finish_reason"] == "dupefilter_error", run.log
        assert run.log.count("The dupe filter failed, and closes the spider: 127.0.0.1:") == 1
        before = once(site.take_hits())
        # The job keeps the requests that could not be tested, also if the next crawler is killed.
        left = 1000
        killing = {**settings, "KILL": ("scrapy_crawl:Pages.parse", 5, "before")}
        Crawl(site, tmp_path, killing).end()
        before |= set(site.take_hits())
        crawl(site, tmp_path, **settings)
        after = once(site.take_hits())
        assert before | after == {"/", *(f"/{i}" for i in range(30))}


def test_the_class_of_the_server_names_its_key_after_the_spider(server_port: int) -> None:
    url = f"redis://127.0.0.1:{server_port}/0"
    crawler = get_crawler(Spider, {"TAMIS_URL": url, "TAMIS_ITEMS": 10})
    crawler.spidercls.name = "quotes"
    filter = ServerDupeFilter.from_crawler(crawler)
    assert not filter.request_seen(Request("http://a/"))
    assert filter.request_seen(Request("http://a/"))
    filter.close("finished")
    assert command(server_port, "BF.INFO", "quotes:seen") is not None


def test_keys_of_requests_survive_a_disk_queue() -> None:
    filter = dupe_filter(TAMIS_MARK="success")
    request = Request("http://a/")
    assert not filter.request_seen(request)
    stored = pickle.loads(pickle.dumps(request.to_dict(spider=Spider("a"))))
    assert stored["meta"]["_tamis_keys"] == request.meta["_tamis_keys"]
