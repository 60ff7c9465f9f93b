"""Dupe filters for Scrapy.

In ``settings.py``::

    DUPEFILTER_CLASS = "tamis.scrapy.DupeFilter"

The filter holds an exact set of request fingerprints: 21 to 29 bytes of memory for a request,
instead of 98 bytes in the filter of Scrapy 2.19. With ``JOBDIR``, the set and the unfinished requests are in
files of this folder. A crawler that was killed goes on with these requests.

==========================  =================================================================
setting                     meaning
==========================  =================================================================
``TAMIS_SEEN``              ``"exact"`` (default) or ``"bloom"``: a filter that takes 3 bytes for
                            a request, but skips a page by mistake at ``TAMIS_RATE``
``TAMIS_RATE``              the rate of ``"bloom"`` and of a server, by default 0.0001
``TAMIS_ITEMS``             how many requests a window or a server expects, by default a million
``TAMIS_EXPIRE``            the seconds after which a page may be crawled again; it is crawled
                            again at the latest after a quarter more time, or after twice the
                            time with ``"bloom"`` and a server
``TAMIS_MARK``              ``"scheduled"`` (default) or ``"success"``: a request counts as seen
                            once its response came with a status below 400
``TAMIS_URL``               the server of `ServerDupeFilter`, by default
                            ``redis://127.0.0.1:6379/0``
``TAMIS_KEY``               the key of `ServerDupeFilter`, by default ``<spider>:seen``
==========================  =================================================================

The statistics ``dupefilter/filtered`` and ``dupefilter/unique`` count requests. For filters with a
rate, ``dupefilter/expected_skips`` estimates how many pages were skipped by mistake. If the set
fails during a crawl, the spider is closed with the reason ``dupefilter_error``.
"""

from tamis.scrapy._dupe_filter import DupeFilter, ServerDupeFilter

__all__ = ["DupeFilter", "ServerDupeFilter"]
