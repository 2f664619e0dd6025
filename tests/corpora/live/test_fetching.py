"""Whatever a server does, opening a page ends in bounded time with a page or a plain reason."""

import gzip
import threading
import time
import tracemalloc
import zlib

import pytest
from webserver import web_server

from seekgym.corpora.errors import PageError
from seekgym.corpora.live import Limits, LiveSite
from seekgym.corpora.live.bodies import Inflater

SEARCH = "searxng:http://127.0.0.1:9"
LIMITS = {"total_s": 1.2, "first_wait_s": 0.01, "delay_s": 0, "at_once": 64}
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def web():
    with web_server() as web:
        yield web


@pytest.fixture(scope="module")
def site():
    site = LiveSite(SEARCH, allow=["127.0.0.1"], limits=Limits(**LIMITS), main_text="whole")
    yield site
    site.close()


@pytest.fixture
def fetch(web, site):
    """Serve one page and open it; return the page, or the code of the error, and the seconds."""

    def fetch(page, path=None):
        name = path or f"/page{len(web.pages)}"
        web.pages[name] = page
        start = time.monotonic()
        try:
            result = site.open(web.url + name)
        except PageError as error:
            result, fetch.reason = error.code, error.reason
        fetch.seconds = time.monotonic() - start
        assert fetch.seconds < LIMITS["total_s"] + 1
        assert fetch.reason.endswith(".")
        assert len(fetch.reason) < 400
        return result

    fetch.reason = "."
    return fetch


def test_a_page_is_opened(fetch, web):
    page = fetch("<title>A  page</title><p>One <a href='/x#y'>link</a>.<p>Two")
    assert page.title == "A page"
    assert page.paragraphs == ("One link.", "Two")
    assert page.links[0].url == f"{web.url}/x"


def test_redirects_are_followed_and_the_page_has_its_last_address(fetch, web):
    web.pages["/end"] = "<base href='/deep/'><p>End <a href='next'>on</a>"
    for status in (301, 302, 303, 307, 308):
        page = fetch(lambda exchange, status=status: exchange.redirect("/end", status))
        assert page.url == f"{web.url}/end"
        assert page.links[0].url == f"{web.url}/deep/next"


def test_circles_of_redirects_end(fetch, web):
    assert fetch(lambda e: e.redirect("/circle"), "/circle") == "redirect_loop"
    assert fetch(lambda e: e.redirect(f"{e.path}x"), "/longer") == "not_found"
    web.pages["/n"] = lambda e: e.redirect(f"/n?{int(e.path.partition('?')[2] or 0) + 1}")
    assert fetch(lambda e: e.redirect("/n"), "/count") == "redirect_loop"
    assert web.counts["/n?20"] == 0


@pytest.mark.parametrize("to", ["file:///etc/passwd", "http://", "http://[", "data:text/html,x"])
def test_redirects_to_what_is_no_page_are_refused(fetch, to):
    assert fetch(lambda e: e.redirect(to)) in ("bad_url", "redirect_loop")


def test_a_redirect_that_leads_nowhere_is_an_error(fetch):
    assert fetch(lambda e: e.send("moved", 302)) == "http_error"


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, "not_found"), (410, "not_found"), (401, "http_error"), (403, "http_error"),
     (418, "http_error"), (451, "http_error"), (599, "http_error"), (304, "http_error")],
)  # fmt: skip
def test_a_status_that_shows_no_page_is_named(fetch, status, code):
    assert fetch(lambda e: e.send("<p>No", status)) == code


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_a_server_that_recovers_is_asked_again(fetch, web, status):
    page = fetch(lambda e: e.send("", status) if e.attempt < 2 else e.send("<p>Well"))
    assert page.paragraphs == ("Well",)


@pytest.mark.parametrize(("status", "code"), [(500, "http_error"), (429, "rate_limited")])
def test_a_server_that_does_not_recover_is_left_alone(fetch, web, status, code):
    path = f"/never{status}"
    assert fetch(lambda e: e.send("", status), path) == code
    assert web.counts[path] == 3


def test_retry_after_is_waited_for_if_there_is_time(fetch, web):
    page = fetch(
        lambda e: e.send("<p>Well") if e.attempt else e.send("", 429, Retry_After="1"), "/later"
    )
    assert page.paragraphs == ("Well",)
    assert fetch.seconds >= 1


