"""Each search engine against a server that speaks its format, and breaks it."""

import json
import pickle
import traceback
from urllib.parse import parse_qs, urlsplit

import pytest
from webserver import web_server

from seekgym.corpora import BackendError, ConfigurationError
from seekgym.corpora.live import Limits, LiveSite
from seekgym.corpora.live.engines import ENGINES, make_engine
from seekgym.corpora.site import Result

KEY = "s3cr3t+key/42=="
KEYS = {name: engine.key_variable for name, engine in ENGINES.items()}
QUICK = Limits(total_s=1, first_wait_s=0.01, delay_s=0)
EXPECTED = (
    Result("https://a.example/1", "The first & best", "A snippet with words."),
    Result("https://a.example/2", "Second", ""),
)

# What each engine answers to a search, with the fields that nobody here reads.
ANSWERS = {
    "searxng": {
        "query": "tall towers",
        "number_of_results": 0,
        "results": [
            {
                "url": "https://a.example/1",
                "title": "The first & best",
                "content": "A snippet with words.",
                "engine": "duckduckgo",
                "parsed_url": ["https", "a.example", "/1", "", "", ""],
                "template": "default.html",
                "engines": ["duckduckgo", "bing"],
                "positions": [1, 3],
                "score": 2.6,
                "category": "general",
                "publishedDate": None,
            },
            {"url": "https://a.example/2", "title": "Second", "content": "", "engine": "bing"},
        ],
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": ["towers"],
        "unresponsive_engines": [["google", "Suspended: CAPTCHA"]],
    },
    "serper": {
        "searchParameters": {"q": "tall towers", "type": "search", "num": 10, "engine": "google"},
        "knowledgeGraph": {"title": "Tower", "type": "Structure"},
        "organic": [
            {
                "title": "The first & best",
                "link": "https://a.example/1",
                "snippet": "A snippet with words.",
                "sitelinks": [{"title": "x", "link": "https://a.example/x"}],
                "position": 1,
            },
            {"title": "Second", "link": "https://a.example/2", "position": 2},
        ],
        "peopleAlsoAsk": [],
        "relatedSearches": [{"query": "towers"}],
        "credits": 1,
    },
    "brave": {
        "type": "search",
        "query": {"original": "tall towers", "more_results_available": True},
        "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": False}]},
        "web": {
            "type": "search",
            "results": [
                {
                    "title": "The first &amp; best",
                    "url": "https://a.example/1",
                    "is_source_local": False,
                    "description": "A snippet with <strong>words</strong>.",
                    "profile": {"name": "A", "url": "https://a.example/1"},
                    "language": "en",
                    "family_friendly": True,
                    "meta_url": {"scheme": "https", "netloc": "a.example"},
                },
                {"title": "Second", "url": "https://a.example/2", "description": ""},
            ],
            "family_friendly": True,
        },
    },
    "tavily": {
        "query": "tall towers",
        "follow_up_questions": None,
        "answer": None,
        "images": [],
        "results": [
            {
                "url": "https://a.example/1",
                "title": "The first & best",
                "content": "A snippet\nwith words.",
                "score": 0.98,
                "raw_content": None,
            },
            {"url": "https://a.example/2", "title": "Second", "content": "", "score": 0.5},
        ],
        "response_time": 0.61,
        "request_id": "c0ffee",
    },
    "bing": {
        "_type": "SearchResponse",
        "queryContext": {"originalQuery": "tall towers"},
        "webPages": {
            "webSearchUrl": "https://bing.example/search?q=tall+towers",
            "totalEstimatedMatches": 2,
            "value": [
                {
                    "id": "https://api.example/#WebPages.0",
                    "name": "The first & best",
                    "url": "https://a.example/1",
                    "isFamilyFriendly": True,
                    "displayUrl": "https://a.example/1",
                    "snippet": "A snippet with words.",
                    "language": "en",
                },
                {"name": "Second", "url": "https://a.example/2", "snippet": ""},
            ],
        },
        "rankingResponse": {"mainline": {"items": []}},
    },
}
EMPTY = {
    "searxng": {"query": "x", "results": [], "unresponsive_engines": []},
    "serper": {"searchParameters": {"q": "x"}, "organic": []},
    "brave": {"type": "search", "query": {"original": "x"}},
    "tavily": {"query": "x", "results": [], "response_time": 0.1},
    "bing": {"_type": "SearchResponse", "queryContext": {"originalQuery": "x"}},
}
PATHS = {
    "searxng": "/search",
    "serper": "/search",
    "brave": "/res/v1/web/search",
    "tavily": "/search",
    "bing": "/v7.0/search",
}
names = pytest.mark.parametrize("name", ENGINES)
keyed = pytest.mark.parametrize("name", [name for name in ENGINES if KEYS[name]])


