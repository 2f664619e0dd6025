"""HTTP/2 over TLS: the certificate is that of the name, though the address was resolved before."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading

import h2.config
import h2.connection
import h2.events
import pytest

from seekgym.corpora.errors import PageError
from seekgym.corpora.live import Limits, LiveSite

QUICK = Limits(total_s=3, first_wait_s=0.01, delay_s=0, retries=0)
BODY = b"<title>Safe</title><p>Over HTTP/2"
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="makes the certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=tower.example", "-addext",
         "subjectAltName=DNS:tower.example", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


class SecureServer:
    """Answers every request of HTTP/2 with one page; keeps what it was asked."""

    def __init__(self, certificate):
        self.names, self.asked, self.talkers = [], [], []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        context.set_alpn_protocols(["h2"])
        context.sni_callback = lambda s, name, c: self.names.append(name)
        self.context = context
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            raw, _ = self.socket.accept()
            raw.settimeout(5)
            if raw.recv(1, socket.MSG_PEEK) != b"\x16":  # no TLS: the call to stop
                raw.close()
                return
            self.talkers.append(threading.Thread(target=self.welcome, args=(raw,)))
            self.talkers[-1].start()

    def welcome(self, raw):
        with raw, contextlib.suppress(OSError):
            self.talk(self.context.wrap_socket(raw, server_side=True))

    def talk(self, connection):
        with connection:
            self.converse(connection)

    def converse(self, connection):
        h2_server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        h2_server.initiate_connection()
        connection.sendall(h2_server.data_to_send())
        while data := connection.recv(65_536):
            for event in h2_server.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self.answer(h2_server, event)
            connection.sendall(h2_server.data_to_send())

    def answer(self, h2_server, event):
        headers = {bytes(k): bytes(v) for k, v in event.headers}
        self.asked.append(headers)
        status = b"404" if headers[b":path"] == b"/robots.txt" else b"200"
        fields = [(b":status", status), (b"content-type", b"text/html")]
        h2_server.send_headers(event.stream_id, fields)
        h2_server.send_data(event.stream_id, BODY, end_stream=True)

    def stop(self):
        with socket.create_connection(("127.0.0.1", self.port)) as call:
            call.sendall(b"x")
        for thread in (self.thread, *self.talkers):
            thread.join()
        self.socket.close()


@pytest.fixture
def server(certificate, monkeypatch):
    cert, _ = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    found = socket.getaddrinfo

    def resolve(host, port, *args, **options):
        near = "127.0.0.1" if str(host).endswith(".example") else host
        return found(near, port, *args, **options)

    monkeypatch.setattr("socket.getaddrinfo", resolve)
    server = SecureServer(certificate)
    yield server
    server.stop()


@needs_openssl
def test_a_page_comes_over_http_2_from_the_address_that_was_checked(server):
    site = LiveSite("searxng:http://127.0.0.1:9", allow=["127.0.0.1"], limits=QUICK)
    page = site.open(f"https://tower.example:{server.port}/x")
    site.close()
    assert page.paragraphs == ("Over HTTP/2",)
    assert set(server.names) == {"tower.example"}
    assert [asked[b":path"] for asked in server.asked] == [b"/robots.txt", b"/x"]
    assert server.asked[0][b":authority"] == f"tower.example:{server.port}".encode()


@needs_openssl
def test_a_certificate_of_another_name_is_refused(server):
    site = LiveSite("searxng:http://127.0.0.1:9", allow=["127.0.0.1"], limits=QUICK)
    site.open(f"https://tower.example:{server.port}/")  # the connection is kept
    with pytest.raises(PageError) as error:
        site.open(f"https://other.example:{server.port}/")
    site.close()
    assert error.value.code == "unreachable"
    assert all(b"other" not in asked[b":authority"] for asked in server.asked)