@pytest.mark.parametrize("value", ["3600", "Fri, 31 Dec 2999 23:59:59 GMT", "9" * 400])
def test_a_longer_retry_after_is_not_waited_for(fetch, value):
    assert fetch(lambda e: e.send("", 429, Retry_After=value)) == "rate_limited"
    assert fetch.seconds < 1


@pytest.mark.parametrize("value", ["", "soon", "-5", "Mon, 99 Foo", "1e9", "٣"])
def test_a_retry_after_that_says_nothing_is_passed_over(fetch, value):
    page = fetch(
        lambda e: (
            e.send("<p>Well")
            if e.attempt
            else e.send("", 503, Retry_After=value.encode().decode("latin-1"))
        )
    )
    assert page.paragraphs == ("Well",)


def drip(exchange, start, piece, seconds=0.05):
    exchange.write(start)
    while exchange.write(piece) and not exchange.is_stopping:
        exchange.wait(seconds)


def test_slow_bodies_end_after_the_whole_time(fetch):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n"
    assert fetch(lambda e: drip(e, head, b"x")) == "timeout"


def test_slow_heads_end_after_the_whole_time(fetch):
    assert fetch(lambda e: drip(e, b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n")) == "timeout"
    assert fetch(lambda e: drip(e, b"HTTP/1.1 ", b"2")) in ("timeout", "unreachable")


def test_silence_ends_after_the_whole_time(fetch):
    assert fetch(lambda e: e.wait(10)) == "timeout"


def test_an_endless_body_ends_at_the_limit(fetch):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    assert fetch(lambda e: drip(e, head, b"x" * MEGABYTE, 0)) == "too_large"


def test_an_endless_head_ends(fetch):
    assert fetch(lambda e: drip(e, b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 9_000, 0)) in (
        "unreachable",
        "timeout",
    )


def test_resets_are_tried_again_and_then_named(fetch, web):
    page = fetch(lambda e: e.send("<p>Well") if e.attempt else e.reset(), "/reset1")
    assert page.paragraphs == ("Well",)
    assert fetch(lambda e: e.reset(), "/reset3") == "unreachable"
    assert web.counts["/reset3"] == 3


def test_a_body_that_breaks_off_is_no_page(fetch):
    def breaks_off(exchange):
        exchange.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99\r\n\r\nhalf"
        )
        exchange.reset()

    assert fetch(breaks_off) == "unreachable"


def test_what_is_no_http_is_named(fetch):
    def nonsense(exchange):
        exchange.write(b"\x16\x03\x01 nonsense\r\n\r\n")
        exchange.reset()

    assert fetch(nonsense) == "unreachable"


def test_nobody_at_the_port_is_named(site):
    with web_server() as gone:
        pass
    with pytest.raises(PageError) as error:
        site.open(gone.url)
    assert error.value.code == "unreachable"


def bomb(megabytes, wbits):
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    zeros = b"0" * MEGABYTE
    return b"".join([*(packer.compress(zeros) for _ in range(megabytes)), packer.flush()])


@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_bombs_end_at_the_limit(fetch, encoding, wbits):
    packed = bomb(200, wbits)
    assert len(packed) < 250_000
    assert fetch(lambda e: e.send(packed, Content_Encoding=encoding)) == "too_large"
    assert fetch.seconds < 1


def test_a_bomb_takes_no_more_memory_than_its_limit():
    packed = bomb(50, 31)
    tracemalloc.start()
    with pytest.raises(PageError):
        Inflater("gzip", MEGABYTE).feed(packed)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5 * MEGABYTE


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda text: zlib.compress(text)[2:-4]),
        ("identity", bytes),
        ("", bytes),
    ],
)
def test_compressed_pages_are_read(fetch, encoding, pack):
    page = fetch(lambda e: e.send(pack(b"<p>Packed"), Content_Encoding=encoding))
    assert page.paragraphs == ("Packed",)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "nonsense"])
def test_an_encoding_that_was_not_asked_for_is_named(fetch, encoding):
    assert fetch(lambda e: e.send(b"\x8b\x00\x80x\x03", Content_Encoding=encoding)) == "not_text"


def test_broken_compression_is_named(fetch):
    whole = gzip.compress(b"<p>Packed" * 99)
    assert fetch(lambda e: e.send(whole[:-20], Content_Encoding="gzip")) == "broken"
    assert fetch(lambda e: e.send(b"no gzip", Content_Encoding="gzip")) == "broken"


