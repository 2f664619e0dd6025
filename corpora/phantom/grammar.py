"""The grammar of questions: what can be asked, how it is put into words, how hard it is.

After the grammar of PhantomWiki (Gong et al. 2025), with constraints and comparisons as in
PhantomEnvironments (arXiv:2609.40221)::

    question    -> "Who is" person "?"                                        chain
                 | "What is the" attribute "of" person "?"                    attribute
                 | "Who was born first:" person ", or" person "?"              comparison
                 | "Which" relation "of" person "is the oldest?"              superlative
                 | "How many" relations "does" person "have?"                 count
                 | "Is the" attribute "of" person value "?"                   yes_no
                 | "Who is" person "?"    where there is no such person       unanswerable
    person      -> name | "the person whose" constraints
                 | "the" relation ["(the one whose" constraint ")"] "of" person
    constraints -> attribute "is" value ["and whose" constraints]
"""

from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigurationError, raise_unknown
from .kinship import EASY_RELATIONS, RELATIONS, relation_steps
from .people import People
from .vocabulary import ATTRIBUTES

__all__ = ["KINDS", "Chain", "Question", "QuestionKind", "QuestionSettings", "Semantics"]

QuestionKind = Literal[
    "chain", "attribute", "comparison", "superlative", "count", "yes_no", "unanswerable"
]
Semantics = Literal["definite", "set"]
KINDS = ("chain", "attribute", "comparison", "superlative", "count", "yes_no", "unanswerable")
_LEAST_HOPS = {"comparison": 2, "superlative": 3}
_SET_KINDS = ("chain", "attribute", "count")
_MOST_HOPS, _MOST_CONSTRAINTS = 20, 3


@dataclass(frozen=True, slots=True)
class QuestionSettings:
    """Which questions are wanted.

    Attributes:
        hops: The fewest and the most facts to join, 1 to 20. Each relation that articles state
            is one hop, so "grandmother" is two; an attribute that is asked about is one more.
            A constraint is none.
        constraints: The fewest and the most attribute filters in a question, 0 to 3.
        kinds: Which kinds, of ``KINDS``. Counts can be hacked by always answering the most
            common number: keep them for evaluation.
        relations: ``"easy"`` (weight 1), ``"all"``, or the names of relations.
        semantics: ``"definite"``: every description along the way denotes exactly one person,
            and there is one answer. ``"set"``: as in PhantomWiki, a description denotes all who
            fit, and every answer is asked for; there are then only chains, attributes and
            counts, and the one constraint there can be stands in place of the name.
        documents: The most articles that a proof may take, at least 1.

    Raises:
        ConfigurationError: A value is outside its range.
    """

    hops: tuple[int, int] = (1, 6)
    constraints: tuple[int, int] = (0, 0)
    kinds: tuple[QuestionKind, ...] = ("chain", "attribute")
    relations: Literal["easy", "all"] | tuple[str, ...] = "all"
    semantics: Semantics = "definite"
    documents: int = 2_000

    def __post_init__(self) -> None:
        """Check every value."""
        if self.semantics not in ("definite", "set"):
            raise_unknown("semantics", self.semantics, ("definite", "set"))
        if type(self.documents) is not int or self.documents < 1:
            raise ConfigurationError(
                f"documents must be a whole number of at least 1, got {self.documents!r}"
            )
        _check_range("hops", self.hops, 1, _MOST_HOPS)
        is_set = self.semantics == "set"
        _check_range("constraints", self.constraints, 0, 1 if is_set else _MOST_CONSTRAINTS)
        known = _SET_KINDS if is_set else KINDS
        for kind in self.kinds:
            if kind not in known:
                raise_unknown("kind", kind, known)
        if not self.relation_names:
            raise ConfigurationError("relations must name at least one relation, got none")
        for name in self.relation_names:
            if name not in RELATIONS or not RELATIONS[name].weight:
                raise_unknown("relation", name, [r for r in RELATIONS if RELATIONS[r].weight])
        if not self.cells:
            raise ConfigurationError(
                f"kinds {self.kinds!r} have no question of {self.hops[0]} to {self.hops[1]} hops; "
                "a comparison needs at least 2 hops and a superlative 3"
            )

    @property
    def relation_names(self) -> tuple[str, ...]:
        """The names of the relations in use, in the order of the table."""
        if self.relations == "easy":
            return EASY_RELATIONS
        if self.relations == "all":
            return tuple(name for name, relation in RELATIONS.items() if relation.weight)
        return tuple(self.relations)

    @property
    def cells(self) -> list[tuple[QuestionKind, int, int]]:
        """The cells to balance: (kind, hops, constraints)."""
        return [
            (kind, hops, constraints)
            for kind in sorted(set(self.kinds), key=KINDS.index)
            for hops in range(self.hops[0], self.hops[1] + 1)
            for constraints in range(self.constraints[0], self.constraints[1] + 1)
            if hops >= _LEAST_HOPS.get(kind, 1)
        ]


