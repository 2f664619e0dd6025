import re
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from seekgym.corpora.markup import decode_html, tokens
from seekgym.corpora.pages import page_from_html, plain_line
from seekgym.corpora.sites.stdlib import load_library

URL = "https://x.example/a/b.html"


def paragraphs(html):
    return list(page_from_html(html, URL).paragraphs)


def links(html):
    return [(link.url, link.text) for link in page_from_html(html, URL).links]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (b"<p>one<p>two", ["one", "two"]),
        (b"<p>a <b>b</b>c &amp; d", ["a bc & d"]),
        (b"<p>one<br>\n  two<br><br>three", ["one\ntwo", "three"]),
        (b"<h2>Head</h2><ul><li>a<li>b</ul>", ["## Head", "- a", "- b"]),
        (b"<table><tr><td>a<td><td>c<tr><td><td>e</table>", ["a | c", "e"]),
        (b"<pre>x\n  y\n\n z</pre>", ["x\n  y", "z"]),
        (b"<script>if (a<b) x</script><style>p{}</style>y", ["y"]),
        (b"<p hidden>no<p>yes<div style='display: none'><p>no</div>on", ["yes", "on"]),
        (b"<svg><title>no</title><text>no</text></svg>yes", ["yes"]),
        (b"<noscript>shown</noscript><template>no</template>", ["shown"]),
        (b"a<!-- no > -->b<![CDATA[x]]><?pi?>c", ["abc"]),
        (b"1 < 2 and <3", ["1 < 2 and <3"]),
        (b"<p title='a>b'>x</p><p a=\"'>'\">y", ["x", "y"]),
        (b"<nav>menu</nav><main>body</main><footer>end</footer>", ["body", "menu", "end"]),
        (b"<img alt='a cat'> sat", ["[image: a cat] sat"]),
        (b"&#0;&#xD800;&#99999999999;&nosuch;", ["��&nosuch;"]),
        ("a\u202eb\u2028c\u0085d".encode(), ["ab\nc\nd"]),
        (b"", []),
        (b"<p unfinished", []),
    ],
)
def test_paragraphs(html, expected):
    found = paragraphs(html)
    assert [text.replace("\ufffd\ufffd\ufffd", "\ufffd\ufffd") for text in found] == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (b"<a href='c.html#x'>c</a>", [("https://x.example/a/c.html", "c")]),
        (b"<base href='/d/'><a href=e>e</a>", [("https://x.example/d/e", "e")]),
        (b"<a href='//y.example/'>y</a>", [("https://y.example/", "y")]),
        (b"<a href='#top'>top</a><a href=b.html>self</a>", []),
        (
            b"<a href='javascript:x()'>x</a><a href='mailto:a@b'>m</a><a href='file:///etc'>f</a>",
            [],
        ),
        (b"<a href='http://[::1'>bad</a>", []),
        (b"<a href=c>one</a> <a href=c>two</a>", [("https://x.example/a/c", "one")]),
        (b"<ul><li><a href=c>one</a></ul>", [("https://x.example/a/c", "one")]),
        (b"<frameset><frame src=f name=menu></frameset>", [("https://x.example/a/f", "menu")]),
        (b"<iframe src=f></iframe>", [("https://x.example/a/f", "iframe")]),
        (b"<a href='c\n\td'>x</a>", [("https://x.example/a/cd", "x")]),
        (b"<area href=c alt=map>", [("https://x.example/a/c", "map")]),
    ],
)
def test_links(html, expected):
    assert links(html) == expected


def test_a_title_is_one_line_and_falls_back_to_heading_and_address():
    assert page_from_html(b"<title> a\n b</title><h1>c</h1>", URL).title == "a b"
    assert page_from_html(b"<h1>c</h1>", URL).title == "c"
    assert page_from_html(b"x", URL).title == URL


@pytest.mark.parametrize(
    ("content", "charset", "expected"),
    [
        ("é".encode(), None, "é"),
        ("é".encode("latin-1"), None, "é"),
        ("é".encode("latin-1"), "utf-8", "\ufffd"),
        ("привет".encode("koi8-r"), "KOI8-R", "привет"),
        (b"<meta charset=koi8-r>" + "да".encode("koi8-r"), None, "<meta charset=koi8-r>да"),
        ("\ufeffé".encode(), "koi8-r", "é"),
        ("é".encode("utf-16"), None, "é"),
        (b"\x93x\x94", "iso-8859-1", "“x”"),
        (b"x", "no-such-charset", "x"),
        (b"eA==", "base64", "eA=="),
        (b"x", "rot13", "x"),
        (b"+AGE-", "utf-7", "+AGE-"),
        (b"\xff\xff", "utf-8", "\ufffd\ufffd"),
        (b"x", "a\0b", "x"),
    ],
)
def test_charsets(content, charset, expected):
    assert decode_html(content, charset) == expected