@pytest.fixture
def engine(monkeypatch):
    """Serve an engine; return a site that searches with it, and the server."""
    for variable in filter(None, KEYS.values()):
        monkeypatch.setenv(variable, KEY)
    closing = []

    def engine(name, answer, **options):
        serving = web_server()
        web = serving.__enter__()
        closing.append(lambda: serving.__exit__(None, None, None))
        send = answer if callable(answer) else lambda e: e.send(json.dumps(answer), **AS_JSON)
        web.pages[PATHS[name]] = send
        base = web.url + "/res/v1" * (name == "brave")
        site = LiveSite(f"{name}:{base}", limits=QUICK, **options)
        closing.append(site.close)
        return site, web

    yield engine
    for close in reversed(closing):
        close()


AS_JSON = {"content_type": "application/json"}


@names
def test_results_are_read(engine, name):
    site, _ = engine(name, ANSWERS[name])
    assert site.search("tall towers", 1) == EXPECTED


@names
def test_no_results_are_no_failure(engine, name):
    site, _ = engine(name, EMPTY[name])
    assert site.search("x", 1) == ()


@names
def test_a_query_without_words_asks_nobody(engine, name):
    site, web = engine(name, ANSWERS[name])
    assert site.search(" \n ", 1) == site.search("x", 0) == ()
    assert not web.asked


def asked(web):
    """Return what the last request said: fields of the address or of the body, and headers."""
    exchange = web.asked[-1]
    fields = {k: v[0] for k, v in parse_qs(urlsplit(exchange.path).query).items()}
    return fields or json.loads(exchange.body), exchange


def test_each_engine_is_asked_as_it_wants_to_be(engine):
    query = 'a "b" AND c:d ~* ü \u6771 \\ {"x"}'
    for name in ENGINES:
        site, web = engine(name, EMPTY[name])
        site.search(query, 2)
        fields, exchange = asked(web)
        headers = exchange.headers
        match name:
            case "searxng":
                assert fields == {"q": query, "format": "json", "pageno": "2"}
            case "serper":
                assert fields == {"q": query, "num": 10, "page": 2}
                assert headers["X-API-KEY"] == KEY
            case "brave":
                assert fields == {"q": query, "count": "10", "offset": "1"}
                assert headers["X-Subscription-Token"] == KEY
            case "tavily":
                assert fields == {"query": query, "max_results": 20}
                assert headers["Authorization"] == f"Bearer {KEY}"
            case "bing":
                assert fields == {"q": query, "count": "10", "offset": "10"}
                assert headers["Ocp-Apim-Subscription-Key"] == KEY


def test_tavily_has_pages_of_its_one_list(engine):
    rows = [{"url": f"https://a.example/{n}", "title": "T", "content": ""} for n in range(15)]
    site, _ = engine("tavily", {"results": rows})
    assert [len(site.search("x", page)) for page in (1, 2, 3)] == [10, 5, 0]


def test_brave_has_ten_pages(engine):
    site, web = engine("brave", ANSWERS["brave"])
    assert site.search("x", 11) == ()
    assert not web.asked


def test_the_same_result_comes_once(engine):
    answer = {"results": ANSWERS["searxng"]["results"] * 2}
    assert engine("searxng", answer)[0].search("x", 1) == EXPECTED


def failure(site):
    with pytest.raises(BackendError) as error:
        site.search("tall towers", 1)
    message = str(error.value)
    everything = message + "".join(traceback.format_exception(error.value))
    assert KEY not in everything
    assert len(message) < 500
    return message


@names
@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_engine_that_recovers_is_asked_again(engine, name, status):
    answer = json.dumps(ANSWERS[name])
    site, _ = engine(
        name, lambda e: e.send("", status) if e.attempt == 0 else e.send(answer, **AS_JSON)
    )
    assert site.search("tall towers", 1) == EXPECTED


@names
def test_failures_are_the_engines_and_say_what_to_do(engine, name):
    for status, said in ((500, "500"), (429, "quota"), (400, "400"), (204, "204")):
        site, _ = engine(name, lambda e, status=status: e.send("{}", status, **AS_JSON))
        assert said in failure(site)


