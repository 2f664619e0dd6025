r"""Which literals every match of a pattern must contain.

The result is an AND of ORs: a line can match only if it holds, for each clause, at least one of
the clause's literals. Russ Cox, "Regular Expression Matching with a Trigram Index" (2012), calls
this the trigram query of a regular expression; here the literals are kept whole, so that any kind
of n-gram can be looked up. Nothing here decides a match. What is not surely understood gives no
literal, and a command without literals is run in full.

Literals are bytes with ASCII letters in lower case. A character whose case variants are not one
ASCII letter apart is left out where case is ignored. Four characters beyond ASCII match an ASCII
letter there (``folds_to_ascii``): a line that holds one of them has to be looked at whatever its
literals are, whenever ``ignores_case`` is set.
"""

import itertools
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "ANYTHING",
    "EMPTY",
    "MIN_LITERAL",
    "NOTHING_REQUIRED",
    "Part",
    "Requirement",
    "alternate",
    "any_of",
    "concatenate",
    "folds_to_ascii",
    "from_character",
    "repeat",
    "required_by",
]

MIN_LITERAL = 3  # bytes; shorter ones are in every block
_MAX_STRINGS = 16  # in one set of alternatives
_MAX_CLAUSES = 16
_MAX_REPEATED = 64  # bytes that a counted repetition is written out to

# What matches an ASCII letter when case is ignored: long s, the Kelvin sign (Unicode), and the
# Turkish i with and without a dot (the C library).
folds_to_ascii = tuple(character.encode() for character in "\u017f\u212a\u0130\u0131")

Clause = frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Requirement:
    """Hold an AND of ORs of literals; no clause means that any line may match."""

    clauses: tuple[tuple[bytes, ...], ...]
    ignores_case: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Hold what is known of a piece of a pattern.

    Attributes:
        exact: All strings that it can match, or None if they are too many or not known.
        clauses: What a match of it must contain, where ``exact`` is None.
        prefix: With one of these every match begins, where ``exact`` is None.
        suffix: With one of these every match ends, where ``exact`` is None.
    """

    exact: Clause | None
    clauses: tuple[Clause, ...] = ()
    prefix: Clause = frozenset({b""})
    suffix: Clause = frozenset({b""})


NOTHING_REQUIRED = Requirement((), False)
ANYTHING = Part(None)
EMPTY = Part(frozenset({b""}))
_NO_STRING = EMPTY.exact or frozenset()


def from_character(character: str, *, ignores_case: bool) -> Part:
    """Return what one character of a pattern, taken literally, can match."""
    if character in "\n\r\0" or (ignores_case and not _is_alone(character)):
        return ANYTHING
    return Part(frozenset({character.encode("utf-8").lower()}))


def _is_alone(character: str) -> bool:
    """Say whether no character but the two cases of an ASCII letter can match in its place."""
    if character.isascii():
        return True
    variants = {character.lower(), character.upper(), character.casefold()}
    return variants == {character} and unicodedata.category(character) == "Lo"


def concatenate(parts: Iterable[Part]) -> Part:
    """Return what the parts match, one after another."""
    run = _NO_STRING  # strings that end where the next part begins
    clauses: list[Clause] = []
    prefix: Clause | None = None
    for part in parts:
        joined = _join(run, part.prefix if part.exact is None else part.exact)
        if part.exact is not None and joined is not None:
            run = joined
            continue
        if joined is None:
            clauses.append(run)
            joined = part.prefix if part.exact is None else part.exact
            prefix = run if prefix is None else prefix
        if part.exact is None:
            clauses.extend((joined, *part.clauses))
            prefix = joined if prefix is None else prefix
            run = part.suffix
        else:
            run = part.exact
    if prefix is None:
        return Part(run)
    return Part(None, _useful([*clauses, run]), prefix, run)


def _join(first: Clause, second: Clause) -> Clause | None:
    """Return each of the first followed by each of the second, unless they are too many."""
    if len(first) * len(second) > _MAX_STRINGS:
        return None
    return frozenset(a + b for a in first for b in second)


def alternate(parts: Sequence[Part]) -> Part:
    """Return what one of the parts matches."""
    if len(parts) == 1:
        return parts[0]
    if all(part.exact is not None for part in parts):
        union: Clause = frozenset().union(*(part.exact or () for part in parts))
        if len(union) <= _MAX_STRINGS:
            return Part(union)
    branches = [_clauses_of(part) for part in parts]
    return Part(None, _distribute(branches))


def repeat(part: Part, least: int, most: int | None) -> Part:
    """Return what ``part{least,most}`` matches; ``most`` is None for no limit."""
    if least == 0:
        if most == 1 and part.exact is not None and len(part.exact) < _MAX_STRINGS:
            return Part(part.exact | {b""})
        return ANYTHING
    if part.exact is None:
        return part if least == most == 1 else Part(None, part.clauses, part.prefix, part.suffix)
    longest = max([1, *map(len, part.exact)])
    copies = max(1, min(least, _MAX_REPEATED // longest))
    written = concatenate([part] * copies)
    if copies == least == most or written.exact is None:
        return written if copies == least == most else Part(None, written.clauses)
    return Part(None, _useful([written.exact]), written.exact, written.exact)


def required_by(part: Part, *, ignores_case: bool) -> Requirement:
    """Return what a line must contain for the part to match in it."""
    clauses = {tuple(sorted(clause)) for clause in _clauses_of(part)}
    return Requirement(tuple(sorted(clauses)), ignores_case)


def any_of(requirements: Sequence[Requirement]) -> Requirement:
    """Return what a line must contain for one of several patterns to match in it."""
    if len(requirements) == 1:
        return requirements[0]
    branches = [tuple(frozenset(clause) for clause in each.clauses) for each in requirements]
    clauses = {tuple(sorted(clause)) for clause in _distribute(branches)}
    return Requirement(tuple(sorted(clauses)), any(each.ignores_case for each in requirements))


def _clauses_of(part: Part) -> tuple[Clause, ...]:
    return part.clauses if part.exact is None else _useful([part.exact])


def _useful(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    kept = (clause for clause in clauses if min(map(len, clause), default=0) >= MIN_LITERAL)
    return tuple(sorted(set(kept), key=_preference))[:_MAX_CLAUSES]


def _distribute(branches: Sequence[tuple[Clause, ...]]) -> tuple[Clause, ...]:
    """Return clauses that hold whichever branch does: one clause of each branch, united."""
    if not branches or not all(branches):
        return ()
    count = 1
    for branch in branches:
        count *= len(branch)
    if count > _MAX_CLAUSES:
        branches = [branch[:1] for branch in branches]
    return _useful(frozenset().union(*chosen) for chosen in itertools.product(*branches))


def _preference(clause: Clause) -> tuple[int, int, list[bytes]]:
    """Put clauses with long literals and few of them first."""
    return -min(map(len, clause)), len(clause), sorted(clause)
