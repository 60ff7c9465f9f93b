"""A crawler of the tests of the dupe filters, in a child process."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
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
    process = CrawlerProcess(settings)
    created = [process.create_crawler(Pages) for _ in range(crawlers)]
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
