"""The main text of a page, and pages whose tree would grow out of proportion."""

import time

import pytest
from webserver import web_server

from seekgym.corpora import ConfigurationError
from seekgym.corpora.live import Limits, LiveSite
from seekgym.corpora.live.main_text import is_tame

PARAGRAPH = (
    "The tower was built in the year 1543 by people of the town, who wanted to see far. " * 3
)
HTML = f"""<html><head><title>Towers</title><base href="/deep/"></head><body>
<nav><ul><li><a href="/">Home</a><li><a href="/about">About</a></ul></nav>
<main><h1>The tower</h1><p>{PARAGRAPH} See <a href="other#part">another</a>.</p>
<p>{PARAGRAPH}</p></main><footer>All rights reserved by nobody</footer></body></html>"""


@pytest.fixture
def opened():
    def opened(html, **options):
        limits = Limits(total_s=5, delay_s=0)
        with web_server({"/page": html}) as web:
            options |= {"allow": ["127.0.0.1"], "limits": limits}
            site = LiveSite("searxng:http://127.0.0.1:9", **options)
            page = site.open(f"{web.url}/page")
            site.close()
            return page, web.url

    return opened


@pytest.mark.parametrize("main_text", ["resiliparse", "trafilatura"])
def test_menus_are_left_out_and_their_links_come_last(opened, main_text):
    if main_text == "trafilatura":
        pytest.importorskip("trafilatura", reason="an option that is not part of the extra")
    page, url = opened(HTML, main_text=main_text)
    text = "\n".join(page.paragraphs)
    assert page.title == "Towers"
    assert PARAGRAPH.strip()[:60] in text
    assert "rights reserved" not in text
    assert {link.url for link in page.links} == {f"{url}/deep/other", f"{url}/", f"{url}/about"}
    if main_text == "resiliparse":
        assert page.links[0].url == f"{url}/deep/other"


def test_the_whole_text_is_there_if_it_is_asked_for(opened):
    page, _ = opened(HTML, main_text="whole")
    assert "All rights reserved by nobody" in page.paragraphs


def test_a_page_without_a_main_text_is_shown_whole(opened):
    page, _ = opened("<nav><a href=x>One</a> <a href=y>Two</a></nav>")
    assert page.paragraphs
    assert len(page.links) == 2


def test_an_unknown_way_is_named():
    with pytest.raises(ConfigurationError, match="resiliparse"):
        LiveSite("searxng:http://127.0.0.1:9", main_text="resiliparce")


WILD = {
    "deep": "<div>" * 100_000 + "x",
    "fonts": "<p>" + "".join(f"<font size={n}>" for n in range(3_000)) + "<p>x" * 30_000,
    "few fonts": "<p>" + "".join(f"<font size={n}>" for n in range(200)) + "<p>x" * 100_000,
    "links": "<a href=x><p>" * 50_000,
    "tables": "<table><tr><td>" * 30_000,
}


@pytest.mark.parametrize("name", WILD)
def test_wild_pages_are_opened_in_time(opened, name):
    assert not is_tame(WILD[name])
    start = time.monotonic()
    opened(WILD[name])
    assert time.monotonic() - start < 10


def test_plain_pages_are_tame():
    assert is_tame(HTML)
    assert is_tame("<ul>" + "<li><p>One <b>two</b> <a href=x>three</a>" * 20_000)
    assert is_tame("<p>unclosed " * 50_000)
