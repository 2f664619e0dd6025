"""A web server on loopback whose pages are functions that write the answer themselves."""

import socket
import struct
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Exchange:
    """One request, and the ways to answer it."""

    def __init__(self, handler, body):
        self._handler = handler
        self.path = handler.path
        self.headers = handler.headers
        self.body = body
        self.attempt = 0

    def send(self, body=b"", status=200, content_type="text/html; charset=utf-8", **headers):
        """Send a whole answer; underscores in the names of headers become hyphens."""
        body = body.encode() if isinstance(body, str) else body
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self._handler.send_response(status)
        if content_type is not None:
            self._handler.send_header("Content-Type", content_type)
        for name, value in ({"Content-Length": str(len(body))} | fields).items():
            if value is not None:
                self._handler.send_header(name, value)
        self._handler.end_headers()
        self.write(body)

    def redirect(self, to, status=302, **headers):
        self.send(status=status, Location=to, **headers)

    def write(self, data):
        """Write bytes as they are; False if nobody reads them any more."""
        try:
            self._handler.wfile.write(data)
            self._handler.wfile.flush()
        except OSError:
            return False
        return True

    def reset(self):
        """Break the connection so that the other side sees a reset."""
        connection = self._handler.connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        self._handler.close_connection = True

    def wait(self, seconds):
        """Wait, unless the server stops."""
        self._handler.server.stopping.wait(seconds)

    @property
    def is_stopping(self):
        return self._handler.server.stopping.is_set()


class WebServer:
    """Serves ``pages``: for each path, a function of an exchange, or a text of HTML."""

    def __init__(self, host="127.0.0.1"):
        self.pages = {}
        self.asked = []
        self.times = []
        self.counts = Counter()
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 20

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                web.answer(Exchange(self, body))

            do_POST = do_GET

            def log_message(self, *args):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request, client_address):
                pass

        self.server = Server((host, 0), Handler)
        self.server.stopping = threading.Event()
        self.host, self.port = self.server.server_address[:2]
        self.url = f"http://{host}:{self.port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def answer(self, exchange):
        with self._lock:
            exchange.attempt = self.counts[exchange.path]
            self.counts[exchange.path] += 1
            self.asked.append(exchange)
            self.times.append(time.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            page = self.pages.get(exchange.path.split("?")[0])
            if page is None:
                exchange.send("<h1>Not here</h1>", 404)
            elif callable(page):
                page(exchange)
            else:
                exchange.send(page)
        finally:
            with self._lock:
                self.at_once -= 1

    def stop(self):
        if self._thread.is_alive():
            self.server.stopping.set()
            self.server.shutdown()
            self._thread.join()
            self.server.server_close()


@contextmanager
def web_server(pages=None, host="127.0.0.1"):
    """Serve pages for as long as the block runs."""
    web = WebServer(host)
    web.pages.update(pages or {})
    try:
        yield web
    finally:
        web.stop()
