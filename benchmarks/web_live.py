"""How much faster 64 pages come when they are fetched at once, from a slow server on loopback.

The server, a process of its own, waits 50 ms before each answer. The rival is the same site in the
same run, opening such pages one by one. robots.txt is asked for once, outside the times.

Run: python benchmarks/web_live.py
"""

import multiprocessing
import statistics
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

from seekgym.corpora.live import Limits, LiveSite
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
    site = LiveSite("searxng:http://127.0.0.1:9", allow=["127.0.0.1"], limits=limits)
    site.open(f"{base}/first")
    one_by_one, at_once = [], []
    for attempt in range(ROUNDS):
        urls = [f"{base}/{attempt}/{number}" for number in range(2 * PAGES)]
        start = time.perf_counter()
        single = [site.open(url) for url in urls[:PAGES]]
        middle = time.perf_counter()
        many = site.open_many(urls[PAGES:])
        end = time.perf_counter()
        assert all(isinstance(page, Page) for page in (*single, *many))
        one_by_one.append(middle - start)
        at_once.append(end - middle)
    site.close()
    server.terminate()
    server.join()
    single_s, many_s = statistics.median(one_by_one), statistics.median(at_once)
    print(f"{PAGES} pages, {LATENCY_S * 1000:.0f} ms before each answer, median of {ROUNDS} rounds")
    print(f"one by one  {single_s:7.2f} s  {PAGES / single_s:7.1f} pages/s")
    print(f"at once     {many_s:7.2f} s  {PAGES / many_s:7.1f} pages/s")
    print(f"ratio       {single_s / many_s:7.1f}")


if __name__ == "__main__":
    main()
