"""Sites that need no network: documentation, made worlds, folders of pages.

Example:
    >>> site, tasks = open_site("phantom:people=50", questions=10)
    >>> site.search(site.open(tasks[0].evidence[0]).title, 1)[0].url == tasks[0].evidence[0]
    True
"""

from .offline import OfflineSite, PageCorpus
from .specs import SITES, SiteWithTasks, load_site, open_site

__all__ = ["SITES", "OfflineSite", "PageCorpus", "SiteWithTasks", "load_site", "open_site"]
