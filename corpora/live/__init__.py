"""The live web as a site: search engines, fetching, cassettes, and a guard against leaks.

What needs the extra ``web`` is imported when it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError
from .cassette import Cassette
from .guard import Hidden, LeakGuard
from .leaks import Leak, LeakFinder, LeakRules, TaskSecrets
from .limits import Limits

if TYPE_CHECKING:
    from .site import LiveSite, live_site

__all__ = [
    "Cassette",
    "Hidden",
    "Leak",
    "LeakFinder",
    "LeakGuard",
    "LeakRules",
    "Limits",
    "LiveSite",
    "TaskSecrets",
    "live_site",
]

_LATER = ("LiveSite", "live_site")
_NEEDED = ("httpx", "httpcore", "h2", "selectolax", "resiliparse")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(".site", __name__)
    except ModuleNotFoundError as error:
        if error.name in _NEEDED:
            raise MissingExtraError(error.name, "web") from error
        raise
    return getattr(module, name)
