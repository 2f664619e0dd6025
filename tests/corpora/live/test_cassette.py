"""What was recorded is given again, byte for byte, without a network; nothing is lost."""

import json
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import open_there, write_many
from webserver import web_server

from seekgym.corpora import BackendError, ConfigurationError, CorpusError
from seekgym.corpora.errors import PageError
from seekgym.corpora.live import Cassette, Limits, LiveSite
from seekgym.corpora.live.answers import Answer
from seekgym.corpora.live.scrubbing import scrub, scrub_text

QUICK = Limits(total_s=1, first_wait_s=0.01, delay_s=0, max_bytes=200_000)
RESULTS = {"results": [{"url": "http://a.example/", "title": "A", "content": "B"}]}
QUERIES = ("tall towers", "东京", 'a "b"', "empty", "broken")


def pages():
    return {
        "/robots.txt": "User-agent: *\nDisallow: /private",
        "/latin": lambda e: e.send("<p>Zürich".encode("latin-1"), content_type="text/html"),
        "/plain": lambda e: e.send("One.\n\nTwo.", content_type="text/plain"),
        "/long": "<title>Long</title>" + "".join(f"<p>{n} <a href=/{n}>on</a>" for n in range(999)),
        "/moved": lambda e: e.redirect("/plain"),
        "/circle": lambda e: e.redirect("/circle"),
        "/huge": lambda e: e.send(b"x" * 300_000),
        "/pdf": lambda e: e.send(b"%PDF-1.7", content_type="application/pdf"),
        "/slow": lambda e: e.wait(5),
        "/reset": lambda e: e.reset(),
        "/error": lambda e: e.send("", 500),
        "/private": "<p>Private",
        "/empty": "",
        "/search": search,
    }


def search(exchange):
    if "broken" in exchange.path:
        exchange.send("", 500)
    else:
        answer = {"results": []} if "empty" in exchange.path else RESULTS
        exchange.send(json.dumps(answer), content_type="application/json")


def outcomes(site, url):
    """Return all that a site gives, as bytes."""
    found = []
    for path in [*pages(), "/missing", "/long#part", "/../latin"]:
        found.append(outcome(lambda path=path: site.open(url + path)))
    for address in ("nonsense", "http://169.254.169.254/", "file:///etc/passwd"):
        found.append(outcome(lambda address=address: site.open(address)))
    for query in QUERIES:
        for page in (1, 2):
            found.append(outcome(lambda query=query, page=page: site.search(query, page)))
    return [repr(each).encode() for each in found]


def outcome(ask):
    try:
        return ask()
    except (PageError, BackendError) as error:
        return type(error), error.args


def record(web, folder, **options):
    options = {"limits": QUICK, "allow": ["127.0.0.1"], "record": folder} | options
    return LiveSite(f"searxng:{web.url}", **options)


@pytest.fixture
def web():
    with web_server(pages()) as web:
        yield web


def test_a_recording_is_given_again_byte_for_byte(web, tmp_path):
    site = record(web, tmp_path)
    before = outcomes(site, web.url)
    site.close()
    web.stop()
    for _ in range(2):
        assert outcomes(LiveSite(replay=tmp_path), web.url) == before
    moved = tmp_path / "moved"
    shutil.copytree(tmp_path, moved)
    assert outcomes(LiveSite(replay=moved), web.url) == before


