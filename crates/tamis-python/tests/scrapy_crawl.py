"""A crawler of the tests of the dupe filters, in a child process."""

from __future__ import annotations

import errno
import functools
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import scrapy
import tamis
from scrapy import signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.exceptions import CloseSpider, DontCloseSpider, IgnoreRequest
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

# The parent of the child processes imports the components of Scrapy for all of them.
load_object("scrapy.core.engine.ExecutionEngine")
load_object("scrapy.core.scraper.Scraper")
load_object("scrapy.core.downloader.Downloader")
for _group in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS"):
    for _path in getattr(default_settings, f"{_group}_BASE"):
        load_object(_path)
load_object(default_settings.DOWNLOAD_HANDLERS_BASE["http"])
load_object(default_settings.DOWNLOAD_HANDLERS_BASE["data"])
# A fork of a process with a reactor does not work.
assert "twisted.internet.reactor" not in sys.modules


class Words:
    """Fingerprints of the path, of any length."""

    def fingerprint(self, request: scrapy.Request) -> bytes:
        return request.url.split("/", 3)[3].encode().replace(b"x", b"\x00\xff" * 40)


class DropMiddleware:
    """Drops requests of some pages before the download."""

    def process_request(self, request: scrapy.Request) -> None:
        if "/drop/" in request.url:
            raise IgnoreRequest


class DropExtension:
    """Drops requests of some pages before the queue."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DropExtension:
        extension = cls()
        crawler.signals.connect(extension.drop, signal=signals.request_scheduled)
        return extension

    def drop(self, request: scrapy.Request) -> None:
        if "/drop/" in request.url:
            raise IgnoreRequest


def event(**values: Any) -> None:
    print(json.dumps(values), flush=True)


class Pages(scrapy.Spider):
    """A spider that follows all links. Its events are lines of JSON on stdout."""

    name = "pages"
    handle_httpstatus_list = [404, 500]
    base = ""
    paths: tuple[str, ...] = ()
    parsed = 0

    async def start(self):
        self.crawler.signals.connect(self.on_empty, signal=signals.scheduler_empty)
        for path in self.paths:
            yield scrapy.Request(self.base + path, errback=self.failed)

    def on_empty(self) -> None:
        event(idle=self.parsed)

    def parse(self, response):
        for link in response.css("a"):
            options = json.loads(link.attrib.get("data-options", "{}"))
            if options.pop("copy_meta", False):
                options["meta"] = response.meta
            if options.pop("unserializable", False):
                options["meta"] = {"f": lambda: 1}
            yield response.follow(link.attrib["href"], errback=self.failed, **options)
        self.parsed += 1

    def failed(self, failure) -> None:
        event(failed=failure.request.url, why=failure.type.__name__)


class Numbers(scrapy.Spider):
    """A spider of 101 pages without a server: a first page, 10 pages, and 9 pages of each."""

    name = "numbers"
    parsed = 0

    async def start(self):
        if self.settings.getbool("IDLE"):
            self.crawler.signals.connect(self.on_idle, signal=signals.spider_idle)
        is_once = self.settings.getbool("START_ONCE")
        if not is_once or not os.path.exists("started"):
            yield scrapy.Request("data:,0", dont_filter=is_once)
            open("started", "w").close()

    def parse(self, response):
        event(page=response.url)
        self.parsed += 1
        if len(response.url) == 7:
            for i in range(10):
                yield scrapy.Request(f"{response.url}/{i}", priority=i % 2)
        elif len(response.url) == 9:
            for i in range(9):
                yield scrapy.Request(f"{response.url}/{i}", dont_filter=i == 0)
        if self.parsed == self.settings.getint("FINISH_AT"):
            raise CloseSpider("finished")

    def on_idle(self) -> None:
        self.crawler.signals.disconnect(self.on_idle, signal=signals.spider_idle)
        self.crawler.engine.crawl(scrapy.Request("data:,idle"))
        raise DontCloseSpider


def patch(path: str, change: Callable[..., Any]) -> None:
    """Change a function. The path is `module:Class.name`."""
    module, _, name = path.partition(":")
    *parts, last = name.split(".")
    owner = functools.reduce(getattr, parts, importlib.import_module(module))
    setattr(owner, last, change(getattr(owner, last)))


def counting(
    number: int, happen: Callable[[], None], is_after: bool, is_once: bool = False
) -> Callable[..., Any]:
    """Return a wrapper that lets something happen from a call with a number on, or only then."""

    def change(function: Callable[..., Any]) -> Callable[..., Any]:
        calls = 0

        @functools.wraps(function)
        def changed(*args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            happens = calls == number if is_once else calls >= number
            if happens and not is_after:
                happen()
            result = function(*args, **options)
            if happens and is_after:
                happen()
            return result

        return changed

    return change


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def report_call() -> None:
    event(called=True)


def fail() -> None:
    raise tamis.FileError("the disk is full")


def fail_once() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


SETTINGS = {
    "LOG_LEVEL": "DEBUG",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
}


def main(
    base: str,
    paths: tuple[str, ...],
    settings: dict[str, Any],
    crawlers: int,
    output: str,
    log: str,
) -> None:
    """Crawl in this process, with the standard streams in two files."""
    for descriptor, path in ((1, output), (2, log)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(os.path.dirname(output))
    Pages.base, Pages.paths = base, paths
    settings = SETTINGS | settings
    if settings.get("REQUEST_FINGERPRINTER_CLASS") == "words":
        settings["REQUEST_FINGERPRINTER_CLASS"] = Words
    match settings.pop("DROP", None):
        case "middleware":
            settings["DOWNLOADER_MIDDLEWARES"] = {DropMiddleware: 1}
        case "signal":
            settings["EXTENSIONS"] = {DropExtension: 1}
    actions = {"KILL": kill, "FAIL": fail, "FAIL_ONCE": fail_once, "REPORT": report_call}
    for name, happen in actions.items():
        if name in settings:
            path, number, when = settings.pop(name)
            is_once = happen in (fail_once, report_call)
            patch(path, counting(number, happen, when == "after", is_once))
    spider = Numbers if settings.pop("NUMBERS", False) else Pages
    process = CrawlerProcess(settings)
    created = [process.create_crawler(spider) for _ in range(crawlers)]
    errors: list[Any] = []
    for crawler in created:
        process.crawl(crawler).addErrback(errors.append)
    process.start()
    for crawler in created:
        stats = crawler.stats.get_stats()
        event(stats={k: v for k, v in stats.items() if isinstance(v, (int, float, str))})
    for error in errors:
        error.printTraceback(sys.stderr)
    raise SystemExit(1 if errors else 0)
