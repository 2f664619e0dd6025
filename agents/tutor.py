"""The tutor: an oracle whose actions a policy can imitate."""

from typing import Any

from .oracle import OracleAgent

__all__ = ["TutorAgent"]

_VERBS = (" is ", " are ")


class TutorAgent(OracleAgent):
    """Plays a task's proof as one should who does not know it: it asks for what it wants to know.

    The oracle searches for "Ann Lee" where the tutor searches for "wife of Ann Lee": the part of
    the fact that the question gives away. So its queries follow from the question and from what
    was read, and a search that shows single sentences shows the one that is needed.
    """

    name = "tutor"

    def reset(self, observation: Any, info: dict[str, Any]) -> None:
        """Plan the searches, each for the known part of its fact."""
        super().reset(observation, info)
        queries = {
            (step.query, step.document): _asked(step.fact, step.query) for step in self._task.proof
        }
        for place, (query, document) in enumerate(self._steps):
            self._steps[place] = (queries.get((query, document), query), document)


def _asked(fact: str, query: str) -> str:
    """Return the part of a fact before its verb if it holds the query; else the query.

    Example:
        >>> _asked("The wife of Ann Lee is Bo Lee.", "Ann Lee")
        'wife of Ann Lee'
    """
    for verb in _VERBS:
        head, is_found, _ = fact.partition(verb)
        if is_found and query and query in head:
            return head.removeprefix("The ")
    return query
