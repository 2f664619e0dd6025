"""A person's browser sees what the environment sees: a headless Chromium over a served site."""

import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from html import unescape
from urllib.parse import quote

import pytest

from seekgym.corpora.sites import load_site
from seekgym.corpora.sites.serve import make_server
from seekgym.envs import WebEnv

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SITE = "knowledge:entities=300,seed=1"


@pytest.fixture
def served():
    site = load_site(SITE)
    server = make_server(site, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield site, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def browse(url, profile):
    """Return the document that Chromium has built of a page."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        f"--user-data-dir={profile}",
        "--dump-dom",
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; install Debian's chromium")
def test_chromium_opens_follows_three_links_searches_and_finds_what_the_environment_finds(
    served, tmp_path
):
    site, root = served
    env = WebEnv(site=SITE, questions=20)
    env.reset(seed=0)
    page, url = browse(f"{root}/", tmp_path), site.home
    for _ in range(3):
        assert f"<title>{site.open(url).title}</title>" in page
        found = [link for link in site.open(url).links if site.address(link.url)]
        link = next(x for x in found if x.url not in (url, site.home))
        href = re.search(rf'<a href="([^"]+)">{re.escape(link.text)}</a>', page)[1]
        assert href == link.url.removeprefix("https://encyclopedia-train-0.example").replace(
            "https://encyclopedia-train-1.example", ""
        )
        observation = env.step({"name": "open", "arguments": {"url": link.url}})[0]
        page, url = browse(root + href, tmp_path), link.url
        body = unescape(re.sub(r"<[^>]+>", " ", page.partition("<main>")[2]))
        for text in site.open(url).paragraphs:
            assert text.lstrip("#- ").split(" | ")[0].split()[0] in body
        assert site.open(url).title in observation
    query = site.open(url).title
    results = browse(f"{root}/search?q={quote(query)}", tmp_path)
    titles = [unescape(t) for t in re.findall(r'class="result"[^>]*>([^<]+)</a>', results)]
    observation = env.step({"name": "search", "arguments": {"query": query}})[0]
    assert titles == re.findall(r"^\d+\. (.+)$", observation, re.MULTILINE)
    assert len(titles) == 5


def fetch(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def test_the_server_answers_what_it_should(served):
    site, root = served
    status, headers, html = fetch(f"{root}/")
    assert (status, headers["X-Content-Type-Options"]) == (200, "nosniff")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert '<form action="/search"' in html
    dead = site.open(site.corpus.ids[0]).links[-1].url
    status, _, html = fetch(root + "/" + dead.split("/", 3)[3])
    assert (status, "the link is dead" in html) == (404, True)
    assert fetch(f"{root}/", Host="evil.example")[0] == 403
    status, _, html = fetch(f"{root}/search?q=%3Cscript%3Ealert(1)&page=x")
    assert status == 200
    assert "<script>" not in html
    assert fetch(f"{root}/../../etc/passwd")[0] == 404


def test_the_command_serves_until_it_is_stopped():
    command = [sys.executable, "-m", "seekgym", "serve-site", "phantom:people=50", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        root = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
        assert fetch(root)[0] == 200
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()


def test_a_folder_is_served_with_its_own_html(tmp_path):
    (tmp_path / "a.html").write_text(
        "<title>A</title><body><h1 class=x>Alpha</h1><a href=b.html>b</a>"
    )
    (tmp_path / "b.html").write_text("<title>B</title><p>beta")
    site = load_site(str(tmp_path))
    assert "<h1 class=x>" in site.html(site.home)
    with pytest.raises(KeyError):
        site.html("https://elsewhere.example/")
