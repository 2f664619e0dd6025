"""A site for a person's browser: the same pages that an agent opens, and the same search."""

import re
from functools import partial
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit

from ..site import Result
from .offline import OfflineSite

__all__ = ["make_server"]

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
_BODY = re.compile(r"<body\b[^>]{0,2000}>|</head\s*>|</title\s*>", re.IGNORECASE)
_BOX = (
    '<form action="/search" style="padding:.5em;background:#eee;font:16px sans-serif">'
    '<a href="/">{name}</a> <input name="q" value="{query}" size="40"> '
    "<button>Search</button></form>"
)
_POLICY = "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self'; form-action 'self'"


def make_server(site: OfflineSite, host: str, port: int) -> ThreadingHTTPServer:
    """Return a server of a site's pages, not yet running.

    A page stands at its path; ``/search?q=words&page=1`` searches. No script of a page runs.

    Raises:
        OSError: The port cannot be used.
    """
    return ThreadingHTTPServer((host, port), partial(_Handler, site, host))


class _Handler(BaseHTTPRequestHandler):
    """Answers one request.

    Args:
        site: Whose pages.
        host: The address that is listened on.
    """

    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float] = 30

    def __init__(self, site: OfflineSite, host: str, *arguments: object) -> None:
        self._site, self._host = site, host
        parts = urlsplit(site.home)
        self._root = f"{parts.scheme}://{parts.netloc}"
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Send a page, results, or the way to the first page."""
        if not self._is_for_us():
            self._send(HTTPStatus.FORBIDDEN, self._page("Wrong host", "<p>Wrong host.</p>"))
            return
        parts = urlsplit(self.path)
        given = parse_qs(parts.query)
        if parts.path == "/":
            self._redirect(self._local(self._site.home))
        elif parts.path == "/search":
            self._send(HTTPStatus.OK, self._results(given))
        else:
            self._open(self.path)

    do_HEAD = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing."""

    def _is_for_us(self) -> bool:
        """Tell whether the request names this host: another site's page must not read these."""
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        return host == self._host or host in _LOOPBACK

    def _open(self, path: str) -> None:
        candidates = (path, quote(unquote(path), safe="/?&=+()!*'~:@,;$%"))
        found = [url for p in candidates if (url := self._site.address(self._root + p))]
        if not found:
            body = f"<p>There is no page at {escape(path)}; the link is dead.</p>"
            self._send(HTTPStatus.NOT_FOUND, self._page("No such page", body))
            return
        html = self._site.html(found[0]).replace(f'href="{self._root}/', 'href="/')
        match = _BODY.search(html)
        place = match.end() if match else 0
        self._send(HTTPStatus.OK, html[:place] + self._box("") + html[place:])

    def _results(self, given: dict[str, list[str]]) -> str:
        query = given.get("q", [""])[0]
        number = given.get("page", ["1"])[0]
        page = int(number) if number.isascii() and number.isdigit() and len(number) < 4 else 1
        results = self._site.search(query, page)
        first = (page - 1) * self._site.page_size + 1
        items = "".join(map(self._item, results)) or "<p>No results.</p>"
        more = f'<p><a href="/search?q={quote(query)}&amp;page={page + 1}">More results</a></p>'
        body = f'<ol start="{first}">{items}</ol>{more if results else ""}'
        return self._page(f"Results for {query}", body, query)

    def _item(self, result: Result) -> str:
        return (
            f'<li><a class="result" href="{escape(self._local(result.url))}">'
            f"{escape(result.title)}</a><br>{escape(result.snippet)}</li>"
        )

    def _local(self, url: str) -> str:
        return url.removeprefix(self._root)

    def _box(self, query: str) -> str:
        return _BOX.format(name=escape(self._site.corpus.name), query=escape(query))

    def _page(self, title: str, body: str, query: str = "") -> str:
        return (
            f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f"</head><body>{self._box(query)}{body}</body></html>"
        )

    def _redirect(self, target: str) -> None:
        self.send_response(HTTPStatus.FOUND)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, status: HTTPStatus, html: str) -> None:
        content = html.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