def test_bodies_of_50_megabytes_are_refused_before_they_come(fetch):
    sent = []

    def huge(exchange):
        exchange.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 50000000\r\n\r\n"
        )
        for _ in range(50):
            if not exchange.write(b"x" * MEGABYTE):
                break
            sent.append(MEGABYTE)

    assert fetch(huge) == "too_large"
    assert sum(sent) < 10 * MEGABYTE


CHARSETS = [
    ("header", "text/html; charset=iso-8859-1", "<p>Zürich".encode("latin-1"), "Zürich"),
    ("quoted", 'text/html; charset="ISO-8859-15"', "<p>10 €".encode("iso-8859-15"), "10 €"),
    ("meta", "text/html", b"<meta charset=windows-1251><p>" + "Москва".encode("cp1251"), "Москва"),
    (
        "old meta",
        "text/html",
        b"<meta http-equiv=Content-Type content='text/html; charset=euc-jp'><p>"
        + "東京".encode("euc-jp"),
        "東京",
    ),
    ("utf-8 mark", "text/html; charset=cp1251", "\ufeff<p>Zürich".encode(), "Zürich"),
    ("utf-16 mark", "text/html", "\ufeff<p>Zürich".encode("utf-16-le"), "Zürich"),
    ("utf-16 be", "text/html", "\ufeff<p>Zürich".encode("utf-16-be"), "Zürich"),
    ("utf-16 header", "text/html; charset=utf-16", "<p>Zürich".encode("utf-16-le"), "Zürich"),
    ("gb2312", "text/html; charset=gb2312", "<p>北京".encode("gb18030"), "北京"),
    ("shift_jis", "text/html; charset=Shift_JIS", "<p>東京".encode("cp932"), "東京"),
    ("iso-2022-jp", "text/html; charset=iso-2022-jp", "<p>東京".encode("iso-2022-jp"), "東京"),
    ("none, utf-8", "text/html", "<p>Zürich".encode(), "Zürich"),
    ("none, cp1252", "text/html", "<p>“Zürich”".encode("cp1252"), "“Zürich”"),
    ("wrong: is utf-8", "text/html; charset=iso-8859-1", "<p>Zürich".encode(), "Zürich"),
    ("wrong: says utf-8", "text/html; charset=utf-8", b"<p>Z\xfcrich", "Z\ufffdrich"),
    ("unknown", "text/html; charset=klingon", "<p>Zürich".encode(), "Zürich"),
    ("no text codec", "text/html; charset=rot13", b"<p>Zug", "Zug"),
    ("escapes", "text/html; charset=unicode_escape", b"<p>\\u0041", "\\u0041"),
    ("utf-7", "text/html; charset=utf-7", b"<p>+ADw-script+AD4-", "+ADw-script+AD4-"),
    ("cut off", "text/html; charset=utf-8", "<p>Zü".encode()[:-1], "Z\ufffd"),
    ("no type", None, "<p>Zürich".encode(), "Zürich"),
    ("empty type", "", "<p>Zürich".encode(), "Zürich"),
]


@pytest.mark.parametrize(("name", "kind", "body", "text"), CHARSETS, ids=[c[0] for c in CHARSETS])
def test_charsets(fetch, name, kind, body, text):
    assert fetch(lambda e: e.send(body, content_type=kind)).paragraphs == (text,)


@pytest.mark.parametrize(
    "kind", ["application/pdf", "image/png", "application/zip", "video/mp4", "font/woff2"]
)
def test_what_is_not_text_is_named_and_not_read(fetch, kind):
    assert fetch(lambda e: e.send(b"x" * 100, content_type=kind)) == "not_text"


@pytest.mark.parametrize(
    "body", [b"%PDF-1.7 x", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"PK\x03\x04", b"a\0\x01b"]
)
@pytest.mark.parametrize("kind", ["text/html", None])
def test_what_is_not_text_whatever_it_says_is_named(fetch, kind, body):
    assert fetch(lambda e: e.send(body, content_type=kind)) == "not_text"


@pytest.mark.parametrize(
    ("kind", "body"),
    [("text/plain", b"One\nline.\n\nTwo."), ("text/markdown", b"One line.\r\n\r\nTwo.")],
)
def test_plain_text_is_shown_in_paragraphs(fetch, kind, body):
    assert fetch(lambda e: e.send(body, content_type=kind)).paragraphs == ("One line.", "Two.")


def test_json_is_text(fetch):
    page = fetch(lambda e: e.send(b'{"a": "<b>"}', content_type="application/json"))
    assert page.paragraphs == ('{"a": "<b>"}',)