def _check_range(name: str, value: tuple[int, int], low: int, high: int) -> None:
    if not isinstance(value, tuple) or [type(end) for end in value] != [int, int]:
        raise ConfigurationError(f"{name} must be a pair of whole numbers, got {value!r}")
    if not low <= value[0] <= value[1] <= high:
        raise ConfigurationError(
            f"{name} must be (fewest, most) with {low} <= fewest <= most <= {high}, got {value!r}"
        )


@dataclass(frozen=True, slots=True)
class Chain:
    """A description of a person that starts from a name or from attributes.

    Attributes:
        people: Who is passed, from the start to the person described: one more than relations.
            The start alone where the description denotes all who fit it.
        relations: The relations that lead from each to the next.
        filters: For each relation the attribute that picks one of several, or "".
        constraints: The attributes that describe the start; empty where it is named.
    """

    people: tuple[int, ...]
    relations: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        """The person described."""
        return self.people[-1]

    @property
    def hops(self) -> int:
        """How many stated relations are joined."""
        return sum([len(relation_steps(name)) for name in self.relations])

    def words(self, world: People) -> str:
        """Put the description into words."""
        start = self.people[0]
        if self.constraints:
            told = [_constraint(world, start, attribute) for attribute in self.constraints]
            text = "the person whose " + " and whose ".join(told)
        else:
            text = world.name(start)
        for place, relation in enumerate(self.relations):
            chosen_by = self.filters[place]
            only = ""
            if chosen_by:
                only = f" (the one whose {_constraint(world, self.people[place + 1], chosen_by)})"
            text = f"the {RELATIONS[relation].label}{only} of {text}"
        return text


@dataclass(frozen=True, slots=True)
class Question:
    """A question before it is put into words.

    Attributes:
        kind: One of ``KINDS``.
        chains: The people described: two for a comparison, else one.
        asked: The attribute, or the relation, that is asked about; "" where there is none.
        value: What a yes-or-no question supposes; "oldest" or "youngest" for a superlative.
        choices: The people to choose from, for a superlative and a count.
        is_set: Every answer is asked for, and a description denotes all who fit it.
    """

    kind: QuestionKind
    chains: tuple[Chain, ...]
    asked: str = ""
    value: str = ""
    choices: tuple[int, ...] = ()
    is_set: bool = False

    @property
    def hops(self) -> int:
        """How many facts are joined."""
        steps = sum([chain.hops for chain in self.chains])
        if self.kind == "comparison":
            return steps + 2
        if self.kind == "superlative":
            return steps + 1 + len(self.choices)
        if self.kind == "count":
            return steps + len(relation_steps(self.asked))
        return steps if self.kind == "chain" else steps + 1

    @property
    def constraints(self) -> int:
        """How many attribute filters there are."""
        return sum(
            [len(chain.constraints) + sum(map(bool, chain.filters)) for chain in self.chains]
        )

    @property
    def difficulty(self) -> int:
        """The sum of the weights of PhantomWiki: 1 to 5 a relation, 1 an attribute or count."""
        relations = [name for chain in self.chains for name in chain.relations]
        if self.kind in ("superlative", "count", "unanswerable"):
            relations.append(self.asked)
        extra = {"attribute": 1, "yes_no": 1, "count": 1, "superlative": 1, "comparison": 2}
        weights = sum([RELATIONS[name].weight for name in relations])
        return weights + self.constraints + extra.get(self.kind, 0)

    def words(self, world: People) -> str:
        """Put the question into words."""
        described = [chain.words(world) for chain in self.chains]
        who = described[0]
        match self.kind:
            case "chain":
                return f"Who is {who}?"
            case "attribute":
                return f"What is the {ATTRIBUTES[self.asked].name} of {who}?"
            case "comparison":
                return f"Who was born first: {who}, or {described[1]}?"
            case "superlative":
                return f"Which {RELATIONS[self.asked].label} of {who} is the {self.value}?"
            case "count":
                return f"How many {RELATIONS[self.asked].plural} does {who} have?"
            case "yes_no":
                return f"Is the {ATTRIBUTES[self.asked].name} of {who} {self.value}?"
            case "unanswerable":
                return f"Who is the {RELATIONS[self.asked].label} of {who}?"


def _constraint(world: People, person: int, attribute: str) -> str:
    return f"{ATTRIBUTES[attribute].name} is {world.value(person, attribute)}"
