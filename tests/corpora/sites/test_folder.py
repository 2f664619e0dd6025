import gzip
import subprocess
from pathlib import Path

import pytest

from seekgym.agents import OracleAgent
from seekgym.agents.rollouts import play
from seekgym.corpora import ConfigurationError, CorpusError
from seekgym.corpora.sites import open_site
from seekgym.corpora.sites.folder import folder_site
from seekgym.corpora.sites.stdlib import load_library
from seekgym.envs import WebEnv

PACKAGES = {"python3.11-doc": 500, "sqlite3-doc": 700}  # and how many pages at least


@pytest.fixture
def folder(tmp_path):
    """Sixty real pages, under folders of their own, that link to each other by relative paths."""
    library = load_library()
    pages = [p for p in library.pages if "/json." in p.url or "/email." in p.url][-60:]
    for page in pages:
        name = page.url.rpartition("/")[2]
        target = tmp_path / "docs" / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(library.html[page.url], encoding="utf-8")
    return tmp_path / "docs"


def test_a_folder_is_a_site_in_one_line(folder):
    env = WebEnv(site=folder, questions=40)
    assert len(env.site.corpus) == 60
    agent = OracleAgent(env)
    played = [play(env, agent, seed=0, options={"task": task.id}) for task in env.all_tasks]
    assert all(trajectory.total_reward == 1 for trajectory in played)
    assert {task.hops for task in env.all_tasks} >= {1, 2}


def test_tasks_of_ones_own_name_pages_by_address(folder, write):
    url = "https://docs.example/json.decoder.JSONDecoder.html"
    tasks = write(
        "tasks.jsonl",
        [{"id": "t", "question": "Which?", "answers": ["object"], "evidence": [url]}],
    )
    env = WebEnv(site=folder, tasks=tasks)
    assert play(env, OracleAgent(env), seed=0).outcome["exact_match"] == 1


def test_links_that_leave_the_folder_lead_nowhere(folder, tmp_path):
    (tmp_path / "secret.html").write_text("<title>secret</title>")
    (folder / "inside.html").symlink_to(tmp_path / "secret.html")
    (folder / "sub").mkdir()
    (folder / "sub" / "näme 1.html").write_text(
        "<a href='../../secret.html'>up</a><a href='..'>d</a>"
    )
    (folder / "note.txt").write_text("no page")
    (folder / "binary.html").write_bytes(b"\xff\xfe\x00" * 40)
    site = folder_site(str(folder))
    assert len(site.corpus) == 62
    assert site.address("https://docs.example/inside.html") is None
    page = site.open("https://docs.example/sub/n%C3%A4me%201.html")
    assert [link.url for link in page.links] == [
        "https://docs.example/secret.html",
        "https://docs.example/",
    ]
    assert site.address(page.links[0].url) is None


def warc(*pages):
    """Write responses as an archive holds them."""
    records = []
    for number, (url, kind, body, extra) in enumerate(pages):
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
        )
        content = head.encode() + body
        record = (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
            f"WARC-Record-ID: <urn:uuid:{number:032d}>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
            "Content-Type: application/http; msgtype=response\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        records.append(record.encode() + content + b"\r\n\r\n")
    return records


@pytest.mark.parametrize("is_compressed", [False, True])
def test_an_archive_is_a_site(tmp_path, is_compressed):
    first = b"<title>First page</title><p>See the <a href='/b'>other one</a>."
    second = "<title>Zweite Seite</title><p>Größe".encode("latin-1")
    records = warc(
        ("https://h.example/a", "text/html", first, ""),
        ("https://h.example/b", "text/html; charset=iso-8859-1", second, ""),
        ("https://h.example/c", "image/png", b"\x89PNG", ""),
        ("https://h.example/d", "text/html", gzip.compress(first), "Content-Encoding: gzip\r\n"),
        ("https://h.example/e", "text/html", b"no gzip", "Content-Encoding: gzip\r\n"),
        ("https://h.example/a", "text/html", b"later", ""),
    )
    path = tmp_path / ("crawl.warc.gz" if is_compressed else "crawl.warc")
    path.write_bytes(b"".join(map(gzip.compress, records) if is_compressed else records))
    site = folder_site(str(path))
    assert list(site.corpus.ids) == [f"https://h.example/{name}" for name in "abd"]
    assert site.open("https://h.example/b").paragraphs == ("Größe",)
    assert site.open("https://h.example/a").links[0].url == "https://h.example/b"
    assert site.search("größe", 1)[0].url == "https://h.example/b"


def test_what_cannot_be_used_is_named(tmp_path):
    with pytest.raises(CorpusError, match="no HTML page"):
        open_site(str(tmp_path), 5)
    (tmp_path / "a.html").write_text("alone")
    with pytest.raises(ConfigurationError, match="its links give no task"):
        open_site(str(tmp_path), 5)
    (tmp_path / "x.warc").write_bytes(b"this is no archive")
    with pytest.raises(CorpusError):
        folder_site(str(tmp_path / "x.warc"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("package", PACKAGES)
def test_the_documentation_of_a_distribution_is_a_site(package, tmp_path):
    def run(*command):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)

    run("apt-get", "update", "-qq")
    run("apt-get", "download", package)
    (archive,) = tmp_path.glob("*.deb")
    run("dpkg-deb", "-x", archive.name, "unpacked")
    root = tmp_path / "unpacked" / "usr" / "share" / "doc"
    pages = max(root.rglob("index.html"), key=lambda p: sum(1 for _ in p.parent.rglob("*.html")))
    env = WebEnv(site=Path(pages).parent, questions=500)
    assert len(env.site.corpus) >= PACKAGES[package]
    assert len(env.all_tasks) == 500
    agent = OracleAgent(env)
    for task in env.all_tasks:
        trajectory = play(env, agent, seed=0, options={"task": task.id})
        assert trajectory.outcome["exact_match"] == 1, task