@keyed
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_named_and_not_shown(engine, name, status):
    body = json.dumps({"message": f"bad key {KEY} ({KEY.replace('+', '%2B')})"})
    site, _ = engine(name, lambda e: e.send(body, status, **AS_JSON))
    message = failure(site)
    assert f"the key in {KEYS[name]} is not accepted" in message
    assert "bad key [secret]" in message


def test_searxng_without_json_is_told_apart(engine):
    site, _ = engine("searxng", lambda e: e.send("Forbidden", 403))
    assert "json among the formats" in failure(site)


def test_engines_behind_searxng_that_are_all_silent_are_a_failure(engine):
    silent = {"results": [], "unresponsive_engines": [["google", "timeout"]]}
    site, _ = engine("searxng", silent)
    assert "no engine answered" in failure(site)


@names
@pytest.mark.parametrize(
    "body",
    ["", "<html>Log in</html>", "[]", "null", "{}", '{"results": 3, "organic": 3, "type": 1}',
     '{"results": [3], "organic": [3], "type": "search", "web": {"results": [3]}, '
     '"_type": "SearchResponse", "webPages": {"value": [3]}}',
     '{"results": [{"url": 5, "title": "x"}], "organic": [{"link": null, "title": "x"}], '
     '"type": "search", "web": {"results": [{"title": "x"}]}, '
     '"_type": "SearchResponse", "webPages": {"value": [{"url": "x"}]}}',
     "[" * 100_000],
    ids=["empty", "html", "list", "null", "object", "no list", "no rows", "no fields", "deep"],
)  # fmt: skip
def test_a_format_that_has_changed_is_a_failure(engine, name, body):
    site, _ = engine(name, lambda e: e.send(body, **AS_JSON))
    assert "format" in failure(site)


@names
def test_redirects_are_not_followed_with_a_key(engine, name):
    site, web = engine(name, lambda e: e.redirect("/elsewhere"))
    assert "redirect" in failure(site)
    assert web.counts["/elsewhere"] == 0


@names
def test_silence_resets_and_nobody_end_in_time(engine, name):
    site, _ = engine(name, lambda e: e.wait(10))
    assert "1 seconds" in failure(site)
    site, _ = engine(name, lambda e: e.reset())
    assert "no whole answer" in failure(site)
    site, web = engine(name, EMPTY[name])
    web.stop()
    assert "no whole answer" in failure(site)


@keyed
def test_a_missing_key_is_found_at_once(monkeypatch, name):
    for value in ("", "  "):
        monkeypatch.setenv(KEYS[name], value)
        with pytest.raises(ConfigurationError, match=KEYS[name]):
            LiveSite(name)
    monkeypatch.delenv(KEYS[name])
    with pytest.raises(ConfigurationError, match=KEYS[name]):
        LiveSite(name)


@keyed
def test_keys_are_in_no_representation_and_no_pickle(engine, name, monkeypatch):
    site, _ = engine(name, ANSWERS[name])
    assert KEY.encode() not in pickle.dumps(site)
    held = make_engine(name)
    assert KEY not in repr(vars(held)) + repr(held) + repr(vars(site)) + site.name
    monkeypatch.setenv(KEYS[name], "other-key")
    site.search("x", 1)  # the key is read when it is used


def test_an_engine_that_repeats_the_key_shows_it_to_nobody(engine):
    row = {"link": f"https://a.example/?key={KEY}", "title": KEY, "snippet": KEY}
    site, _ = engine("serper", {"organic": [row]})
    assert site.search("x", 1) == (
        Result("https://a.example/?key=[secret]", "[secret]", "[secret]"),
    )


@keyed
def test_a_key_does_not_travel_in_the_clear(monkeypatch, name):
    monkeypatch.setenv(KEYS[name], KEY)
    with pytest.raises(ConfigurationError, match="clear"):
        LiveSite(f"{name}:http://search.example")
    LiveSite(f"{name}:https://search.example")


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ("serpre", "did you mean 'serper'"),
        ("searxng", "address"),
        ("searxng:", "address"),
        ("searxng:8888", "http://"),
        ("searxng:ftp://x", "http://"),
        ("searxng:http://user:word@x", "password"),
        ("", "known"),
    ],
)
def test_a_wrong_search_is_explained(search, said):
    with pytest.raises(ConfigurationError, match=said) as error:
        LiveSite(search)
    assert "word@" not in str(error.value)


@pytest.mark.parametrize("value", ["k\u00e9y-of-nobody", "key\nwith: header"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(monkeypatch, value):
    monkeypatch.setenv("SERPER_API_KEY", value)
    with pytest.raises(ConfigurationError) as error:
        LiveSite("serper")
    assert value not in str(error.value)
