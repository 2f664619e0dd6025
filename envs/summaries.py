"""Sum up what a search showed, by rules: the sentences that fit a question best."""

import math
import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "Sentence",
    "best_sentences",
    "content_words",
    "find_names",
    "split_sentences",
    "summarise",
]

_CACHED = 4_096  # texts whose parts are kept
_HEADING = re.compile(r"^(?:\d+\. )?\[([^\]\n]+)\] (.*)$")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀ-Þ\"(\d])")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?!The |A |An |In )[A-ZÀ-Þ][\w'’-]*(?: [A-ZÀ-Þ][\w'’-]*)*")
_COMMON = frozenset(
    "a an and are as at be by did do does for from had has have he her his how in is it its many "
    "much of on or she that the their they this to two was were what when where which who whom "
    "whose why with".split()
)


class Sentence(NamedTuple):
    """A sentence of a document, with the title that it stands under."""

    title: str
    text: str


@lru_cache(maxsize=_CACHED)
def split_sentences(observation: str) -> tuple[Sentence, ...]:
    """Return the sentences of the documents that an observation shows, in order."""
    title, found = "", []
    for line in observation.splitlines():
        heading = _HEADING.match(line)
        if heading is not None:
            title = heading[2].strip()
        elif line.strip() and not line.startswith("#"):
            found += [Sentence(title, text.strip()) for text in _END.split(line) if text.strip()]
    return tuple(found)


def best_sentences(text: str, query: str, count: int) -> str:
    r"""Return the sentences of a document that share most words with a query, in order.

    Words that fewer of its sentences have count more; of two equal sentences the first one wins.

    Example:
        >>> best_sentences("# Ann\nThe job of Ann is cook.\nThe son of Ann is Bo.", "son Ann", 1)
        'The son of Ann is Bo.'
    """
    sentences = split_sentences(text)
    words = [frozenset(content_words(sentence.text)) for sentence in sentences]
    seen_in = Counter(word for each in words for word in each)
    asked = set(content_words(query))

    def score(place: int) -> float:
        shared = sorted(words[place] & asked)
        return sum(math.log((len(words) + 1) / seen_in[word]) for word in shared)

    chosen = sorted(range(len(words)), key=lambda place: (-score(place), place))[:count]
    return "\n".join(sentences[place].text for place in sorted(chosen))


@lru_cache(maxsize=_CACHED)
def content_words(text: str) -> tuple[str, ...]:
    """Return the words that carry meaning, in lower case, in order, each once."""
    return tuple(dict.fromkeys(w for w in _WORD.findall(text.lower()) if w not in _COMMON))


@lru_cache(maxsize=_CACHED)
def find_names(text: str) -> tuple[str, ...]:
    """Return the runs of capitalised words in a text, in order, each once.

    Example:
        >>> find_names("The mother of Ann Lee is Bo.")
        ('Ann Lee', 'Bo')
    """
    found = (match[0] for match in _NAME.finditer(text))
    return tuple(dict.fromkeys(name for name in found if name.lower() not in _COMMON))


def summarise(question: str, observation: str, words: int) -> str:
    r"""Return the sentences that share most with a question, at most so many words, in order.

    Rarer words count more. A sentence that does not name its document's title gets it in front.

    Example:
        >>> summarise("job of Ann", "1. [a] Ann\nThe job of Ann is cook. She is 30.", 6)
        'The job of Ann is cook.'
    """
    asked = set(content_words(question))
    sentences = list(dict.fromkeys(split_sentences(observation)))
    contents = [_content(sentence) for sentence in sentences]
    seen_in = Counter(word for content in contents for word in content)
    total = len(sentences) + 1

    def score(place: int) -> float:
        shared = sorted(contents[place] & asked)
        return sum(math.log(total / seen_in[word]) for word in shared)

    chosen, left = [], words
    for place in sorted(range(len(sentences)), key=lambda place: (-score(place), place)):
        text = _with_title(sentences[place])
        length = len(text.split())
        if length <= left:
            chosen.append((place, text))
            left -= length
    return " ".join(text for _, text in sorted(chosen))


@lru_cache(maxsize=_CACHED)
def _content(sentence: Sentence) -> frozenset[str]:
    """Return the words of a sentence and its title that carry meaning."""
    return frozenset(content_words(f"{sentence.title} {sentence.text}"))


@lru_cache(maxsize=_CACHED)
def _with_title(sentence: Sentence) -> str:
    if not sentence.title or set(content_words(sentence.title)) & set(content_words(sentence.text)):
        return sentence.text
    return f"{sentence.title}: {sentence.text}"
