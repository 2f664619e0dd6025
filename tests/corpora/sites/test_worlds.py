import pickle

import pytest

from seekgym.corpora import ConfigurationError, PageError, Site
from seekgym.corpora.pages import page_from_html
from seekgym.corpora.sites import open_site
from seekgym.corpora.sites.offline import snippet

WORLDS = (
    "phantom:people=50",
    "phantom:people=60,style='prose',seed=3",
    "knowledge:entities=300,seed=1,noise=0.1",
)


@pytest.fixture(params=WORLDS)
def opened(request):
    return open_site(request.param, 60)


def test_the_html_shows_what_an_agent_reads(opened):
    for url in opened.site.corpus.ids:
        assert page_from_html(opened.site.html(url), url) == opened.site.open(url)


def test_there_are_lists_namesakes_infoboxes_and_dead_links(opened):
    site = opened.site
    assert isinstance(site, Site)
    assert any("/List_of_" in url for url in site.corpus.ids)
    assert any(url.endswith("_(namesakes)") for url in site.corpus.ids)
    home = site.open(site.home)
    assert all(site.address(link.url) for link in home.links)
    article = site.open(opened.tasks[0].evidence[0])
    assert any(" | " in text for text in article.paragraphs)
    dead = [link.url for link in article.links if site.address(link.url) is None]
    assert len(dead) == 1
    with pytest.raises(PageError, match="the link is dead") as caught:
        site.open(dead[0])
    assert caught.value.code == "not_found"


def test_every_article_can_be_reached_by_links_from_the_first_page(opened):
    site, seen = opened.site, {opened.site.home}
    waiting = [site.home]
    while waiting:
        for link in site.open(waiting.pop()).links:
            if link.url not in seen and site.address(link.url):
                seen.add(link.url)
                waiting.append(link.url)
    assert seen >= {url for url in site.corpus.ids if "_(namesakes)" not in url}


def test_an_infobox_says_nothing_that_the_article_does_not(opened):
    """Else a question whose facts stand in several articles could be answered from one."""
    site = opened.site
    for url in opened.tasks[0].evidence + opened.tasks[1].evidence:
        page = site.open(url)
        rows = [text for text in page.paragraphs if " | " in text]
        body = " ".join(text for text in page.paragraphs if " | " not in text)
        for row in rows:
            for value in row.partition(" | ")[2].split(", "):
                assert value.split()[0] in body


def test_evidence_is_found_by_the_sites_own_search(opened):
    for task in opened.tasks:
        for step in task.proof:
            assert step.document in {r.url for r in opened.site.search(step.query, 1)}


def test_pages_of_results_go_on(opened):
    site = opened.site
    name = site.open(opened.tasks[0].evidence[0]).title
    first, second = site.search(name, 1), site.search(name, 2)
    assert len(first) == site.page_size
    assert not {r.url for r in first} & {r.url for r in second}
    assert site.search(name, 21) == site.search("zzzqqq", 1) == site.search("", 1) == []


def test_a_site_survives_pickling(opened):
    again = pickle.loads(pickle.dumps(opened.site))
    assert again.name == opened.site.name
    assert again.open(again.home) == opened.site.open(opened.site.home)
    assert len(pickle.dumps(opened.site)) < 1_000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("knowledge:entities=3", "entities"),
        ("knowledge:entites=300", "entites"),
        ("phantom:people", "come arguments like"),
        ("phantom:people=__import__('os')", "come arguments like"),
        ("phantom:people=60000", "50000 at most"),
        ("pydoc:entities=3", "argument of site"),
        ("pydok", "did you mean 'pydoc'"),
        ("no/such/folder", "no such folder"),
    ],
)
def test_bad_specs_are_named(spec, words):
    with pytest.raises(ConfigurationError, match=words):
        open_site(spec, 10)


def test_a_snippet_is_where_most_of_the_words_stand():
    text = "alpha " + "filler " * 200 + "beta gamma " + "filler " * 200 + "alpha beta"
    found = snippet(text, text, ("beta", "gamma"))
    assert "beta gamma" in found
    assert found.startswith("… ")
    assert found.endswith(" …")
    assert len(found) < 300
    assert snippet(text, text, ("nowhere",)).startswith("alpha filler")
    assert snippet("", "", ("x",)) == ""
