"""HTML to pages: clean paragraphs and links, in time linear in the size."""

import re
from urllib.parse import urldefrag, urljoin

from .markup import RAW_ELEMENTS, Tag, attributes, decode_html, plain_text, tokens
from .site import Link, Page
from .text import replace_surrogates

__all__ = ["page_from_html", "plain_line"]

_BLOCKS = frozenset(
    "address article aside blockquote body br caption center dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup "
    "hr html iframe legend li main menu nav ol option optgroup p pre search section select summary "
    "table tbody template textarea tfoot thead title tr ul".split()
) - {"br"}
_SILENT = frozenset("script style template noembed noframes iframe svg math object".split())
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_WITH_ATTRIBUTES = frozenset("a area base frame iframe img".split())
_NOTABLE = re.compile(r"hidden|role|style", re.IGNORECASE)  # attributes of any element
_CLOSED_BY_THE_NEXT = frozenset("p li dt dd option tr td th".split())
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_SPACES = re.compile(r"[ \t\n\r\f]+")
_BLANK_LINE = re.compile(r"\n(?:[ \t\xa0]*\n)+")
_CONTROLS = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)
_NOT_IN_URLS = re.compile(r"[\t\n\r]")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_HIDING_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_MAX_URL_CHARS = 2_000
_MAX_TITLE_CHARS = 300


def page_from_html(html: bytes | str, url: str, charset: str | None = None) -> Page:
    """Return the page that a document of HTML shows; anything gives one.

    What a reader does not see (scripts, styles, ``hidden``) is left out. A list item begins with
    ``-``, a heading with ``#``, the cells of a row are set apart by ``|``. What stands in
    ``<main>`` comes before what stands around it.

    Args:
        html: The document.
        url: Its address; ``<base>`` and relative links are resolved against it.
        charset: What the sender said; None to go by the byte-order mark or ``<meta>``, then
            UTF-8, then Windows-1252.

    Example:
        >>> page_from_html(b"<title>T</title><p>One <a href=b.html>two</a>", "http://x.example/a")
        ... # doctest: +NORMALIZE_WHITESPACE
        Page(url='http://x.example/a', title='T', paragraphs=('One two',),
             links=(Link(url='http://x.example/b.html', text='two', paragraph=0),))
    """
    text = html if isinstance(html, str) else decode_html(html, charset)
    builder = _Builder(url)
    for token in tokens(replace_surrogates(text)):
        if isinstance(token, str):
            builder.text(token)
        else:
            builder.tag(token)
    return builder.page()


def plain_line(text: str) -> str:
    r"""Return a text on one line, without control characters and without double spaces.

    Example:
        >>> plain_line(" a\u2028b\t c\u202e ")
        'a b c'
    """
    return " ".join(_CONTROLS.sub("", text.replace("\x85", " ")).split())


