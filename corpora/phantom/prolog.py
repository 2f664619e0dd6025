"""A world and its questions as Prolog, in the vocabulary of PhantomWiki."""

from collections.abc import Iterator

from .grammar import Question
from .kinship import RELATIONS
from .people import People
from .vocabulary import ATTRIBUTES

__all__ = ["prolog_facts", "prolog_query", "prolog_rules"]

_PREDICATES = {"occupation": "job", "birth": "dob"}  # the others are named as attributes are


def prolog_facts(world: People) -> Iterator[str]:
    """Give one clause a fact, grouped by predicate."""
    kinship, everyone = world.kinship, range(len(world))
    for person in everyone:
        for parent in kinship.stated("parent", person):
            yield f'parent("{world.name(person)}", "{world.name(parent)}").'
    for person in everyone:
        gender = "female" if world.is_female(person) else "male"
        yield f'gender("{world.name(person)}", "{gender}").'
    for person in everyone:
        for friend in kinship.stated("friend", person):
            if person < friend:
                yield f'friend_("{world.name(person)}", "{world.name(friend)}").'
    for attribute in ATTRIBUTES:
        predicate = _PREDICATES.get(attribute, attribute)
        for person in everyone:
            yield f'{predicate}("{world.name(person)}", "{world.value(person, attribute)}").'


def prolog_rules() -> Iterator[str]:
    """Give one clause a rule: the table of relations in Prolog's words."""
    yield 'female(X) :- gender(X, "female").'
    yield 'male(X) :- gender(X, "male").'
    yield "friend(X, Y) :- friend_(X, Y)."
    yield "friend(X, Y) :- friend_(Y, X)."
    yield "child(X, Y) :- parent(Y, X)."
    for relation in RELATIONS.values():
        if relation.parts:
            names = ["X", *"ABC"[: len(relation.parts) - 1], "Y"]
            goals = [
                f"{part}({names[place]}, {names[place + 1]})"
                for place, part in enumerate(relation.parts)
            ]
            if relation.is_female is not None:
                goals.append(f"{'female' if relation.is_female else 'male'}(Y)")
            if relation.is_irreflexive:
                goals.append("X \\= Y")
            yield f"{relation.name}(X, Y) :- {', '.join(goals)}."


def prolog_query(world: People, question: Question) -> tuple[str, str]:
    """Return the goals of a question in ``"set"`` semantics, and the variable of its answers."""
    chain = question.chains[0]
    start = chain.people[0]
    goals = []
    here = f'"{world.name(start)}"'
    if chain.constraints:
        here = "X0"
        for name in chain.constraints:
            goals.append(f'{_PREDICATES.get(name, name)}(X0, "{world.value(start, name)}")')
    for place, relation in enumerate(chain.relations, start=1):
        goals.append(f"{relation}({here}, X{place})")
        here = f"X{place}"
    if question.kind == "attribute":
        goals.append(f"{_PREDICATES.get(question.asked, question.asked)}({here}, Answer)")
    elif question.kind == "count":
        goals.append(f"aggregate_all(count, distinct({question.asked}({here}, _)), Answer)")
    else:
        return ", ".join(goals), here
    return ", ".join(goals), "Answer"
