"""HTML as a stream of tags and texts: any text gives one, in time linear in its length.

No tree is built. A tree builder that follows the standard takes quadratic time and more on text
that is easy to write (100,000 nested ``<div>`` took one 37 s), and pages are written by anyone.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple

__all__ = ["RAW_ELEMENTS", "Tag", "attributes", "decode_html", "plain_text", "tokens"]

_TAG = re.compile(
    r"</?([a-zA-Z][^\s/>]*+)"
    r"((?:=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?+|[^>=]++)*+)>"
)
_ATTRIBUTE = re.compile(
    r"([^\s=/>][^\s=/>]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>\"'][^\s>]*+)))?+"
)
_RAW = {  # elements that hold text and no tags, with what ends them
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
RAW_ELEMENTS = frozenset(_RAW)
_HUGE_REFERENCE = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{7,}+);?")
_META_CHARSET = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_PRESCAN_BYTES = 1_024
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NO_CHARSETS = frozenset(  # codecs that no sender of pages can mean, some of them slow
    "idna punycode unicode_escape raw_unicode_escape undefined utf-7".replace("_", "-").split()
)
_WESTERN = frozenset(("ascii", "iso8859-1"))  # what browsers read as Windows-1252


class Tag(NamedTuple):
    """A start or end tag: its name in lower case, and its attributes as they were written."""

    name: str
    attributes: str
    is_end: bool


def tokens(html: str) -> Iterator[Tag | str]:
    r"""Give the tags of a document and the texts between them, still with their references.

    Comments, declarations and processing instructions are left out. The text of an element that
    holds no tags, such as ``script``, comes as one text.

    Example:
        >>> [token if isinstance(token, str) else token.name for token in tokens("a<b c>d")]
        ['a', 'b', 'd']
    """
    position, length = 0, len(html)
    while position < length:
        start = html.find("<", position)
        if start < 0:
            start = length
        if start > position:
            yield html[position:start]
        if start == length:
            return
        if (match := _TAG.match(html, start)) is None:
            position = _after_no_tag(html, start)
            if html.startswith("<", start) and position == start + 1:
                yield "<"
            continue
        position = match.end()
        tag = Tag(match[1].lower(), match[2], html.startswith("/", start + 1))
        yield tag
        if not tag.is_end and tag.name in _RAW:
            end = _RAW[tag.name].search(html, position)
            stop = end.start() if end else length
            yield html[position:stop]
            position = stop


def _after_no_tag(html: str, start: int) -> int:
    """Return where what begins with ``<`` and is no tag ends: a comment, or a mere character."""
    if html.startswith("<!--", start):
        end = html.find("-->", start + 2)
        return len(html) if end < 0 else end + 3
    following = html[start + 1 : start + 2]
    if following in ("!", "?", "/"):
        end = html.find(">", start + 2)
        return len(html) if end < 0 else end + 1
    if following.isalpha() and following.isascii():
        return len(html)  # a tag that never ends
    return start + 1


def attributes(tag: Tag) -> Mapping[str, str]:
    """Return the attributes of a tag, the first of each name, with references resolved.

    Example:
        >>> attributes(Tag("a", " href='x?a=1&amp;b' HREF=y hidden", False))
        {'href': 'x?a=1&b', 'hidden': ''}
    """
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(tag.attributes):
        value = match[2] or match[3] or match[4] or ""
        found.setdefault(match[1].lower(), plain_text(value))
    return found


def plain_text(text: str) -> str:
    """Return a text with its character references resolved, ``&amp;`` for example."""
    if "&" not in text:
        return text
    return unescape(_HUGE_REFERENCE.sub("\ufffd", text))


def decode_html(html: bytes, charset: str | None = None) -> str:
    r"""Return the text of a document: by its byte-order mark, the given charset, or ``<meta>``.

    Where none of them says anything that can be used, UTF-8 if it fits, else Windows-1252. What
    cannot be decoded becomes U+FFFD.

    Example:
        >>> decode_html("é".encode("latin-1"), "iso-8859-1"), decode_html(b"\xe9")
        ('é', 'é')
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if html.startswith(mark):
            return html[len(mark) :].decode(name, "replace")
    if codec := _codec(charset):
        return html.decode(codec, "replace")
    if declared := _META_CHARSET.search(html[:_PRESCAN_BYTES]):
        codec = _codec(declared[1].decode("ascii", "replace"))
        if codec:
            return html.decode("utf-8" if codec.startswith("utf-16") else codec, "replace")
    try:
        return html.decode("utf-8")
    except UnicodeDecodeError:
        return html.decode("cp1252", "replace")


def _codec(charset: str | None) -> str | None:
    """Return the codec of a charset that a sender named, or None if there is none."""
    if not charset:
        return None
    try:
        name = codecs.lookup(charset.strip().strip("\"'")).name
        "".encode(name)
    except (LookupError, ValueError, TypeError):  # unknown, with NUL, or no codec of text
        return None
    if name in _NO_CHARSETS:
        return None
    return "cp1252" if name in _WESTERN else name