def test_replay_needs_no_network(web, tmp_path):
    site = record(web, tmp_path)
    site.open(f"{web.url}/plain")
    site.close()
    code = (
        "import socket, sys\n"
        "def refuse(*args, **options): raise AssertionError('the network was asked for')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from seekgym.corpora.live import LiveSite\n"
        "print(LiveSite(replay=sys.argv[1]).open(sys.argv[2]).paragraphs)"
    )
    asked = [sys.executable, "-P", "-c", code, str(tmp_path), f"{web.url}/plain"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "('One.', 'Two.')"


def test_what_was_not_recorded_is_a_plain_error(web, tmp_path):
    site = record(web, tmp_path)
    site.open(f"{web.url}/plain")
    site.close()
    replayed = LiveSite(replay=tmp_path)
    for ask in (
        lambda: replayed.open(f"{web.url}/other"),
        lambda: replayed.search("other", 1),
        lambda: replayed.open("http://169.254.169.254/"),
    ):
        with pytest.raises(PageError) as error:
            ask()
        assert error.value.code == "not_recorded"
        assert "recorded" in str(error.value)


def test_an_answer_that_was_recorded_is_not_asked_for_again(web, tmp_path):
    for _ in range(2):
        site = record(web, tmp_path)
        site.open(f"{web.url}/plain")
        site.open(f"{web.url}/plain#end")
        site.search("tall towers", 1)
        site.close()
    assert web.counts["/plain"] == 1
    assert sum("/search" in path for path in web.counts) == 1


def test_faults_stand_for_one_recording_and_are_asked_for_again_in_the_next(web, tmp_path):
    web.pages["/wakes"] = lambda e: e.send("<p>Awake") if e.attempt >= 3 else e.send("", 500)
    site = record(web, tmp_path)
    for _ in range(2):
        with pytest.raises(PageError):
            site.open(f"{web.url}/wakes")
    site.close()
    assert web.counts["/wakes"] == 3
    with pytest.raises(PageError):
        LiveSite(replay=tmp_path).open(f"{web.url}/wakes")
    site = record(web, tmp_path)
    assert site.open(f"{web.url}/wakes").paragraphs == ("Awake",)
    site.close()
    assert LiveSite(replay=tmp_path).open(f"{web.url}/wakes").paragraphs == ("Awake",)


def test_a_failing_engine_is_asked_again_in_the_same_recording(web, tmp_path):
    web.pages["/search"] = lambda e: e.send(
        json.dumps(RESULTS), 200 if e.attempt >= 3 else 500, content_type="application/json"
    )
    site = record(web, tmp_path)
    with pytest.raises(BackendError):
        site.search("x", 1)
    assert len(site.search("x", 1)) == 1
    site.close()
    assert len(LiveSite(replay=tmp_path).search("x", 1)) == 1


KEY = "s3cr3t+key/42=="


def test_no_secret_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("SERPER_API_KEY", KEY)

    def search(exchange):
        key = exchange.headers["X-API-KEY"]
        assert key == KEY
        row = {"link": f"http://a.example/?key={key}", "title": key, "snippet": json.dumps(key)}
        echo = {"organic": [row], "key": key}
        status = 403 if b"refused" in exchange.body else 200
        exchange.send(json.dumps(echo), status, content_type="application/json", X_Key=key)

    with web_server({"/search": search}) as web:
        site = LiveSite(f"serper:{web.url}", record=tmp_path, limits=QUICK)
        before = [outcome(lambda: site.search("x", 1)), outcome(lambda: site.search("refused", 1))]
        site.close()
    monkeypatch.delenv("SERPER_API_KEY")
    replayed = LiveSite(replay=tmp_path)
    after = [
        outcome(lambda: replayed.search("x", 1)),
        outcome(lambda: replayed.search("refused", 1)),
    ]
    assert before == after
    assert before[0][0].url == "http://a.example/?key=[secret]"
    written = b"".join(p.read_bytes() for p in sorted(tmp_path.rglob("*")) if p.is_file())
    for form in (KEY, "s3cr3t%2Bkey%2F42%3D%3D", "czNjcjN0K2tleS80Mj09"):
        assert form.encode() not in written
    assert KEY not in repr(before)


@given(st.text(min_size=4, max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_secrets_are_replaced_wherever_they_stand(secret, before, after):
    secret = "".join(c for c in secret if not 0xD800 <= ord(c) < 0xE000).ljust(4, "k")
    before, after = (t.encode("utf-8", "replace").decode() for t in (before, after))
    if secret in "[secret]":
        return
    text = scrub_text(before + secret + after, [secret])
    assert secret not in text.replace("[secret]", "\0")
    assert scrub(f"{before}{secret}{after}".encode(), [secret]).decode() == text


ANSWER = Answer("http://a.example/", "text/plain", b"x")


def test_two_processes_that_write_one_cassette_lose_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    names = ("a", "b")
    writers = [context.Process(target=write_many, args=(tmp_path, n, 150)) for n in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    cassette = Cassette.existing(tmp_path)
    assert len(cassette) == 301
    for name in names:
        for number in range(150):
            answer = cassette.read({"fetch": f"http://{name}.example/{number}"})
            assert answer.body == f"{name} {number} ".encode() * 99


def test_threads_that_write_one_cassette_lose_nothing(tmp_path):
    threads = [threading.Thread(target=write_many, args=(tmp_path, f"t{n}", 40)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Cassette.existing(tmp_path)) == 8 * 40 + 1


def test_a_process_that_is_killed_loses_no_answer_that_it_gave(tmp_path):
    code = (
        "import sys; from seekgym.corpora.live import Cassette\n"
        "from seekgym.corpora.live.answers import Answer\n"
        "cassette = Cassette(sys.argv[1]); number = 0\n"
        "while True:\n"
        "    cassette.write({'fetch': str(number)}, Answer('u', '', b'%d' % number))\n"
        "    print(number, flush=True); number += 1\n"
    )
    asked = [sys.executable, "-P", "-c", code, str(tmp_path)]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as writer:
        written = [int(writer.stdout.readline()) for _ in range(50)]
        os.kill(writer.pid, signal.SIGKILL)
        written += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    cassette = Cassette.existing(tmp_path)
    for number in written:
        assert cassette.read({"fetch": str(number)}).body == b"%d" % number


@pytest.mark.parametrize("torn", [b'{"request": {"fet', b"\xff\xfe", b"x" * 5_000])
def test_a_last_line_that_broke_off_is_passed_over_and_cut_off(tmp_path, torn):
    cassette = Cassette(tmp_path)
    cassette.write({"fetch": "a"}, ANSWER)
    with open(tmp_path / "index.jsonl", "ab") as file:
        file.write(torn)
    assert len(Cassette.existing(tmp_path)) == 1
    cassette.write({"fetch": "b"}, ANSWER)
    assert len(Cassette.existing(tmp_path)) == 2
    lines = (tmp_path / "index.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line)["request"]["fetch"] for line in lines[:-1]] == ["a", "b"]


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", "{}", '{"request": {}}', '{"request": {}, "url": 5}', "\u00ff"]
)
def test_a_broken_line_in_the_middle_is_named(tmp_path, line):
    Cassette(tmp_path).write({"fetch": "a"}, ANSWER)
    with open(tmp_path / "index.jsonl", "a", encoding="latin-1") as file:
        file.write(line + "\n")
    with pytest.raises(CorpusError, match="line 2"):
        Cassette(tmp_path)


def test_a_body_that_was_changed_or_is_gone_is_a_failure(tmp_path):
    cassette = Cassette(tmp_path)
    cassette.write({"fetch": "a"}, ANSWER)
    (body,) = (path for path in (tmp_path / "objects").rglob("*") if path.is_file())
    body.write_bytes(b"other")
    with pytest.raises(BackendError, match="changed"):
        cassette.read({"fetch": "a"})
    body.unlink()
    with pytest.raises(BackendError, match="lacks"):
        cassette.read({"fetch": "a"})


def test_an_answer_that_shows_something_counts_more_than_a_fault(tmp_path):
    fault = Answer("u", fault="timeout", reason="Late.")
    first, second = Cassette(tmp_path), Cassette(tmp_path)
    first.write({"fetch": "a"}, ANSWER)
    second.write({"fetch": "a"}, fault)
    assert Cassette.existing(tmp_path).read({"fetch": "a"}) == ANSWER


def test_the_fingerprint_tells_contents_apart_and_not_their_order(tmp_path):
    prints = []
    for name, order in (("1", "ab"), ("2", "ba"), ("3", "abc")):
        cassette = Cassette(tmp_path / name)
        for request in order:
            cassette.write({"fetch": request}, ANSWER)
        prints.append(Cassette.existing(tmp_path / name).fingerprint)
    assert prints[0] == prints[1] != prints[2]
    assert LiveSite(replay=tmp_path / "1").name != LiveSite(replay=tmp_path / "3").name


def test_a_disk_that_takes_nothing_is_a_failure(tmp_path):
    (tmp_path / "objects").write_text("in the way")
    with pytest.raises(BackendError, match="record"):
        Cassette(tmp_path).write({"fetch": "a"}, ANSWER)


def test_there_is_nothing_to_replay(tmp_path):
    with pytest.raises(ConfigurationError, match="no cassette"):
        LiveSite(replay=tmp_path)
    with pytest.raises(ConfigurationError, match="exclude"):
        LiveSite("serper", record=tmp_path, replay=tmp_path)


def test_a_cassette_of_two_engines_asks_which(tmp_path):
    cassette = Cassette(tmp_path)
    for engine, field in (("searxng", "results"), ("serper", "organic")):
        body = json.dumps({field: []}).encode()
        request = {"search": "x", "engine": engine, "page": 1, "count": 10}
        cassette.write(request, Answer(engine, "application/json", body))
    with pytest.raises(ConfigurationError, match="searxng, serper"):
        LiveSite(replay=tmp_path)
    assert LiveSite("serper", replay=tmp_path).search("x", 1) == ()


def test_a_recorded_site_travels_to_other_processes(web, tmp_path):
    site = record(web, tmp_path)
    page = site.open(f"{web.url}/long")
    copy = pickle.loads(pickle.dumps(site))
    assert copy.open(f"{web.url}/long") == page
    assert web.counts["/long"] == 1
    copy.close()
    site.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_live_site_works_in_a_child(web, tmp_path, method):
    site = record(web, tmp_path)
    site.open(f"{web.url}/plain")  # its loop runs already
    context = multiprocessing.get_context(method)
    found = context.Queue()
    child = context.Process(target=open_there, args=(site, f"{web.url}/latin", found))
    start = time.monotonic()
    child.start()
    assert found.get(timeout=30) == ("Zürich",)
    child.join(30)
    assert child.exitcode == 0
    assert time.monotonic() - start < 9  # the loop of the parent is not waited for
    site.close()


def test_a_site_that_is_forgotten_stops_its_thread(web):
    def alive():
        return [t for t in threading.enumerate() if t.name == "seekgym-live-web"]

    before = len(alive())
    site = LiveSite(f"searxng:{web.url}", allow=["127.0.0.1"], limits=QUICK)
    site.open(f"{web.url}/plain")
    assert len(alive()) == before + 1
    del site
    deadline = time.monotonic() + 5
    while len(alive()) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(alive()) == before
