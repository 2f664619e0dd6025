"""The main text of a page, as HTML again: without menus, banners and footers.

What finds it builds the tree of a page, as browsers do, and a small page can make a very large
tree: 14 kB of open ``<font>`` cost two seconds and 300 MB. ``is_tame`` finds such pages first.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from typing import Any

from ..errors import MissingExtraError, raise_unknown
from ..pages import page_from_html
from ..site import Page

__all__ = ["MAIN_TEXT", "get_main_text", "is_tame", "main_page"]

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_FORMATTING = frozenset("a b big code em font i nobr s small strike strong tt u".split())
_NOT_NESTED = frozenset(  # void, or closed by the next of the kind
    "area base br col embed hr img input link meta source track wbr p li dt dd option tr td th "
    "thead tbody tfoot html head body path".split()
)
_LEAST_SHARE = 0.1  # of a page's text; a smaller part is not taken for its main text
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


def main_page(html: str, url: str, find: Callable[[str], str]) -> Page:
    """Return a page cut down to its main text; the links outside it come after those in it.

    The page as a whole, if what was found is next to nothing, or if its tree would be too large.
    """
    if find is _whole or not is_tame(html):
        return page_from_html(html, url)
    found = find(html)
    if _chars(found) < _LEAST_SHARE * _chars(html):
        return page_from_html(html, url)
    page = page_from_html(_framed(found, html), url)
    return replace(page, paragraphs=page.paragraphs[:-1])  # the last one is that of the links


def _framed(found: str, html: str) -> str:
    """Return the main text as HTML with its page's title and base, and all links at the end."""
    lexbor: Any = _module("selectolax.lexbor", "selectolax")
    tree = lexbor.LexborHTMLParser(html)
    title = tree.css_first("title")
    base = tree.css_first("base[href]")
    parts = ["" if title is None else f"<title>{escape(title.text())}</title>"]
    parts += [
        "" if base is None else f'<base href="{_attribute(base, "href")}">',
        found,
        "<p>links",
    ]
    for node in tree.css("a[href], area[href]"):
        parts.append(f' <a href="{_attribute(node, "href")}">{escape(node.text())}</a>')
    for node in tree.css("iframe[src], frame[src]"):
        parts.append(f' <a href="{_attribute(node, "src")}">frame</a>')
    return "".join(parts)


def _attribute(node: Any, name: str) -> str:
    return escape(node.attributes[name] or "")


def _chars(html: str) -> int:
    """Return how much text a reader of HTML sees."""
    html2text: Any = _module("resiliparse.extract.html2text", "resiliparse")
    return len(html2text.extract_plain_text(html, alt_texts=False))


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
