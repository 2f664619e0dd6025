import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.corpora import CommandError
from seekgym.corpora.shell import Pipeline, Stage, parse


def words(command):
    return [[stage.program, *stage.arguments] for stage in parse(command).stages]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rg -i 'a|b' c.jsonl | head -n 5", [["rg", "-i", "a|b", "c.jsonl"], ["head", "-n", "5"]]),
        ("  cat\t f  ", [["cat", "f"]]),
        ("a|b", [["a"], ["b"]]),
        (r'rg "x\"y\$z\d$" f', [["rg", r'x"y$z\d$', "f"]]),
        ("rg 'it'\"'\"'s' f", [["rg", "it's", "f"]]),
        (r"rg a\|b\ c f", [["rg", "a|b c", "f"]]),
        ("rg '' f", [["rg", "", "f"]]),
        ("rg x$ f", [["rg", "x$", "f"]]),
        ("rg a#b f", [["rg", "a#b", "f"]]),
        ("rg 'Ōsaka – 北京' f", [["rg", "Ōsaka – 北京", "f"]]),
    ],
)
def test_words_quotes_and_pipes(command, expected):
    assert words(command) == expected


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("", "empty"),
        (" \t", "empty"),
        ("a || b", "operator"),
        ("a |", "empty_stage"),
        ("| a", "empty_stage"),
        ("a | | b", "empty_stage"),
        ("a; b", "operator"),
        ("a & b", "operator"),
        ("a && b", "operator"),
        ("a |& b", "operator"),
        ("(a)", "operator"),
        ("a > f", "redirection"),
        ("a 2>&1", "redirection"),
        ("a < f", "redirection"),
        ("a `b`", "substitution"),
        ('a "`b`"', "substitution"),
        ("a $(b)", "substitution"),
        ('a "$(b)"', "substitution"),
        ("a $HOME", "variable"),
        ('a "${HOME}"', "variable"),
        ("a $'x'", "variable"),
        ('a "$1"', "variable"),
        ("a *.txt", "glob"),
        ("a fil?", "glob"),
        ("a [ab]", "glob"),
        ("a {b,c}", "expansion"),
        ("a ~/x", "expansion"),
        ("a # b", "comment"),
        ("a 'b", "quote"),
        ('a "b', "quote"),
        ("a \\", "escape"),
        ("a\nb", "newline"),
        ("a 'b\nc'", "newline"),
        ("a\rb", "newline"),
        ("a\0b", "character"),
        ("a \x1b[0m", "character"),
        ("a \ud83c", "character"),
        ("a" * 2_001, "too_long"),
        ("|".join(["a"] * 17), "too_many_stages"),
    ],
)
def test_all_else_is_refused_with_a_code_and_a_sentence(command, code):
    with pytest.raises(CommandError) as found:
        parse(command)
    assert found.value.code == code
    assert len(str(found.value)) > 20


def test_an_error_survives_a_pickle():
    import pickle

    error = pickle.loads(pickle.dumps(CommandError("glob", "no")))
    assert (error.code, error.reason, str(error)) == ("glob", "no", "no")


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc"))), min_size=1, max_size=4),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=300, deadline=None)
def test_quoted_words_come_back_as_they_were(stages):
    command = " | ".join(shlex.join(stage) for stage in stages)
    assert parse(command) == Pipeline(tuple(Stage(s[0], tuple(s[1:])) for s in stages))


@given(st.text(st.sampled_from("ab'\"\\ $x;|&<>`(){}*?[]~#=!^,.-\t"), max_size=14))
@settings(max_examples=400, deadline=None)
def test_what_is_accepted_means_what_it_means_in_a_shell(text):
    try:
        found = parse(f"printf {text}").stages
    except CommandError:
        return
    if len(found) > 1:
        return
    script = f'f() {{ for w in "$@"; do printf "%s\\0" "$w"; done; }}; f {text}'
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True, cwd="/proc")
    assert done.stdout.decode() == "".join(f"{word}\0" for word in found[0].arguments)
