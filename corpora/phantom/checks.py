"""A second look at definite questions: does every description fit one person?"""

from .grammar import Question
from .people import People

__all__ = ["is_definite"]


def is_definite(people: People, question: Question) -> bool:
    """Tell whether every description of a question fits exactly one person at every step.

    Worked out from sets of people, not along the walk that the question was drawn by.
    """
    for chain in question.chains:
        start = chain.people[0]
        reached = [start]
        if chain.constraints:
            reached = people.alike(start, chain.constraints).tolist()
        expected = iter(chain.people[1:])
        if reached != [start]:
            return False
        for relation, chosen_by in zip(chain.relations, chain.filters, strict=True):
            person = next(expected)
            reached = people.kinship.related(relation, reached).tolist()
            if chosen_by:
                value = people.value(person, chosen_by)
                reached = [other for other in reached if people.value(other, chosen_by) == value]
            if reached != [person]:
                return False
    return True
