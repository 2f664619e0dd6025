"""What came over the wire, as text: decompressed within a limit, its charset found."""

import codecs
import re
import zlib

from ..errors import PageError

__all__ = ["Inflater", "check_is_text", "decode_text", "too_large"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What browsers read under these names.
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
_CHARSETS = re.compile(
    r"utf-8|utf-16-[lb]e|iso8859-\d+|cp125\d|cp874|cp866|koi8-[ru]|gb18030|big5(hkscs)?|euc_jp"
    r"|iso2022_jp|cp932|cp949|mac-roman|mac-cyrillic"
)
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_META_BYTES = 1024
_TEXT_TYPES = re.compile(
    r"text/.*|application/(xhtml\+xml|xml|json|ld\+json|javascript|.*\+xml|.*\+json)"
)
_MAGIC = (
    b"%PDF-",
    b"\x89PNG\r\n",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\x7fELF",
)
_NUL_BYTES = 2048


class Inflater:
    """Decompresses a body piece by piece, and stops at a limit whatever the ratio.

    Args:
        encoding: The header ``Content-Encoding``.
        max_bytes: The longest body, decompressed.

    Raises:
        PageError: The encoding is none that was asked for.
    """

    def __init__(self, encoding: str, max_bytes: int) -> None:
        self._left = max_bytes
        self._max_bytes = max_bytes
        names = [name for part in encoding.lower().split(",") if (name := part.strip())]
        names = [name for name in names if name != "identity"]
        if len(names) > 1 or any(name not in ("gzip", "x-gzip", "deflate") for name in names):
            raise PageError("not_text", f"The page is encoded as {encoding[:60]!r}.")
        self._is_deflate = names == ["deflate"]
        # 47: gzip or zlib, by its head
        self._inflate = zlib.decompressobj(47) if names else None
        self._is_first = True

    def feed(self, data: bytes) -> bytes:
        """Return what a piece decompresses to.

        Raises:
            PageError: The body is longer than the limit, or is broken.
        """
        plain = data if self._inflate is None else self._inflated(data)
        self._left -= len(plain)
        if self._left < 0:
            raise too_large(self._max_bytes)
        return plain

    def check_end(self) -> None:
        """Raise a PageError if a compressed body broke off."""
        if self._inflate is not None and not self._is_first and not self._inflate.eof:
            raise PageError("broken", "The page broke off before its end.")

    def _inflated(self, data: bytes) -> bytes:
        assert self._inflate is not None
        if self._is_first and self._is_deflate and data and data[0] & 0x0F != 8:
            self._inflate = zlib.decompressobj(-15)  # deflate without a head, as some servers send
        self._is_first = self._is_first and not data
        try:
            return self._inflate.decompress(data, self._left + 1)
        except zlib.error:
            raise PageError("broken", "The page is compressed, and broken.") from None


def too_large(max_bytes: int) -> PageError:
    """Return the error for a body over the limit."""
    return PageError("too_large", f"The page is larger than {max_bytes:,} bytes and is not shown.")


def check_is_text(content_type: str, start: bytes | None = None) -> None:
    """Refuse what is no text, by its type, and by its first bytes once they are there.

    Raises:
        PageError: With the code ``not_text``.
    """
    media = content_type.split(";")[0].strip().lower()
    if media and not _TEXT_TYPES.fullmatch(media):
        raise PageError("not_text", f"The address leads to {media[:60]}, which is not text.")
    if start is None:
        return
    kind = next((magic for magic in _MAGIC if start.startswith(magic)), None)
    has_nul = b"\0" in start[:_NUL_BYTES] and _wide(start, _charset_of(content_type)) is None
    if kind == b"%PDF-":
        raise PageError("not_text", "The address leads to a PDF, which is not text.")
    if kind is not None or has_nul:
        raise PageError("not_text", "The address leads to a binary file, which is not text.")


def decode_text(body: bytes, content_type: str) -> str:
    """Return a body as text; whatever the bytes are, they give one.

    A byte-order mark decides. Then: bytes that are UTF-8 and not ASCII are UTF-8, whatever was
    said, since nothing else looks like it by chance. Then what the header says, then ``<meta>``;
    what does not fit what was said becomes U+FFFD. If nothing was said: Windows-1252.

    Example:
        >>> decode_text("Zürich".encode(), "text/html; charset=iso-8859-1")
        'Zürich'
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, errors="replace")
    said = _known(_charset_of(content_type))
    if said is None and (meta := _META.search(body[:_META_BYTES])):
        said = _known(meta[1].decode("ascii"))
        said = "utf-8" if said in ("utf-16-le", "utf-16-be") else said  # or it could not be read
    if said in ("utf-16-le", "utf-16-be"):
        return body.decode(said, errors="replace")
    if not body.isascii():
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return body.decode(said or "cp1252", errors="replace")


def _wide(start: bytes, said: str | None) -> str | None:
    """Return which UTF-16 a body is in, or None."""
    marked = next((name for mark, name in _BOMS if start.startswith(mark)), _known(said))
    return marked if marked in ("utf-16-le", "utf-16-be") else None


def _known(name: str | None) -> str | None:
    """Return the charset that a name means, or None if it is not one of the web's."""
    try:
        found = codecs.lookup(name or "").name
    except LookupError:
        return None
    found = _READ_AS.get(found, found)
    return found if _CHARSETS.fullmatch(found) else None


def _charset_of(content_type: str) -> str | None:
    """Return the charset that a header names, or None."""
    found = re.search(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", content_type, re.IGNORECASE)
    return found[1] if found else None
