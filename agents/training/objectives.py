"""Objectives: what is made small, token by token, so that good turns become likelier.

An objective takes a ``TokenBatch`` and returns a loss for each token, of shape (rows, tokens),
exactly 0 where the policy drew none; ``aggregate`` makes one number of it. ``kl``, ``entropy`` and
``llds`` are what may be added. An episode whose advantages are all 0 teaches nothing: ``grpo``
drops groups of such, which is the dynamic sampling of DAPO.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ...corpora.errors import ConfigurationError
from .regularisers import entropy, kl, llds
from .token_batch import (
    LOG_LIMIT,
    TokenBatch,
    aggregate,
    episode_units,
    kept,
    log_ratios,
    turn_units,
    unit_sums,
)

__all__ = [
    "OBJECTIVES",
    "Objective",
    "TokenBatch",
    "aggregate",
    "dapo",
    "dppo",
    "entropy",
    "gspo",
    "kl",
    "llds",
    "ppo_clip",
    "reinforce",
    "sapo",
    "turn_ppo",
]

Objective = Callable[[TokenBatch], Tensor]

_MOST_WEIGHT = 20.0


def reinforce(batch: TokenBatch) -> Tensor:
    """Return ``-A log p``, the plain policy gradient, for tokens that this policy drew.

    REINFORCE (Williams 1992). Without a ratio it is right only for the first update on a batch.
    """
    return -kept(batch, batch.advantages) * kept(batch, batch.log_probs)


def ppo_clip(batch: TokenBatch, *, low: float = 0.2, high: float = 0.2) -> Tensor:
    """Return ``-min(r A, clip(r, 1 - low, 1 + high) A)`` with the ratio ``r`` of each token.

    PPO (Schulman et al. 2017, arXiv:1707.06347, equation 7), as GRPO uses it.

    Args:
        batch: The tokens.
        low: How far below 1 a ratio still counts.
        high: How far above 1.
    """
    return _clipped(batch, log_ratios(batch), low, high)


def dapo(batch: TokenBatch, *, low: float = 0.2, high: float = 0.28) -> Tensor:
    """Return PPO's loss with a higher upper bound, which leaves room for unlikely tokens.

    Clip-higher of DAPO (Yu et al. 2025, arXiv:2503.14476). Its token mean is
    ``aggregate(how="token")``.

    Args:
        batch: The tokens.
        low: How far below 1 a ratio still counts.
        high: How far above 1.
    """
    return _clipped(batch, log_ratios(batch), low, high)


def gspo(
    batch: TokenBatch,
    *,
    low: float = 3e-4,
    high: float = 4e-4,
    unit: Literal["episode", "segment"] = "episode",
) -> Tensor:
    """Return PPO's loss with one ratio for a whole sequence, the geometric mean of its tokens'.

    GSPO (Zheng et al. 2025, arXiv:2507.18071) in its form GSPO-token, as published code has it:
    the value is that of the sequence, the gradient of each token is by its own advantage. Where
    all turns have the same advantage, and episodes are averaged (``aggregate(how="episode")``),
    it is GSPO itself, value and gradient.

    Args:
        batch: The tokens.
        low: How far below 1 a ratio still counts.
        high: How far above 1.
        unit: What has a ratio: the episode, whatever rows it is split into, or each segment.
            Segments, with ``aggregate(how="episode")``, count by their share of the episode's
            tokens: CM-GSPO (Glasseek), which splits episodes where their context was compacted.

    Raises:
        ConfigurationError: ``unit`` is unknown.
    """
    if unit == "episode":
        units = episode_units(batch)
    elif unit == "segment":
        rows = torch.arange(len(batch.episodes), device=batch.mask.device)
        units = rows[:, None].expand_as(batch.mask)
    else:
        raise ConfigurationError(f"unit must be 'episode' or 'segment', got {unit!r:.60}")
    return _clipped(batch, _mean_log_ratios(batch, units), low, high)


def turn_ppo(batch: TokenBatch, *, low: float = 0.2, high: float = 0.2) -> Tensor:
    """Return PPO's loss with one ratio for a whole turn, the geometric mean of its tokens'.

    Turn-PPO, the turn-level importance sampling of ST-PPO (Li et al. 2025, arXiv:2511.20718,
    equation 4), without its critic and its correction of the clipping bias. Value and gradient
    are the paper's where all tokens of a turn have the same advantage, as they do here.

    Args:
        batch: The tokens.
        low: How far below 1 a ratio still counts.
        high: How far above 1.
    """
    return _clipped(batch, _mean_log_ratios(batch, turn_units(batch)), low, high)


def sapo(
    batch: TokenBatch,
    *,
    low: float = 0.2,
    high: float = 0.2,
    threshold: float = 0.8,
    weight: float = 0.1,
) -> Tensor:
    """Return PPO's loss plus a penalty for good tokens that became much unlikelier.

    Search Agent Policy Optimization (Li et al. 2026, arXiv:2603.10069), not the soft gate of the
    same name (arXiv:2511.20347). From its abstract: a KL penalty between the current and the old
    policy, on positive tokens alone, of low probability, where the policy has shifted too far.
    The form is that of its code as readers quote it, ``log p_old - log p`` where the advantage is
    0 or more and the ratio at most ``threshold``, and so "low probability" is read as a low ratio.
    Their mean is over the tokens of positive episodes; here it is whatever ``aggregate`` takes.
    Threshold and weight were not to be had; both are ours.

    Args:
        batch: The tokens.
        low: How far below 1 a ratio still counts.
        high: How far above 1.
        threshold: Which ratios are penalised, at most 1.
        weight: The weight of the penalty.
    """
    log_ratio = log_ratios(batch)
    advantages = kept(batch, batch.advantages)
    has_drifted = batch.mask & (advantages >= 0) & (log_ratio.exp() <= threshold)
    return _clipped(batch, log_ratio, low, high) + weight * torch.where(
        has_drifted, -log_ratio, 0.0
    )


def dppo(
    batch: TokenBatch, *, limit: float | None = None, divergence: Literal["tv", "kl"] = "tv"
) -> Tensor:
    """Return ``-r A``, without a gradient where the policy has moved too far that way.

    DPPO (Qi et al. 2026, arXiv:2602.04879): a token is masked if its advantage pushes its
    probability on in the direction in which it has moved, and the divergence between "this token"
    and "any other" under both policies is more than ``limit``: ``|p - p_old|`` for total
    variation, or the KL of the old from the new. Unlike a ratio's bounds this leaves unlikely
    tokens room, and likely ones little. As in published code, a ratio weighs at most 20.

    Args:
        batch: The tokens.
        limit: The most divergence; by default 0.15 for ``"tv"`` and 0.05 for ``"kl"``, what
            published scripts use.
        divergence: Which one is measured.

    Raises:
        ConfigurationError: The divergence is unknown.
    """
    if divergence not in ("tv", "kl"):
        raise ConfigurationError(f"divergence must be 'tv' or 'kl', got {divergence!r:.60}")
    log_ratio = log_ratios(batch)
    advantages = kept(batch, batch.advantages)
    new, old = kept(batch, batch.log_probs).detach().exp(), kept(batch, batch.old_log_probs).exp()
    if divergence == "tv":
        moved, most = (new - old).abs(), 0.15
    else:
        tiny = torch.finfo(new.dtype).eps
        others = ((1 - old).clamp(min=tiny) / (1 - new).clamp(min=tiny)).log()
        moved, most = (1 - old) * others - old * log_ratio.detach(), 0.05
    is_masked = (advantages * (new - old) > 0) & (moved > (most if limit is None else limit))
    weight = log_ratio.detach().clamp(-LOG_LIMIT, LOG_LIMIT).exp().clamp(max=_MOST_WEIGHT)
    surrogate = weight * (1 + log_ratio - log_ratio.detach())  # the weight, with its gradient
    return torch.where(batch.mask & ~is_masked, -surrogate * advantages, 0.0)


def _clipped(batch: TokenBatch, log_ratio: Tensor, low: float, high: float) -> Tensor:
    ratio = log_ratio.clamp(-LOG_LIMIT, LOG_LIMIT).exp()
    advantages = kept(batch, batch.advantages)
    bounded = ratio.clamp(1 - low, 1 + high)
    return kept(batch, -torch.minimum(ratio * advantages, bounded * advantages))


def _mean_log_ratios(batch: TokenBatch, units: Tensor) -> Tensor:
    """Return the mean log-ratio of each token's unit, with the gradient of the token's own."""
    own = log_ratios(batch)
    counts = unit_sums(batch.mask.to(own.dtype), units, batch.mask)
    mean = unit_sums(own.detach(), units, batch.mask) / counts.clamp(min=1)
    return mean + own - own.detach()


OBJECTIVES: dict[str, Objective] = {
    "ppo_clip": ppo_clip,
    "dapo": dapo,
    "gspo": gspo,
    "turn_ppo": turn_ppo,
    "sapo": sapo,
    "dppo": dppo,
    "reinforce": reinforce,
}
