"""A page as blocks: written once, shown as HTML to people and as a ``Page`` to agents."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Literal, NamedTuple

from ..site import Link, Page

__all__ = ["Block", "blocks_to_html", "blocks_to_page", "link_names"]

_TAGS = {"heading": "h1", "section": "h2", "text": "p", "item": "li"}
_MARKS = {"heading": "# ", "section": "## ", "text": "", "item": "- ", "row": "", "nav": ""}
_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:46em;margin:1em auto;padding:0 1em}"
    "table{float:right;border:1px solid #999;margin:0 0 1em 1em;font-size:90%}"
    "th{text-align:left;vertical-align:top;padding-right:1em}nav{border-top:1px solid #999}"
)


class Block(NamedTuple):
    """A paragraph, heading, list item, row of an infobox (label, then value) or line of links.

    Attributes:
        kind: What it is.
        parts: Its text, with links in it.
    """

    kind: Literal["heading", "section", "text", "item", "row", "nav"]
    parts: tuple[str | Link, ...]


def blocks_to_page(url: str, title: str, blocks: Sequence[Block]) -> Page:
    """Return what an agent reads: the same as ``page_from_html`` makes of the HTML."""
    paragraphs = []
    links: dict[str, Link] = {}
    for number, block in enumerate(blocks):
        texts = [part if isinstance(part, str) else part.text for part in block.parts]
        if block.kind == "row":
            texts[0] += " | "
        paragraphs.append(_MARKS[block.kind] + "".join(texts))
        for part in block.parts:
            if isinstance(part, Link) and part.url != url:
                links.setdefault(part.url, part._replace(paragraph=number))
    return Page(url, title, tuple(paragraphs), tuple(links.values()))


def blocks_to_html(title: str, blocks: Sequence[Block]) -> str:
    """Return the page for a browser."""
    inside = "\n".join(_written(b for b in blocks if b.kind != "nav"))
    around = "\n".join(_written(b for b in blocks if b.kind == "nav"))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f"</title>\n<style>{_STYLE}</style></head>\n<body><main>\n{inside}\n</main>\n"
        f"{around}\n</body></html>\n"
    )


def _written(blocks: Iterable[Block]) -> Iterator[str]:
    open_element = ""
    for block in blocks:
        element = {"item": "ul", "row": "table"}.get(block.kind, "")
        if element != open_element:
            if open_element:
                yield f"</{open_element}>"
            if element:
                yield f"<{element}>"
            open_element = element
        content = [_part(part) for part in block.parts]
        if block.kind == "row":
            yield f"<tr><th>{content[0]}</th><td>{''.join(content[1:])}</td></tr>"
        else:
            tag = _TAGS.get(block.kind, "nav")
            yield f"<{tag}>{''.join(content)}</{tag}>"
    if open_element:
        yield f"</{open_element}>"


def _part(part: str | Link) -> str:
    if isinstance(part, str):
        return escape(part)
    return f'<a href="{escape(part.url)}">{escape(part.text)}</a>'


def link_names(text: str, links: Sequence[Link]) -> tuple[str | Link, ...]:
    """Return a text in which each name of a link, wherever it stands, is that link.

    Example:
        >>> link_names("Ann met Bo.", [Link("/bo", "Bo")])
        ('Ann met ', Link(url='/bo', text='Bo', paragraph=0), '.')
    """
    found = []
    for link in links:
        place = text.find(link.text)
        while place >= 0:
            found.append((place, -len(link.text), link))
            place = text.find(link.text, place + len(link.text))
    parts: list[str | Link] = []
    end = 0
    for place, _, link in sorted(found):
        if place < end:
            continue
        parts += [text[end:place], link]
        end = place + len(link.text)
    return tuple(part for part in (*parts, text[end:]) if part)
