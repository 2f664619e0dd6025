"""Answer scores: exact match, F1, cover exact match, and their set forms.

"EM" and "F1" mean different things in different code bases, so a convention is named:

=============  =====================================================================================
``seekgym``    The default: SQuAD v1.1's, but an answer never normalises to nothing (gold ``A`` or
               ``The The`` is scored on its own text) and a blank gold answer is skipped.
``squad``      SQuAD v1.1 (Rajpurkar et al. 2016, arXiv:1606.05250).
``squad-v2``   SQuAD 2.0 (Rajpurkar et al. 2018, arXiv:1806.03822): golds that normalise to nothing
               are dropped; where none is left, only an empty answer is right.
``hotpotqa``   HotpotQA (Yang et al. 2018, arXiv:1809.09600): F1 is 0 where exactly one side, or
               each side differently, is yes, no or noanswer.
``search-r1``  Search-R1 (Jin et al. 2025, arXiv:2503.09516): cover exact match is a plain
               substring test; no gold scores 0. Its F1, which it does not define, is SQuAD's.
=============  =====================================================================================

Cover exact match asks whether the answer contains a gold answer. But for ``search-r1`` it goes
by whole words, so gold ``1`` is not in ``21``.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, get_args

from ..corpora.errors import ScoringError, raise_unknown

__all__ = [
    "CONVENTIONS",
    "Convention",
    "Scores",
    "SetScores",
    "check_convention",
    "cover_exact_match",
    "exact_match",
    "f1",
    "ndcg",
    "normalize",
    "score_answer",
    "set_scores",
]

Convention = Literal["seekgym", "squad", "squad-v2", "hotpotqa", "search-r1"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_DECIDED = frozenset(("yes", "no", "noanswer"))
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


class Scores(NamedTuple):
    """The three scores that every report shows side by side, each in [0, 1]."""

    exact_match: float
    f1: float
    cover_exact_match: float


class SetScores(NamedTuple):
    """Scores of a list of answers against a set of gold answers, each in [0, 1]."""

    exact_match: float
    precision: float
    recall: float
    f1: float


def normalize(text: str, convention: Convention = "seekgym") -> str:
    """Return the text lowercased, without ASCII punctuation, articles and extra spaces.

    Example:
        >>> normalize("The  U.S. Army!")
        'us army'
        >>> normalize("The The"), normalize("The The", "squad")
        ('the the', '')
    """
    check_convention(convention)
    bare = text.lower().translate(_PUNCTUATION)
    result = " ".join(_ARTICLE.sub(" ", bare).split())
    if result or convention != "seekgym":
        return result
    return " ".join(bare.split()) or " ".join(text.lower().split())


def exact_match(
    prediction: str, golds: Sequence[str], *, convention: Convention = "seekgym"
) -> float:
    """Return 1.0 if the prediction equals any gold answer after normalising, else 0.0.

    Raises:
        ScoringError: There is no gold answer to compare with.
        ConfigurationError: The convention is unknown.
    """
    usable = _usable(golds, convention)
    predicted = normalize(prediction, convention)
    return float(any(predicted == normalize(gold, convention) for gold in usable))


def f1(prediction: str, golds: Sequence[str], *, convention: Convention = "seekgym") -> float:
    """Return the best token F1 (multisets of words) over the gold answers.

    Raises:
        ScoringError: There is no gold answer to compare with.
        ConfigurationError: The convention is unknown.
    """
    usable = _usable(golds, convention)
    predicted = normalize(prediction, convention)
    return max(
        (_token_f1(predicted, normalize(gold, convention), convention) for gold in usable),
        default=0.0,
    )


def cover_exact_match(
    prediction: str, golds: Sequence[str], *, convention: Convention = "seekgym"
) -> float:
    """Return 1.0 if the prediction contains any gold answer after normalising, else 0.0.

    Raises:
        ScoringError: There is no gold answer to compare with.
        ConfigurationError: The convention is unknown.
    """
    usable = _usable(golds, convention)
    predicted = normalize(prediction, convention)
    return float(
        any(_covers(predicted, normalize(gold, convention), convention) for gold in usable)
    )


def set_scores(prediction: str, golds: Sequence[str]) -> SetScores:
    """Score a comma-separated list against a set, as PhantomWiki does (arXiv:2502.20377).

    Both sides are cut at commas, stripped and lowercased, and compared as sets. Here a gold
    answer may itself hold a comma: it is cut too. Nothing else is normalised.

    Example:
        >>> set_scores("Bob, Ann", ["Ann", "Bob"])
        SetScores(exact_match=1.0, precision=1.0, recall=1.0, f1=1.0)
    """
    if isinstance(golds, str):
        raise ScoringError(f"golds must be a list of answers, got the text {golds!r:.60}")
    predicted = {part.strip().lower() for part in prediction.split(",")}
    gold = {part.strip().lower() for answer in golds for part in answer.split(",")}
    common = len(predicted & gold)
    precision, recall = common / len(predicted), common / max(1, len(gold))
    harmonic = 2 * precision * recall / (precision + recall) if common else 0.0
    return SetScores(float(predicted == gold), precision, recall, harmonic)


def score_answer(
    prediction: str,
    golds: Sequence[str],
    *,
    is_answer_set: bool = False,
    convention: Convention = "seekgym",
) -> Scores:
    """Return all three scores; an answer set is scored as a set, and covered by all of it.

    Raises:
        ScoringError: There is no gold answer to compare with.
        ConfigurationError: The convention is unknown.
    """
    if is_answer_set:
        golds = [gold for gold in golds if gold.strip()]
        as_set = set_scores(prediction, golds)
        covers = [cover_exact_match(prediction, [gold], convention=convention) for gold in golds]
        return Scores(as_set.exact_match, as_set.f1, min(covers, default=0.0))
    return Scores(
        exact_match(prediction, golds, convention=convention),
        f1(prediction, golds, convention=convention),
        cover_exact_match(prediction, golds, convention=convention),
    )


def ndcg(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return nDCG@k with binary gains: ``sum rel_i / log2(i + 1)`` over that of the best ranking.

    The best ranking has the relevant documents first, at most k of them (Jarvelin & Kekalainen
    2002, "Cumulated Gain-Based Evaluation of IR Techniques").

    Args:
        ranking: Ids, best first; each counts where it first stands.
        relevant: Ids of the relevant documents.
        k: How many places count.

    Raises:
        ScoringError: No document is relevant.

    Example:
        >>> ndcg(["a", "b", "c"], {"a", "c"}, 5)
        0.9197207891481876
    """
    if not relevant:
        raise ScoringError("no document is relevant, so that no ranking is better than another")
    places = list(dict.fromkeys(ranking))[:k]
    gain = sum(_discount(place) for place, found in enumerate(places) if found in relevant)
    best = sum(_discount(place) for place in range(min(k, len(set(relevant)))))
    return gain / best