class _Builder:
    """Collects paragraphs and links from tags and texts."""

    def __init__(self, url: str) -> None:
        self._url, self._base = url, url
        self._title: str | None = None
        self._heading = ""
        self._inside: list[tuple[str, list[Link]]] = []  # paragraphs in <main>, with their links
        self._around: list[tuple[str, list[Link]]] = []
        self._line: list[str] = []  # the parts of the paragraph that is being written
        self._is_begun = False  # whether one of them is more than space
        self._links: list[Link] = []
        self._mark = ""  # what the next text is to begin with: "- ", "## "
        self._hidden: tuple[str, int] | None = None  # the element that hides, how deep in it
        self._open_link: tuple[str, int] | None = None  # its address, where its text begins
        self._raw: str | None = None  # the element whose text comes as it is: script, title
        self._pre = self._main = 0
        self._main_name = ""

    def text(self, text: str) -> None:
        """Take a text."""
        if self._raw == "title":
            if self._title is None:
                self._title = plain_line(plain_text(text))[:_MAX_TITLE_CHARS]
            return
        if self._raw in _SILENT or self._hidden is not None:
            return
        if not self._pre and self._raw is None:
            text = _SPACES.sub(" ", text)
            if self._line and self._line[-1] == "\n":
                text = text.lstrip(" ")
        text = plain_text(text)
        if self._mark and text.strip():
            self._write_mark()
            text = text if self._pre else text.lstrip(" ")
        self._is_begun = self._is_begun or bool(text.strip())
        self._line.append(text)

    def tag(self, tag: Tag) -> None:
        """Take a tag."""
        name = tag.name
        self._raw = None
        if self._hidden is not None and not self._is_shown_again(tag):
            return
        if name in _BLOCKS:
            self._flush()
        if tag.is_end:
            self._end(name)
        else:
            self._start(tag)

    def page(self) -> Page:
        """Return the page."""
        self._flush()
        found = self._inside + self._around
        links: dict[str, Link] = {}
        for number, (_, held) in enumerate(found):
            for link in held:
                links.setdefault(link.url, link._replace(paragraph=number))
        title = self._title or self._heading[:_MAX_TITLE_CHARS] or plain_line(self._url)
        paragraphs = tuple(text for text, _ in found)
        return Page(self._url, title, paragraphs, tuple(links.values()))

    def _is_shown_again(self, tag: Tag) -> bool:
        """Count in and out of the element that hides; tell whether the tag is to be read."""
        assert self._hidden is not None
        name, depth = self._hidden
        if name in ("svg", "math") and not tag.is_end and tag.name in _BLOCKS - {"title"}:
            self._hidden = None  # as browsers do: HTML ends a drawing
            return True
        is_next = name in _CLOSED_BY_THE_NEXT and tag.name == name and not tag.is_end
        if is_next or (name == "p" and tag.name in _BLOCKS):
            self._hidden = None
            return not (tag.is_end and tag.name == "p")
        if tag.name == name:
            depth += -1 if tag.is_end else 1
            self._hidden = (name, depth) if depth else None
        return False

    def _start(self, tag: Tag) -> None:
        name, given = tag.name, {}
        if name in _WITH_ATTRIBUTES or (tag.attributes and _NOTABLE.search(tag.attributes)):
            given = dict(attributes(tag))
        self._raw = name if name in RAW_ELEMENTS else None
        if name not in _VOID and (
            name in ("template", "svg", "math", "object")
            or "hidden" in given
            or _HIDING_STYLE.search(given.get("style", ""))
        ):
            self._hidden = (name, 1)
            return
        if name in ("a", "area"):
            self._start_link(given.get("href"), given.get("alt", ""))
        elif name in ("frame", "iframe"):
            self._add_link(given.get("src", ""), given.get("title") or given.get("name") or name)
        elif name == "base" and self._base is self._url and given.get("href"):
            self._base = self._absolute(given["href"]) or self._base
        elif name == "br":
            self._line.append("\n")
        elif name in ("td", "th"):
            self._start_cell()
        elif name == "img" and given.get("alt", "").strip():
            self._is_begun = True
            self._write_mark()
            self._line.append(f"[image: {plain_line(given['alt'])}]")
        else:
            self._start_block(name, given.get("role") == "main")

    def _start_block(self, name: str, is_main: bool) -> None:
        if name == "pre":
            self._pre += 1
        elif name == "li":
            self._mark = "- "
        elif name in _HEADINGS:
            self._mark = _HEADINGS[name]
        elif self._main:
            self._main += name == self._main_name
        elif name == "main" or is_main:
            self._flush()
            self._main_name, self._main = name, 1

    def _end(self, name: str) -> None:
        if name == "a":
            self._end_link()
        elif name == "pre":
            self._pre = max(0, self._pre - 1)
        elif self._main and name == self._main_name:
            self._flush()
            self._main -= 1

    def _write_mark(self) -> None:
        """Write what the paragraph or cell begins with; it is no part of a link's text."""
        if self._open_link is not None and self._open_link[1] == len(self._line):
            self._open_link = (self._open_link[0], len(self._line) + 1)
        self._line.append(self._mark)
        self._mark = ""

    def _start_cell(self) -> None:
        if self._is_begun:
            self._mark = " | "

    def _start_link(self, href: str | None, text: str) -> None:
        self._end_link()
        if href is None:
            return
        if text:
            self._add_link(href, text)
        else:
            self._open_link = (href, len(self._line))

    def _end_link(self) -> None:
        """Close the link that is open, if any: here, or because its paragraph ends."""
        if self._open_link is not None:
            href, begin = self._open_link
            self._open_link = None
            self._add_link(href, plain_line("".join(self._line[begin:])))

    def _add_link(self, href: str, text: str) -> None:
        url = self._absolute(href)
        if url is not None:
            self._links.append(Link(url, text[:_MAX_TITLE_CHARS]))

    def _absolute(self, href: str) -> str | None:
        """Return the address that a link leads to, without fragment; None if to none of the web."""
        href = plain_line(_NOT_IN_URLS.sub("", href))
        if len(href) > _MAX_URL_CHARS or href.startswith("#"):
            return None
        try:
            url = urldefrag(urljoin(self._base, href))[0]
        except ValueError:
            return None
        is_web = url.startswith(("http://", "https://")) and " " not in url
        return url if is_web and url != self._url else None

    def _flush(self) -> None:
        """End the paragraph; a blank line in it begins another."""
        self._end_link()
        self._mark, self._is_begun = "", False
        text = _LINE_ENDS.sub("\n", "".join(self._line)).expandtabs(4)
        links, self._line, self._links = self._links, [], []
        blocks = [clean for block in _BLANK_LINE.split(text) if (clean := _clean(block))]
        if not blocks and links:
            blocks = [" ".join(link.text for link in links if link.text) or "(links)"]
        kept = self._inside if self._main else self._around
        for number, block in enumerate(blocks):
            if not self._heading and block.startswith("#"):
                self._heading = block.lstrip("# ")
            kept.append((block, links if number == 0 else []))


def _clean(block: str) -> str:
    """Return a paragraph without control characters, its first line's indent and empty ends."""
    text = _CONTROLS.sub("", block.replace("\xa0", " "))
    if "\n" not in text:
        return " ".join(text.split())
    lines = [line.rstrip() for line in text.split("\n")]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines).strip("\n")
