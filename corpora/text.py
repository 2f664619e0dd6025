"""Small functions on text that every floor above uses: clean it, cut it."""

import re

__all__ = ["cut_text", "replace_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    r"""Return text that can be encoded: each lone surrogate becomes U+FFFD.

    Example:
        >>> replace_surrogates("a\ud83cb") == "a\ufffdb"
        True
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def cut_text(text: str, limit_chars: int) -> str:
    """Return at most ``limit_chars`` characters of text, cut at a space where one is near.

    Example:
        >>> cut_text("one two three", 9)
        'one two'
    """
    if len(text) <= limit_chars:
        return text
    space = text.rfind(" ", limit_chars - 40 if limit_chars > 80 else 0, limit_chars + 1)
    return text[: space if space > 0 else limit_chars]