def check_convention(convention: str) -> None:
    """Raise a ConfigurationError, with the known names, if there is no such convention."""
    if convention not in CONVENTIONS:
        raise_unknown("convention", convention, CONVENTIONS)


def _discount(place: int) -> float:
    return 1 / math.log2(place + 2)


def _usable(golds: Sequence[str], convention: Convention) -> Sequence[str]:
    check_convention(convention)
    if isinstance(golds, str):
        raise ScoringError(f"golds must be a list of answers, got the text {golds!r:.60}")
    if convention == "squad-v2":
        return [gold for gold in golds if normalize(gold, convention)] or [""]
    if convention == "seekgym":
        golds = [gold for gold in golds if gold.strip()]
    if not golds and convention != "search-r1":
        raise ScoringError("there is no usable gold answer; give at least one that is not blank")
    return golds


def _token_f1(predicted: str, gold: str, convention: Convention) -> float:
    if convention == "hotpotqa" and predicted != gold and _DECIDED & {predicted, gold}:
        return 0.0
    predicted_tokens, gold_tokens = predicted.split(), gold.split()
    if convention == "squad-v2" and not (predicted_tokens and gold_tokens):
        return float(predicted_tokens == gold_tokens)
    if set(predicted_tokens).isdisjoint(gold_tokens):
        return 0.0
    common = sum((Counter(predicted_tokens) & Counter(gold_tokens)).values())
    precision, recall = common / len(predicted_tokens), common / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


def _covers(predicted: str, gold: str, convention: Convention) -> bool:
    if convention == "search-r1" or _UNSPACED.search(gold):
        return gold in predicted
    return f" {gold} " in f" {predicted} "
