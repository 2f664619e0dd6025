"""The main text of a page, as HTML again: without menus, banners and footers.

What finds it builds the tree of a page, as browsers do, and a small page can make a very large
tree: 14 kB of open ``<font>`` cost two seconds and 300 MB. ``is_tame`` finds such pages first.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import MissingExtraError, raise_unknown

__all__ = ["MAIN_TEXT", "get_main_text", "is_tame"]

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_FORMATTING = frozenset("a b big code em font i nobr s small strike strong tt u".split())
_NOT_NESTED = frozenset(  # void, or closed by the next of the kind
    "area base br col embed hr img input link meta source track wbr p li dt dd option tr td th "
    "thead tbody tfoot html head body path".split()
)
_MOST_DEPTH = 256
_MOST_NODES_A_TAG = 8


def _whole(html: str) -> str:
    return html


def _resiliparse(html: str) -> str:
    html2text: Any = _module("resiliparse.extract.html2text", "resiliparse")
    return str(
        html2text.extract_plain_text(
            html, preserve_formatting="minimal_html", main_content=True, links=True
        )
    )


def _trafilatura(html: str) -> str:
    trafilatura: Any = _module("trafilatura", "trafilatura")
    found = trafilatura.extract(
        html, output_format="html", include_links=True, include_tables=True, favor_recall=True
    )
    return found or ""


MAIN_TEXT: Mapping[str, Callable[[str], str]] = {
    "resiliparse": _resiliparse,
    "trafilatura": _trafilatura,
    "whole": _whole,
}


def get_main_text(name: str) -> Callable[[str], str]:
    """Return what finds the main text in HTML.

    Raises:
        ConfigurationError: The name is unknown.
    """
    if name not in MAIN_TEXT:
        raise_unknown("main_text", name, MAIN_TEXT)
    return MAIN_TEXT[name]


def is_tame(html: str) -> bool:
    """Tell whether the tree of a page stays in proportion to the page; linear in the size.

    Open formatting is opened again in each block that follows, so it counts there once more.
    """
    depth = formatting = tags = nodes = 0
    for end, tag in _TAG.findall(html):
        tag = tag.lower()
        step = -1 if end else 1
        tags += 1
        nodes += 1 if tag in _FORMATTING else 1 + formatting
        if tag in _FORMATTING:
            formatting = max(0, formatting + step)
        elif tag not in _NOT_NESTED:
            depth = max(0, depth + step)
        if depth + formatting > _MOST_DEPTH:
            return False
    return nodes <= _MOST_NODES_A_TAG * tags + 10_000


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise MissingExtraError(package, "web") from None
