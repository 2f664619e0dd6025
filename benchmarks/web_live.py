"""How much faster 64 pages come when they are fetched at once, from a slow server on loopback.

The server, a process of its own, waits 50 ms before each answer. The rival is the same site in the
same run, opening such pages one by one. robots.txt is asked for once, outside the times. The second
row also reads each page: that is work of the processor, the same in both columns.

Run: python benchmarks/web_live.py
"""

import multiprocessing
import statistics
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

from seekgym.corpora.live import Limits, LiveSite
from seekgym.corpora.live.addresses import AddressRules
from seekgym.corpora.live.asking import Live
from seekgym.corpora.live.engines import make_engine
from seekgym.corpora.site import Page

PAGES = 64
LATENCY_S = 0.05
ROUNDS = 5
TEXT = "A paragraph of a page that is long enough to be taken for its main text. " * 4


class Handler(BaseHTTPRequestHandler):
    """Answers each request late, with a page of some 9 kB."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Send the page."""
        time.sleep(LATENCY_S)
        is_page = self.path != "/robots.txt"
        links = "".join(f"<p>{TEXT}<a href='/{number}'>on</a></p>" for number in range(30))
        body = f"<title>{self.path}</title><main>{links}</main>".encode() if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Takes 64 connections at a time."""

    daemon_threads = True
    request_queue_size = 256


def serve(told: Connection) -> None:
    """Serve until the process is ended; tell the port."""
    server = Server(("127.0.0.1", 0), Handler)
    told.send(server.server_address[1])
    server.serve_forever()


def main() -> None:
    """Print the times and their ratio."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    base = f"http://127.0.0.1:{here.recv()}"
    limits = Limits(at_once=PAGES, delay_s=0)
    rules = AddressRules.of(["127.0.0.1"])
    source = Live(make_engine("searxng:http://127.0.0.1:9"), (limits, rules, "seekgym"), None)
    site = LiveSite("searxng:http://127.0.0.1:9", allow=["127.0.0.1"], limits=limits)

    def fetch(urls: list[str]) -> bool:
        answers = source.ask([{"fetch": url} for url in urls])
        return not any(answer.fault for answer in answers)

    def read(urls: list[str]) -> bool:
        return all(isinstance(page, Page) for page in site.open_many(urls))

    print(f"{PAGES} pages, {LATENCY_S * 1000:.0f} ms before each answer, median of {ROUNDS} rounds")
    print(f"{'':22}{'one by one':>14}{'at once':>12}{'ratio':>8}")
    compare("fetched", fetch, f"{base}/f")
    compare("fetched and read", read, f"{base}/r")
    site.close()
    source.close()
    server.terminate()
    server.join()


def compare(label: str, ask: Callable[[list[str]], bool], base: str) -> None:
    """Print one row."""
    assert ask([f"{base}/first"])
    one_by_one, at_once = [], []
    for attempt in range(ROUNDS):
        urls = [f"{base}/{attempt}/{number}" for number in range(2 * PAGES)]
        start = time.perf_counter()
        assert all(ask([url]) for url in urls[:PAGES])
        middle = time.perf_counter()
        assert ask(urls[PAGES:])
        one_by_one.append(middle - start)
        at_once.append(time.perf_counter() - middle)
    single_s, many_s = statistics.median(one_by_one), statistics.median(at_once)
    print(f"{label:22}{single_s:12.2f} s{many_s:10.2f} s{single_s / many_s:8.1f}", flush=True)


if __name__ == "__main__":
    main()
