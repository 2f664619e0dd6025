"""Draw tokens, each sequence with a generator of its own."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...corpora.errors import ConfigurationError

__all__ = ["Sampler", "log_softmax"]

_FIRST = 64


@dataclass(frozen=True, slots=True)
class Sampler:
    """How a token is drawn from logits.

    Drawn by the Gumbel-max trick: the token whose log-probability plus noise is highest. A
    sequence's noise comes from its own generator, so that it does not depend on what else is in
    the batch, and rounding in the logits changes a draw only where two tokens are as good as tied.

    Attributes:
        temperature: Divides the logits; 0 takes the most probable token.
        top_k: Draw only from so many most probable tokens; 0 for no limit.
        top_p: Draw only from the most probable tokens that together have this probability.

    Raises:
        ConfigurationError: A value is out of its range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        """Check the values."""
        if not 0 <= self.temperature < math.inf:
            raise ConfigurationError(f"temperature must be at least 0, got {self.temperature}")
        if self.top_k < 0:
            raise ConfigurationError(f"top_k must be at least 0, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ConfigurationError(f"top_p must be above 0 and at most 1, got {self.top_p}")

    @property
    def scale(self) -> float:
        """What logits are divided by before log-probabilities are recorded."""
        return self.temperature or 1.0

    def draw(
        self,
        log_probs: np.ndarray,
        generator: np.random.Generator,
        is_allowed: Callable[[int], bool] | None = None,
    ) -> int | None:
        """Draw one token.

        Args:
            log_probs: Of shape (vocabulary,), at the sampling temperature.
            generator: Draws the noise.
            is_allowed: Tells which tokens may be drawn; the distribution over them is the
                given one, renormalised.

        Returns:
            A token id, or None if none is allowed.
        """
        scores = self._truncated(log_probs) if is_allowed is None else log_probs
        if self.temperature > 0:
            noise = generator.standard_exponential(len(scores), dtype=np.float32)
            scores = scores - np.log(np.maximum(noise, np.finfo(np.float32).tiny))
        if is_allowed is None:
            return int(np.argmax(scores))
        best = np.argpartition(-scores, min(_FIRST, len(scores) - 1))[:_FIRST]
        for token in best[np.argsort(-scores[best], kind="stable")]:
            if is_allowed(int(token)):
                return int(token)
        for token in np.argsort(-scores, kind="stable"):
            if is_allowed(int(token)):
                return int(token)
        return None

    def _truncated(self, log_probs: np.ndarray) -> np.ndarray:
        if self.top_k and self.top_k < len(log_probs):
            least = np.partition(log_probs, -self.top_k)[-self.top_k]
            log_probs = np.where(log_probs < least, -np.inf, log_probs)
        if self.top_p < 1:
            order = np.argsort(-log_probs, kind="stable")
            before = np.cumsum(np.exp(log_probs[order])) - np.exp(log_probs[order])
            log_probs = log_probs.copy()
            log_probs[order[before >= self.top_p]] = -np.inf
        return log_probs


def log_softmax(logits: np.ndarray, scale: float) -> np.ndarray:
    """Return log-probabilities of logits divided by a scale, along the last axis.

    Example:
        >>> log_softmax(np.array([0.0, 0.0]), 1.0).round(3).tolist()
        [-0.693, -0.693]
    """
    scaled = logits / np.float32(scale)
    shifted = scaled - scaled.max(axis=-1, keepdims=True)
    normalised: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normalised
