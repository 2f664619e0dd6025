"""The tokens of a batch, and what is summed and averaged over them."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...corpora.errors import ConfigurationError

__all__ = [
    "LOG_LIMIT",
    "TokenBatch",
    "aggregate",
    "episode_units",
    "kept",
    "log_ratios",
    "turn_units",
    "unit_sums",
]

LOG_LIMIT = 20.0  # of a logarithm that is raised: e^20 says enough, e^89 is infinite in float32


@dataclass(frozen=True)
class TokenBatch:
    """The tokens of a batch; a row is one segment of an episode, padded on the right.

    What stands where the mask is False is never read, nor given a gradient: NaN does no harm.

    Attributes:
        log_probs: Of each token under the policy that is trained, (rows, tokens), with gradient.
        old_log_probs: Under the policy that drew them, (rows, tokens).
        advantages: Of each token, that of its turn, (rows, tokens).
        mask: Whether the policy drew the token, bool, (rows, tokens).
        turns: The number of each token's turn within its episode, -1 where the mask is False;
            int64, (rows, tokens).
        episodes: Which episode each row belongs to; rows of one episode share it; int64, (rows,).
        reference_log_probs: Under a frozen reference policy, (rows, tokens), or None.
    """

    log_probs: Tensor
    old_log_probs: Tensor
    advantages: Tensor
    mask: Tensor
    turns: Tensor
    episodes: Tensor
    reference_log_probs: Tensor | None = None


def aggregate(
    losses: Tensor,
    batch: TokenBatch,
    how: Literal["token", "episode", "constant"] = "token",
    *,
    length: int | None = None,
) -> Tensor:
    """Return one number; 0.0, with a gradient path, if the policy drew no token at all.

    Args:
        losses: Of each token, (rows, tokens).
        batch: The tokens they belong to.
        how: ``"token"``: the mean of all tokens (DAPO, Yu et al. 2025, arXiv:2503.14476).
            ``"episode"``: the mean of the episodes' means (GRPO, Shao et al. 2024,
            arXiv:2402.03300). ``"constant"``: the sum, over the number of episodes times
            ``length`` (Dr. GRPO, Liu et al. 2025, arXiv:2503.20783). Episodes without a token do
            not count.
        length: The constant, in tokens: for example the most that an episode may have.

    Raises:
        ConfigurationError: ``how`` is unknown, or is ``"constant"`` without a ``length``.
    """
    each = kept(batch, losses)
    if how == "token":
        return each.sum() / batch.mask.sum().clamp(min=1)
    units = episode_units(batch)
    counts = unit_sums(batch.mask.to(each.dtype), units, batch.mask)
    shares = torch.where(batch.mask, 1 / counts.clamp(min=1), 0.0)
    episodes = shares.sum().round().clamp(min=1)  # each episode's shares add up to 1
    if how == "episode":
        return (each * shares).sum() / episodes
    if how != "constant":
        raise ConfigurationError(f"how must be 'token', 'episode' or 'constant', got {how!r:.60}")
    if length is None or length < 1:
        raise ConfigurationError(
            f"how='constant' needs a length of at least 1 token, got {length!r:.60}"
        )
    return each.sum() / (episodes * length)


def kept(batch: TokenBatch, values: Tensor) -> Tensor:
    """Return the values with zeros where the mask is False, whatever stood there."""
    return torch.where(batch.mask, values, 0.0)


def log_ratios(batch: TokenBatch) -> Tensor:
    """Return ``log p - log p_old`` of each token, 0 where the mask is False."""
    return kept(batch, batch.log_probs) - kept(batch, batch.old_log_probs)


def episode_units(batch: TokenBatch) -> Tensor:
    """Return the number of each token's episode, (rows, tokens), for ``unit_sums``."""
    return _numbered(batch.episodes)[:, None].expand_as(batch.mask)


def turn_units(batch: TokenBatch) -> Tensor:
    """Return a number for each token's turn, each turn of each episode its own."""
    turns = torch.where(batch.mask, batch.turns, 0)
    width = turns.max() + 1 if turns.numel() else 1
    return _numbered(episode_units(batch) * width + turns)


def unit_sums(values: Tensor, units: Tensor, mask: Tensor) -> Tensor:
    """Return for each token the sum over its unit; 0 where the mask is False.

    Args:
        values: Of each token, (rows, tokens).
        units: Which unit each belongs to, from 0, below the number of tokens.
        mask: Which tokens count, bool.
    """
    sums = values.new_zeros(max(values.numel(), 1)).index_add(0, units[mask], values[mask])
    return torch.where(mask, sums[torch.where(mask, units, 0)], 0.0)


def _numbered(keys: Tensor) -> Tensor:
    """Number the different keys from 0."""
    numbers: Tensor = torch.unique(keys, return_inverse=True)[1]
    return numbers