PIECES = """<p> </p> <a-href=x> </a> <li> <td> <pre> </pre> <script> </script> <!-- --> < > & &amp;
    <main> </main> <br> <title> </title> <p-hidden> <svg> </svg> " ' = text é </ <! <? &#1; \0
    <a-href='' <base-href=y> <frame-src=z> <img-alt=i> <div-style=display:none>"""
HTML = st.lists(
    st.sampled_from([*(piece.replace("-", " ") for piece in PIECES.split()), "<!--", "\n", " "])
    | st.text(max_size=4),
    max_size=60,
).map("".join)


@given(HTML)
@settings(deadline=None, max_examples=300)
def test_any_text_gives_a_page_whose_parts_hold_together(html):
    page = page_from_html(html, URL)
    texts = [token for token in tokens(html) if isinstance(token, str)]
    assert sum(map(len, texts)) <= len(html)
    for paragraph in page.paragraphs:
        assert paragraph.strip()
        assert all(line == line.rstrip() for line in paragraph.split("\n"))
        assert len(paragraph.splitlines()) == paragraph.count("\n") + 1
    assert page.title == plain_line(page.title)
    for link in page.links:
        assert link.url.startswith(("http://", "https://"))
        assert 0 <= link.paragraph < len(page.paragraphs)
    assert len({link.url for link in page.links}) == len(page.links)


@given(st.binary(max_size=400), st.sampled_from([None, "utf-8", "utf-16", "big5", "x"]))
@settings(deadline=None, max_examples=300)
def test_any_bytes_give_a_page(html, charset):
    page_from_html(html, URL, charset).title.encode()


GROWING = [
    "<div>", "<a href=x>", "<a href=x>t", "<!--", "<", "<b ", "a=b ", "<p a=\"'", "<p a='>",
    "<p a=\">'", "<script>", "<title></title>", "&#9999999999", "&", "\n ", "<br> ", "<br>x",
    "<td>", "<td> ", "x<td>", "<svg>", "<main>x", "<base href=x><a href=y>", " ", "\t", "&nbsp;",
    "<img alt=x>", "</", "<p=", "<p hidden>", "<font size=1><p>x", "<table>x", "<li><a href=x>",
    "<iframe src=x>", "<pre>\n", "<select><option>", "<p a=", "<!", "]]>", "<p/",
]  # fmt: skip


@pytest.mark.parametrize("unit", GROWING)
def test_time_is_linear_in_the_size(unit):
    """Four times the text takes about four times the time: far from sixteen."""

    def seconds(size):
        html = (unit * (size // len(unit))).encode()
        times = []
        for _ in range(3):
            start = time.process_time()
            page_from_html(html, URL)
            times.append(time.process_time() - start)
        return min(times)

    small, large = seconds(15_000), seconds(60_000)
    assert large < 9 * small + 0.05
    assert large < 1


@given(st.integers(0, 10**9), st.integers(0, 10**9), HTML)
@settings(deadline=None, max_examples=100)
def test_mutations_of_real_pages_give_pages(place, end, inserted):
    library = load_library()
    html = library.html[library.url("json.decoder.JSONDecoder")]
    place, end = place % len(html), end % len(html)
    start = time.process_time()
    page = page_from_html(html[:place] + inserted + html[end:], URL)
    assert time.process_time() - start < 1
    assert page.title


def test_the_words_are_those_of_a_parser_that_follows_the_standard():
    library = load_library()
    missing = added = total = 0
    for page in library.pages[::12]:
        tree = LexborHTMLParser(library.html[page.url])
        expected = Counter(re.findall(r"\w+", tree.body.text(separator=" ")))
        found = Counter(re.findall(r"\w+", " ".join(page.paragraphs)))
        missing += (expected - found).total()
        added += (found - expected).total()
        total += expected.total()
    assert total > 20_000
    assert missing + added < total / 500
