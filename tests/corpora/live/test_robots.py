"""robots.txt as RFC 9309 reads it, and as the fetcher obeys it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webserver import web_server

from seekgym.corpora.errors import PageError
from seekgym.corpora.live import Limits, LiveSite
from seekgym.corpora.live.robots import Robots

QUICK = Limits(total_s=1, first_wait_s=0.01, delay_s=0)
NAMES = "User-agent: {}\n"

CASES = [
    ("", "/x", True),
    ("User-agent: *\nDisallow: /", "/x", False),
    ("User-agent: *\nDisallow: /", "/robots.txt", True),
    ("User-agent: *\nDisallow:", "/x", True),
    ("User-agent: other\nDisallow: /", "/x", True),
    ("User-agent: *\nDisallow: /\n\nUser-agent: seekgym\nDisallow: /a", "/x", True),
    ("User-agent: *\nDisallow: /\n\nUser-agent: SeekGym/2.0\nDisallow: /a", "/a/b", False),
    ("User-agent: seekgym\nDisallow: /a\nUser-agent: seekgym\nDisallow: /b", "/b", False),
    ("User-agent: a\nUser-agent: seekgym\nDisallow: /b", "/b", False),
    ("User-agent: seekgym\nUser-agent: a\nDisallow: /b\nUser-agent: c\nDisallow: /c", "/c", True),
    ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
    ("User-agent: *\nAllow: /a/b\nDisallow: /a", "/a/c", False),
    ("User-agent: *\nAllow: /a\nDisallow: /a", "/a", True),
    ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif", False),
    ("User-agent: *\nDisallow: /*.gif$", "/x/y.gif?z", True),
    ("User-agent: *\nDisallow: /*/private", "/a/private/x", False),
    ("User-agent: *\nDisallow: /a*b*c", "/acb", True),
    ("User-agent: *\nDisallow: /a*a$", "/a", True),
    ("User-agent: *\nDisallow: /a$", "/ab", True),
    ("User-agent: *\nDisallow: /fish", "/Fish", True),
    ("User-agent: *\nDisallow: /a?q=", "/a?q=1", False),
    ("User-agent: *\nDisallow: /ü", "/%C3%BC", False),
    ("User-agent: *\nDisallow: /%7Eme", "/~me", False),
    ("User-agent: *\nDisallow: /a%2Fb", "/a/b", True),
    ("user-AGENT : * # all\r\n  DISALLOW: /a # this\r", "/a", False),
    ("\ufeffUser-agent: *\nDisallow: /a", "/a", False),
    ("Disallow: /a\nUser-agent: *\nDisallow: /b", "/a", True),
    ("User-agent: *\nCrawl-delay: 5\nDisallow: /a", "/a", False),
    ("Sitemap: x\n<html>", "/a", True),
]


@pytest.mark.parametrize(("text", "path", "is_allowed"), CASES)
def test_rules(text, path, is_allowed):
    assert Robots.of(text, "seekgym").allows(path) is is_allowed


@given(st.text(max_size=200), st.text(max_size=50))
def test_any_text_can_be_read(text, path):
    rules = Robots.of(f"User-agent: *\nDisallow: {text}", "seekgym")
    assert rules.allows("/" + path) in (True, False)
    assert rules.allows("/robots.txt")


def test_many_stars_take_no_time():
    rules = Robots.of("User-agent: *\nDisallow: /" + "*a" * 900 + "$", "seekgym")
    assert rules.allows("/" + "a" * 20_000 + "b")


@pytest.fixture
def opened():
    """Serve a robots.txt; return what opening /page gives, and the server."""
    sites = []

    def opened(robots, path="/page"):
        with web_server({"/page": "<p>Page", "/robots.txt": robots}) as web:
            site = LiveSite("searxng:http://127.0.0.1:9", allow=["127.0.0.1"], limits=QUICK)
            sites.append(site)
            try:
                return site.open(web.url + path).paragraphs, web
            except PageError as error:
                return error.code, web

    yield opened
    for site in sites:
        site.close()


def test_a_forbidden_page_is_not_asked_for(opened):
    result, web = opened(lambda e: e.send("User-agent: *\nDisallow: /p", content_type="text/plain"))
    assert result == "robots"
    assert web.counts["/page"] == 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_no_robots_txt_allows_all(opened, status):
    assert opened(lambda e: e.send("", status))[0] == ("Page",)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_robots_txt_that_fails_forbids_all(opened, status):
    result, web = opened(lambda e: e.send("", status))
    assert result == "robots"
    assert web.counts["/page"] == 0


def test_a_robots_txt_that_never_comes_ends_in_time(opened):
    assert opened(lambda e: e.wait(10))[0] == "timeout"


def test_redirects_of_robots_txt_are_followed_and_checked(opened):
    def moved(exchange):
        if "moved" in exchange.path:
            exchange.send("User-agent: *\nDisallow: /")
        else:
            exchange.redirect("/robots.txt?moved")

    assert opened(moved)[0] == "robots"
    assert opened(lambda e: e.redirect("http://169.254.169.254/"))[0] == "blocked_address"
    assert opened(lambda e: e.redirect("/robots.txt"))[0] == ("Page",)


def test_a_long_robots_txt_counts_as_far_as_it_is_read(opened):
    text = "User-agent: *\nDisallow: /page\n" + "# long\n" * 200_000
    assert opened(lambda e: e.send(text))[0] == "robots"


def test_robots_txt_is_asked_for_once(opened):
    with web_server({f"/{n}": "<p>x" for n in range(8)}) as web:
        site = LiveSite("searxng:http://127.0.0.1:9", allow=["127.0.0.1"], limits=QUICK)
        site.open_many([f"{web.url}/{n}" for n in range(8)])
        site.close()
    assert web.counts["/robots.txt"] == 1


def test_a_redirect_to_a_forbidden_page_is_refused(opened):
    with web_server({"/secret": "<p>Secret"}) as web:
        web.pages["/robots.txt"] = "User-agent: *\nDisallow: /secret"
        web.pages["/page"] = lambda e: e.redirect("/secret")
        site = LiveSite("searxng:http://127.0.0.1:9", allow=["127.0.0.1"], limits=QUICK)
        with pytest.raises(PageError) as error:
            site.open(f"{web.url}/page")
        site.close()
    assert error.value.code == "robots"
    assert web.counts["/secret"] == 0
