import pytest
from hypothesis import given
from hypothesis import strategies as st

from seekgym.corpora import ConfigurationError, ScoringError
from seekgym.envs.scoring import (
    CONVENTIONS,
    cover_exact_match,
    exact_match,
    f1,
    normalize,
    score_answer,
    set_scores,
)

ORIGINALS = {
    "squad": ("expected", "squad"),
    "hotpotqa": ("expected", "hotpotqa"),
    "search-r1": ("expected", "search_r1"),
    "squad-v2": ("also", "squad_v2"),
}
SCORES = {"em": exact_match, "f1": f1, "sub_em": cover_exact_match}
visible = st.text(min_size=1).filter(str.strip)


@pytest.mark.parametrize("convention", ORIGINALS)
def test_conventions_give_what_the_originals_give(cases, convention):
    group, name = ORIGINALS[convention]
    checked = 0
    for case in cases("scoring.jsonl"):
        prediction, golds = case["prediction"], case["gold"]
        for score, expected in case[group][name].items():
            if score == "error":
                with pytest.raises(ScoringError):
                    exact_match(prediction, golds, convention=convention)
            elif expected is not None:
                found = SCORES[score](prediction, golds, convention=convention)
                assert found == pytest.approx(expected, abs=1e-6), (case["id"], score)
            checked += 1
    assert checked >= 2 * 145 - 2


def test_set_scores_are_those_of_phantomwiki(cases):
    for case in cases("set_scoring.jsonl"):
        found = set_scores(case["prediction"], [case["gold"]])
        assert found._asdict() == pytest.approx(case["phantom_eval"], abs=1e-6), case["id"]
    assert set_scores("Bob, Ann", ["Ann", "Bob"]).exact_match == 1.0


def test_the_default_differs_from_squad_only_where_golds_normalise_to_nothing(cases):
    for case in cases("scoring.jsonl"):
        prediction, golds = case["prediction"], case["gold"]
        texts = [prediction, *golds]
        if golds and all(normalize(text, "squad") for text in texts):
            for score in (exact_match, f1):
                assert score(prediction, golds) == score(prediction, golds, convention="squad")


@pytest.mark.parametrize("gold", ["A", "The The", "!!!", "An", "the", "???"])
def test_an_answer_never_normalises_to_nothing(gold):
    assert score_answer(gold, [gold]) == (1.0, 1.0, 1.0)
    assert exact_match("Paris", [gold]) == 0.0
    assert f1("", [gold]) == 0.0


def test_blank_golds_are_skipped_and_none_left_is_an_error():
    assert exact_match("Paris", ["", " ", "Paris"]) == 1.0
    assert exact_match("", ["", "Paris"]) == 0.0
    for golds in ([], [""], [" ", "\n"]):
        with pytest.raises(ScoringError, match="no usable gold"):
            exact_match("Paris", golds)
    with pytest.raises(ScoringError, match="must be a list"):
        exact_match("Paris", "Paris")
    with pytest.raises(ConfigurationError, match="did you mean 'squad'"):
        exact_match("Paris", ["Paris"], convention="sqad")


def test_cover_goes_by_words_but_for_unspaced_scripts_and_search_r1():
    assert cover_exact_match("it is New York City", ["new york"]) == 1.0
    assert cover_exact_match("Parisian", ["Paris"]) == 0.0
    assert cover_exact_match("Parisian", ["Paris"], convention="search-r1") == 1.0
    assert cover_exact_match("在北京市", ["北京"]) == 1.0


def test_answer_sets_are_scored_as_sets():
    scores = score_answer("Bob, Ann", ["Ann", "Bob"], is_answer_set=True)
    assert scores == (1.0, 1.0, 1.0)
    assert score_answer("Ann", ["Ann", "Bob"], is_answer_set=True).exact_match == 0.0
    assert score_answer("Ann", ["Ann", "Bob"], is_answer_set=True).cover_exact_match == 0.0


@given(st.text(), st.sampled_from(CONVENTIONS))
def test_normalising_twice_changes_nothing(text, convention):
    once = normalize(text, convention)
    assert normalize(once, convention) == once


@given(visible, visible, st.sampled_from(CONVENTIONS))
def test_scores_are_bounded_and_f1_is_symmetric(a, b, convention):
    forward = score_answer(a, [b], convention=convention)
    assert all(0.0 <= score <= 1.0 for score in forward)
    backward = f1(b, [a], convention=convention)
    assert forward.f1 == pytest.approx(backward)


@given(visible)
def test_an_answer_matches_itself(text):
    assert score_answer(text, [text]) == (1.0, 1.0, 1.0)


def test_naughty_strings_are_answers(cases):
    for text in cases("naughty_strings.json"):
        if text.strip():
            assert exact_match(text, [text]) == 1.0
            assert 0.0 <= f1(text, ["Paris"]) <= 1.0
