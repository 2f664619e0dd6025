"""HTML to pages: clean paragraphs and links, in time linear in the size."""

from .site import Page

__all__ = ["page_from_html"]


def page_from_html(html: bytes, url: str, charset: str | None = None) -> Page:
    """Return the page that a document of HTML shows; any bytes give one.

    Args:
        html: The document.
        url: Its address; ``<base>`` and relative links are resolved against it.
        charset: What the sender said; None to go by the byte-order mark or ``<meta>``, then
            UTF-8, then Windows-1252.

    Raises:
        MissingExtraError: The HTML parser is not installed.
    """
    raise NotImplementedError
