"""Turn text in any script into index terms.

Words are cut at characters that are neither letters nor digits, lowercased, stemmed where the
language has a stemmer, and stripped of accents. Scripts that put no space between words (Han,
kana, Thai, Lao, Khmer, Burmese) give single characters and overlapping pairs of them, the usual
choice where no dictionary is at hand (Nie et al. 2000, "On the use of words and n-grams for
Chinese information retrieval").
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from ..errors import raise_unknown
from ..text import replace_surrogates

__all__ = ["LANGUAGES", "Analyzer", "detect_language"]

LANGUAGES = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
_MAX_TERM_BYTES = 80
_SCRIPTS = {  # the languages that one script alone decides
    "ar": re.compile("[\u0600-\u06ff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "ru": re.compile("[\u0400-\u04ff]"),
    "ta": re.compile("[\u0b80-\u0bff]"),
}
_LATIN_WITH_STOPWORDS = ("da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "sv")
_WITH_STOPWORDS = (*_LATIN_WITH_STOPWORDS, "ru")
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_STOPWORD_SHARE = 0.15
_LEAST_WORDS = 8  # fewer say too little


class Analyzer:
    """Gives the terms of documents and queries in one language.

    Args:
        language: A two-letter code of ``LANGUAGES``, which chooses the stemmer, or ``"any"``
            for no stemming.

    Raises:
        ConfigurationError: The language is unknown.

    Example:
        >>> Analyzer("en").terms("The runners' Ōsaka")
        ['the', 'runner', 'osaka']
        >>> Analyzer("any").terms("北京市")
        ['北', '京', '市', '北京', '京市']
    """

    def __init__(self, language: str) -> None:
        if language != "any" and language not in LANGUAGES:
            raise_unknown("language", language, [*LANGUAGES, "any"])
        self.language = language
        self.pipeline = _pipeline(language, drops_stopwords=False)
        self._query_pipeline = _pipeline(language, drops_stopwords=True)

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text, in order, repeats included."""
        return self.pipeline.analyze(self.segment(text))

    def query_terms(self, text: str) -> list[str]:
        """Return the distinct terms of a query, in order.

        The language's stop words are left out of a query that has other words.

        Example:
            >>> Analyzer("en").query_terms("What is the capital of the capital?")
            ['what', 'capit']
            >>> Analyzer("en").query_terms("It")
            ['it']
        """
        segmented = self.segment(text)
        terms = self._query_pipeline.analyze(segmented) or self.pipeline.analyze(segmented)
        return list(dict.fromkeys(terms))

    def content_terms(self, text: str) -> list[str]:
        """Return the terms of a text without the language's stop words, repeats included.

        Example:
            >>> Analyzer("en").content_terms("the runners of the run")
            ['runner', 'run']
        """
        return self._query_pipeline.analyze(self.segment(text))

    def segment(self, text: str) -> str:
        """Return the text with spaces put between the terms of unspaced scripts."""
        if text.isascii():
            return text
        text = unicodedata.normalize("NFKC", replace_surrogates(text))
        return _UNSPACED.sub(_characters_and_pairs, text)


def detect_language(texts: Iterable[str]) -> str:
    """Return the language of the texts: a code of ``LANGUAGES``, or ``"any"``.

    The script decides where it can; Latin text goes to the language whose stop words make up
    the largest share of it.

    Example:
        >>> detect_language(["The war of the worlds is a book by Wells."])
        'en'
    """
    text = " ".join(texts)
    letters = sum(character.isalpha() for character in text)
    if not letters:
        return "any"
    for language, pattern in _SCRIPTS.items():
        if len(pattern.findall(text)) > letters / 2:
            return language
    if len(_LATIN.findall(text)) <= letters / 2:
        return "any"
    shares = {language: _stopword_share(language, text) for language in _LATIN_WITH_STOPWORDS}
    best = max(shares, key=lambda language: (shares[language], language))
    return best if shares[best] >= _STOPWORD_SHARE else "any"


@cache
def _pipeline(language: str, *, drops_stopwords: bool) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.simple())
    builder = builder.filter(Filter.remove_long(_MAX_TERM_BYTES)).filter(Filter.lowercase())
    if drops_stopwords and language in _WITH_STOPWORDS:
        builder = builder.filter(Filter.stopword(LANGUAGES[language]))
    if language != "any":
        builder = builder.filter(Filter.stemmer(LANGUAGES[language]))
    return builder.filter(Filter.ascii_fold()).build()


@cache
def _stopword_pipeline(language: str | None) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase())
    if language is not None:
        builder = builder.filter(Filter.stopword(LANGUAGES[language]))
    return builder.build()


def _stopword_share(language: str, text: str) -> float:
    words = len(_stopword_pipeline(None).analyze(text))
    if words < _LEAST_WORDS:
        return 0.0
    return 1 - len(_stopword_pipeline(language).analyze(text)) / words


def _characters_and_pairs(match: re.Match[str]) -> str:
    run = match[0]
    pairs = (run[start : start + 2] for start in range(len(run) - 1))
    return f" {' '.join(run)} {' '.join(pairs)} "
