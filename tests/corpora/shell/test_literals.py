"""No pattern may match a line that lacks the literals it is said to require."""

import re
import subprocess
import sys

import numpy as np
import pytest
from pipelines import Generator, write_corpus

from seekgym.corpora.shell.index import FOLD
from seekgym.corpora.shell.literals import folds_to_ascii
from seekgym.corpora.shell.patterns import required_literals
from seekgym.corpora.shell.programs import find_program

PROGRAMS = {
    "fixed": ("grep", "-F"),
    "basic": ("grep", "-G"),
    "extended": ("grep", "-E"),
    "perl": ("grep", "-P"),
    "rust": ("rg", "--no-config", "-N"),
}


def matching_lines(dialect, pattern, text, *, ignores_case):
    """Return the lines that the real program finds, or None if it refuses the pattern."""
    name, *options = PROGRAMS[dialect]
    case = ["-i"] if ignores_case else []
    done = subprocess.run(
        [find_program(name), *options, *case, "-a", "-e", pattern, "-"],
        input=text,
        capture_output=True,
        check=False,
        env={"LC_ALL": "C.UTF-8"},
        timeout=20,
    )
    return done.stdout.split(b"\n") if done.returncode in (0, 1) else None


def is_missed(requirement, line):
    """Tell whether an index would not look at the line."""
    if requirement.ignores_case and any(text in line for text in folds_to_ascii):
        return False
    folded = line.translate(FOLD)
    return not all(any(text in folded for text in clause) for clause in requirement.clauses)


def check(pattern, text, dialects=tuple(PROGRAMS)):
    """Check a pattern in each syntax that takes it; return how many lines were looked at."""
    looked = 0
    for dialect in dialects:
        for ignores_case in (False, True):
            requirement = required_literals(pattern, dialect, ignores_case=ignores_case)
            if not requirement.clauses:
                continue
            for line in matching_lines(dialect, pattern, text, ignores_case=ignores_case) or ():
                if line:
                    looked += 1
                    assert not is_missed(requirement, line), (dialect, pattern, line)
    return looked


def usable(pattern):
    return pattern and "\n" not in pattern and "\0" not in pattern


def test_every_pattern_of_the_regex_cases(cases):
    rows = [row for row in cases("regex.jsonl") if isinstance(row["regex"], (str, list))]
    texts = {str(row["haystack"]) for row in rows}
    variants = texts | {text.swapcase() for text in texts}
    text = "\n".join(sorted(variants)).encode("utf-8", "replace")
    patterns = set()
    for row in rows:
        patterns.update([row["regex"]] if isinstance(row["regex"], str) else row["regex"])
    assert len(patterns) > 500
    assert sum(check(pattern, text) for pattern in sorted(filter(usable, patterns))) > 1_000


def test_the_matches_that_the_cases_state(cases):
    seen = 0
    for row in cases("regex.jsonl"):
        pattern = row["regex"]
        if not isinstance(pattern, str) or not row["matches"] or row.get("unescape"):
            continue
        ignores_case = bool(row.get("case-insensitive"))
        requirement = required_literals(pattern, "rust", ignores_case=ignores_case)
        if requirement.clauses:
            seen += 1
            assert not is_missed(requirement, row["haystack"].encode()), row
    assert seen > 50


def test_patterns_that_explode_are_read_at_once(cases):
    text = b"aaaaaaaaXb\nabd123def!\n(x) 'y'\n"
    for row in cases("redos.jsonl"):
        if usable(row["pattern"]):
            check(row["pattern"], text, ("rust", "extended", "basic"))
            required_literals(row["pattern"], "perl", ignores_case=True)


def test_patterns_drawn_from_a_corpus(tmp_path, request):
    write_corpus(tmp_path / "root", request.path.parents[2] / "cases" / "encodings")
    text = b"".join(p.read_bytes() for p in sorted((tmp_path / "root").glob("*.txt")))
    text = text.replace(b"\0", b"")
    looked = 0
    for number in range(150):
        rng = np.random.default_rng(np.random.SeedSequence([11, number]))
        generator = Generator(tmp_path / "root", rng)
        dialect = generator.pick(list(PROGRAMS))
        looked += check(generator.pattern("letters.txt", dialect), text, (dialect,))
    assert looked > 500


@pytest.mark.parametrize("dialect", ["rust", "extended", "perl"])
def test_only_four_characters_beyond_ascii_match_a_letter(dialect):
    text = "\n".join(
        chr(code)
        for code in range(128, sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000 and chr(code).isprintable()
    ).encode()
    found = set(matching_lines(dialect, "[a-z]", text, ignores_case=True)) - {b""}
    found |= set(matching_lines(dialect, "k|s|i", text, ignores_case=True)) - {b""}
    assert found <= set(folds_to_ascii)
    assert len(found) >= 2


@pytest.mark.parametrize(
    ("pattern", "dialect", "clauses"),
    [
        ("Born in (19|20)43", "rust", {(b"born in 1943", b"born in 2043")}),
        ("foo(bar)+baz", "perl", {(b"foobar",), (b"bar",), (b"barbaz",)}),
        (r"foo\(bar\)\{2\}x", "basic", {(b"foobarbarx",)}),
        ("foo(bar){2}x", "basic", {(b"foo(bar){2}x",)}),
        ("colou?r", "extended", {(b"color", b"colour")}),
        ("a+?bcd", "extended", {(b"bcd",)}),
        ("abc|x", "rust", set()),
        ("(?x) a b c d", "rust", set()),
        (r"\Qa.b.c\E", "perl", set()),
        ("(?<=abc)def", "perl", {(b"def",)}),
        ("(?!abcd)efgh", "perl", {(b"efgh",)}),
        ("abcd{0}", "rust", {(b"abc",)}),
        ("caf\u00e9s?", "rust", {(b"caf\xc3\xa9", b"caf\xc3\xa9s")}),
        ("caf\u00e9*x", "perl", {(b"caf",)}),
        ("(?i)caf\u00e9 au", "rust", {(b" au",), (b"caf",)}),
        ("ab[cd]e", "extended", {(b"abce", b"abde")}),
        ("[[:alpha:]]bcd", "basic", {(b"bcd",)}),
        ("a.b", "fixed", {(b"a.b",)}),
    ],
)
def test_what_is_required(pattern, dialect, clauses):
    found = required_literals(pattern, dialect, ignores_case=False).clauses
    assert {tuple(sorted(clause)) for clause in found} == clauses


def test_a_missed_literal_is_noticed():
    requirement = required_literals("film", "rust", ignores_case=False)
    assert is_missed(requirement, b"a movie")
    assert not is_missed(requirement, b"a FILM")
    assert re.search("film", "a film")
