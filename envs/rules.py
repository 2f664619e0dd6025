"""The rules of the game, apart from what there is to find."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, Self, TypedDict

from ..corpora.errors import ConfigurationError, raise_unknown
from .rewards import RewardTerm, resolve_rewards
from .scoring import Convention, check_convention

__all__ = ["RuleOptions", "Rules", "check_at_least", "check_positive"]

_MIN_OBSERVATION_CHARS = 1_000


class RuleOptions(TypedDict, total=False):
    """The keyword arguments that every search environment takes; ``Rules`` says what they mean."""

    max_turns: int
    max_observation_chars: int
    rewards: str | Sequence[RewardTerm]
    on_invalid: Literal["remind", "end"]
    last_turn: Literal["any", "answer"]
    convention: Convention


@dataclass(frozen=True, slots=True)
class Rules:
    """Budget, reward and manners.

    Attributes:
        max_turns: The turn budget, at least 2.
        max_observation_chars: The longest observation, at least 1,000 characters.
        rewards: A preset (``exact-match``, ``f1``, ``format-f1``, ``search-r1-v0.3``) or reward
            terms.
        on_invalid: ``remind`` makes an invalid call cost a turn (Search-R1); ``end`` ends the
            episode with it (PhantomEnvironments).
        last_turn: ``answer`` announces the last turn and takes nothing but an answer in it.
        convention: How answers are normalised; see ``scoring``.
        terms: The reward terms that ``rewards`` stands for.

    Raises:
        ConfigurationError: A value is out of its range.
    """

    max_turns: int = 8
    max_observation_chars: int = 8_000
    rewards: str | Sequence[RewardTerm] = "exact-match"
    on_invalid: Literal["remind", "end"] = "remind"
    last_turn: Literal["any", "answer"] = "any"
    convention: Convention = "seekgym"
    terms: tuple[RewardTerm, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Check every value and resolve the reward terms."""
        check_at_least("max_turns", self.max_turns, 2)
        check_at_least("max_observation_chars", self.max_observation_chars, _MIN_OBSERVATION_CHARS)
        if self.on_invalid not in ("remind", "end"):
            raise_unknown("on_invalid", self.on_invalid, ("remind", "end"))
        if self.last_turn not in ("any", "answer"):
            raise_unknown("last_turn", self.last_turn, ("any", "answer"))
        check_convention(self.convention)
        object.__setattr__(self, "terms", resolve_rewards(self.rewards))

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the rules of some keyword arguments.

        Raises:
            ConfigurationError: A name is unknown, or a value is out of its range.
        """
        for name in options:
            if name not in RuleOptions.__annotations__:
                raise_unknown(
                    "argument", name, RuleOptions.__annotations__, " beside those of its own class"
                )
        return cls(**options)

    def is_answer_turn(self, turn: int) -> bool:
        """Tell whether a turn takes nothing but an answer."""
        return self.last_turn == "answer" and turn == self.max_turns


def check_at_least(name: str, value: int, least: int) -> None:
    """Raise a ConfigurationError unless the value is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ConfigurationError(
            f"{name} must be a whole number of at least {least}, got {value!r}"
        )


def check_positive(name: str, value: float) -> None:
    """Raise a ConfigurationError unless the value is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < math.inf:
        raise ConfigurationError(f"{name} must be a finite number above 0, got {value!r}")
