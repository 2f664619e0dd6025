"""The roles of a team: what a leader, a searcher and an answerer may do."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...corpora.documents import Corpus
from ...corpora.retrieval import Hit
from ..actions import Parameter, ToolSignature
from ..tools import MAX_QUERY_CHARS, Tool, ToolResult, titles

__all__ = [
    "WORD_CHARS",
    "Assign",
    "HandOver",
    "Report",
    "Role",
    "cut_words",
    "role_of",
    "sub_questions",
]

Role = Literal["leader", "searcher", "answerer"]
WORD_CHARS = 24  # a word of a report is longer than this only at the cost of others


def role_of(agent: str) -> Role:
    """Return the role that an agent's name says.

    Example:
        >>> role_of("searcher_2")
        'searcher'
    """
    name = agent.rpartition("_")[0]
    return "leader" if name == "leader" else "searcher" if name == "searcher" else "answerer"


def cut_words(text: str, limit: int) -> str:
    """Return at most ``limit`` words of a text, and at most 24 characters a word on average.

    Example:
        >>> cut_words("one two three", 2)
        'one two …'
    """
    words = text.split()
    cut = text.strip() if len(words) <= limit else " ".join(words[:limit]) + " …"
    return cut[: limit * WORD_CHARS]


def sub_questions(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return what each searcher is assigned by a call of ``assign``; blank is not assigned."""
    asked = ((agent, " ".join(str(text).split())) for agent, text in arguments.items())
    given = {agent: text[:MAX_QUERY_CHARS] for agent, text in asked if text}
    return dict(sorted(given.items(), key=lambda item: (len(item[0]), item[0])))


class Assign(Tool):
    """Sends sub-questions to searchers: one parameter for each, left out or empty for none.

    Args:
        searchers: How many there are.
        corpus: Where the documents are, whose titles make plausible samples.
    """

    def __init__(self, searchers: int, corpus: Corpus) -> None:
        examples = titles(corpus)
        self.signature = ToolSignature(
            "assign",
            "Send a sub-question to each searcher that is to work in this round.",
            tuple(
                Parameter(
                    f"searcher_{number}",
                    f"The sub-question of searcher_{number}; leave it out for none.",
                    is_required=False,
                    examples=examples,
                )
                for number in range(searchers)
            ),
        )

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Take the sub-questions; at least one is needed."""
        asked = sub_questions(arguments)
        if not asked:
            example = "assign(searcher_0='...')"
            return ToolResult(f"Nobody was assigned anything: {example}.", error="no_assignment")
        return ToolResult(f"Assigned to {', '.join(asked)}.")


class HandOver(Tool):
    """Lets the answerer answer from the question and the reports."""

    signature = ToolSignature("hand_over", "Let the answerer answer from the reports.", ())

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Hand over."""
        return ToolResult("Handed over to the answerer.")


class Report(Tool):
    """Ends a searcher's assignment with what it found.

    Args:
        words: The longest report; the rest is cut.
    """

    def __init__(self, words: int) -> None:
        self.words = words
        self.signature = ToolSignature(
            "report",
            f"Tell the leader what you found, in at most {words} words, and end your assignment.",
            (Parameter("text", "What you found, in whole sentences."),),
        )

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Take the report; an empty one is taken too, and named."""
        is_empty = not arguments["text"].strip()
        return ToolResult("The report was sent.", error="empty_report" if is_empty else None)