@pytest.mark.parametrize("body", [b"", b" ", b"<html>", b"\xff\xfe", b"\x00"[:0]])
def test_an_empty_page_is_a_page(fetch, body):
    assert fetch(lambda e: e.send(body)).paragraphs == ()


def test_frames_are_links(fetch, web):
    page = fetch("<frameset><frame src='/left'><frame src='right'></frameset>", "/framed")
    assert {link.url for link in page.links} == {f"{web.url}/left", f"{web.url}/right"}


def test_cookies_last_for_one_fetch(fetch, web):
    web.pages["/wall"] = lambda e: (
        e.send("<p>Inside")
        if "pass=1" in e.headers.get("Cookie", "")
        else e.redirect("/wall", Set_Cookie="pass=1; Path=/")
    )
    assert fetch(lambda e: e.redirect("/wall"), "/door").paragraphs == ("Inside",)
    assert "Cookie" not in fetch_headers(fetch, web, "/after")


def fetch_headers(fetch, web, path):
    fetch("<p>x", path)
    return next(exchange.headers for exchange in web.asked if exchange.path == path)


def test_headers_say_who_asks_and_nothing_else(fetch, web):
    headers = fetch_headers(fetch, web, "/who")
    assert headers["User-Agent"] == "seekgym"
    assert headers["Host"] == f"127.0.0.1:{web.port}"
    assert set(map(str.lower, headers)) == {
        "host", "user-agent", "accept", "accept-language", "accept-encoding",
    }  # fmt: skip


def open_site(web, **limits):
    return LiveSite(SEARCH, allow=["127.0.0.1"], limits=Limits(**(LIMITS | limits)))


def test_one_host_gets_so_many_requests_at_once_and_none_is_lost():
    with web_server() as web:
        for number in range(24):
            web.pages[f"/{number}"] = lambda e: (e.wait(0.02), e.send(f"<p>Page {e.path[1:]}"))
        site = open_site(web, at_once=3)
        pages = site.open_many([f"{web.url}/{number}" for number in range(24)])
        site.close()
    assert [page.paragraphs for page in pages] == [(f"Page {n}",) for n in range(24)]
    assert web.most_at_once == 3


def test_waiting_for_a_turn_takes_nothing_from_the_time_of_a_fetch():
    with web_server() as web:
        for number in range(6):
            web.pages[f"/{number}"] = lambda e: (e.wait(0.3), e.send("<p>x"))
        site = open_site(web, at_once=1, total_s=0.8)
        pages = site.open_many([f"{web.url}/{number}" for number in range(6)])
        site.close()
    assert [getattr(page, "paragraphs", page) for page in pages] == [("x",)] * 6


def test_requests_to_one_host_begin_so_long_after_each_other():
    with web_server() as web:
        web.pages |= {f"/{number}": "<p>x" for number in range(5)}
        site = open_site(web, delay_s=0.1)
        site.open_many([f"{web.url}/{number}" for number in range(5)])
        site.close()
    gaps = [b - a for a, b in zip(web.times, web.times[1:], strict=False)]
    assert len(gaps) == 5  # robots.txt, and five pages
    assert min(gaps) > 0.08


def test_a_slow_page_does_not_hold_up_the_others():
    with web_server({"/quick": "<p>Quick"}) as web:
        web.pages["/slow"] = lambda e: e.wait(10)
        site = open_site(web)
        slow = threading.Thread(target=site.open_many, args=([f"{web.url}/slow"],))
        slow.start()
        start = time.monotonic()
        assert site.open(f"{web.url}/quick").paragraphs == ("Quick",)
        assert time.monotonic() - start < 1
        slow.join()
        site.close()


def test_many_threads_share_a_site():
    with web_server() as web:
        for number in range(40):
            web.pages[f"/{number}"] = f"<p>Page {number}"
        site = open_site(web)
        found = [None] * 40

        def open_one(number):
            found[number] = site.open(f"{web.url}/{number}").paragraphs

        threads = [threading.Thread(target=open_one, args=(n,)) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        site.close()
    assert found == [(f"Page {number}",) for number in range(40)]


def test_open_many_gives_each_its_own_answer():
    with web_server({"/a": "<p>A"}) as web:
        site = open_site(web)
        a, missing, wrong, again = site.open_many(
            [f"{web.url}/a", f"{web.url}/b", "nonsense", f"{web.url}/a#x"]
        )
        site.close()
    assert a.paragraphs == again.paragraphs == ("A",)
    assert (missing.code, wrong.code) == ("not_found", "bad_url")
    assert web.counts["/a"] == 1
