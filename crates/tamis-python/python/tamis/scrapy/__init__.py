"""Dupe filters for Scrapy.

In ``settings.py``::

    DUPEFILTER_CLASS = "tamis.scrapy.DupeFilter"

The filter holds an exact set of request fingerprints. A request takes 21 to 29 bytes of memory,
instead of 98 bytes in the filter of Scrapy 2.19. With ``JOBDIR``, the set and the unfinished
requests are in files of this folder. After a kill, the next crawl continues with the unfinished
requests. No page is lost, but a page whose callback had not ended is crawled again. With
``"bloom"``, a killed crawler forgets the pages of the last minute, and crawls these pages again if
they are linked again. A request that cannot be serialized is lost by a kill, as in Scrapy.

A job of Scrapy's own filter continues if its last crawler stopped in order. After a kill, Scrapy's
queue is not whole, and the dupe filter refuses the job.

==========================  =================================================================
setting                     meaning
==========================  =================================================================
``TAMIS_SEEN``              ``"exact"`` (default) or ``"bloom"``: a filter that takes 3 bytes for
                            a request, but skips a page by mistake at ``TAMIS_RATE``
``TAMIS_RATE``              the rate of ``"bloom"`` and of a server's filter, by default 0.0001
``TAMIS_EXPIRE``            after this number of seconds, a page may be crawled again. An exact
                            set forgets the page after at most 1.25 times this time; a filter or
                            a server after at most twice this time. By default, no page expires.
``TAMIS_ITEMS``             the largest number of requests in the time of ``TAMIS_EXPIRE``, for a
                            filter or a server; the capacity of a server's filter; by default a
                            million. With ``TAMIS_EXPIRE``, ``"bloom"`` takes 60 bits for each
                            of these requests at the default rate.
``TAMIS_MARK``              ``"scheduled"`` (default) or ``"success"``: a request counts as seen
                            after its response came with a status below 400
``TAMIS_URL``               the server of `ServerDupeFilter`, by default
                            ``redis://127.0.0.1:6379/0``
``TAMIS_KEY``               the key of `ServerDupeFilter`, by default ``<spider>:seen``
==========================  =================================================================

The statistics ``dupefilter/filtered`` and ``dupefilter/unique`` count requests. For filters with a
rate, ``dupefilter/expected_skips`` estimates how many pages were skipped by mistake. If the set
fails during a crawl, the spider is closed with the reason ``dupefilter_error``, and a job keeps its
requests.
"""

from tamis.scrapy._dupe_filter import DupeFilter, ServerDupeFilter

__all__ = ["DupeFilter", "ServerDupeFilter"]
