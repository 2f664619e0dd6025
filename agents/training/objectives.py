"""Objectives: what is made small, token by token, so that good turns become likelier.

An objective takes a ``TokenBatch`` and returns a loss for each token, of shape (rows, tokens),
exactly 0 where the policy drew none; ``aggregate`` makes one number of it. Whatever stands in
masked places, NaN too, is neither read nor given a gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...corpora.errors import ConfigurationError

__all__ = [
    "OBJECTIVES",
    "Objective",
    "TokenBatch",
    "aggregate",
    "dapo",
    "entropy",
    "gspo",
    "kl",
    "llds",
    "ppo_clip",
    "reinforce",
]

_LOG_LIMIT = 20.0  # e^20: a ratio beyond it says no more, and e^89 is infinite in float32


@dataclass(frozen=True)
class TokenBatch:
    """The tokens of a batch; a row is one segment of an episode, padded on the right.

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


Objective = Callable[[TokenBatch], Tensor]


def reinforce(batch: TokenBatch) -> Tensor:
    """Return ``-A log p``, the plain policy gradient, for tokens that this policy drew.

    REINFORCE (Williams 1992). Without a ratio it is right only for the first update on a batch.
    """
    return -_kept(batch, batch.advantages) * _kept(batch, batch.log_probs)


def ppo_clip(batch: TokenBatch, *, low: float = 0.2, high: float = 0.2) -> Tensor:
    """Return ``-min(r A, clip(r, 1 - low, 1 + high) A)`` with the ratio ``r`` of each token.

    PPO (Schulman et al. 2017, arXiv:1707.06347, equation 7), as GRPO uses it.

    Args:
        batch: The tokens.
        low: How far below 1 a ratio still counts.
        high: How far above 1.
    """
    return _clipped(batch, _log_ratio(batch), low, high)


def dapo(batch: TokenBatch, *, low: float = 0.2, high: float = 0.28) -> Tensor:
    """Return PPO's loss with a higher upper bound, which leaves room for unlikely tokens.

    Clip-higher of DAPO (Yu et al. 2025, arXiv:2503.14476, equation 10). Its token mean is
    ``aggregate(how="token")``, its dynamic sampling ``GroupVariance`` of the rollouts.

    Args:
        batch: The tokens.
        low: How far below 1 a ratio still counts.
        high: How far above 1.
    """
    return _clipped(batch, _log_ratio(batch), low, high)


def gspo(
    batch: TokenBatch,
    *,
    low: float = 3e-4,
    high: float = 4e-4,
    unit: Literal["episode", "segment"] = "episode",
) -> Tensor:
    """Return PPO's loss with one ratio for a whole sequence: the geometric mean of its tokens'.

    GSPO (Zheng et al. 2025, arXiv:2507.18071), in the form GSPO-token (equations 13 and 14): its
    value is that of the sequence, its gradient flows to each token by that token's advantage.
    Where all turns have the same advantage and episodes are averaged
    (``aggregate(how="episode")``), it is GSPO itself.

    Args:
        batch: The tokens.
        low: How far below 1 a ratio still counts.
        high: How far above 1.
        unit: What has a ratio: the episode, whatever rows it is split into, or each segment.
            With segments and ``aggregate(how="episode")`` a segment counts by its share of the
            episode's tokens, as in CM-GSPO, which splits episodes where they are compacted.
    """
    rows = torch.arange(len(batch.episodes), device=batch.mask.device)
    units = batch.episodes if unit == "episode" else rows
    return _clipped(batch, _unit_log_ratio(batch, _numbered(units)[:, None]), low, high)


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
        how: ``"token"``: the mean of all tokens (DAPO, arXiv:2503.14476, equation 8).
            ``"episode"``: the mean of the episodes' means (GRPO, arXiv:2402.03300, equation 3).
            ``"constant"``: the sum, over the number of episodes times ``length`` (Dr. GRPO,
            arXiv:2503.20783). Episodes without a token do not count.
        length: The constant in tokens, for example the most that an episode may have.

    Raises:
        ConfigurationError: ``how`` is unknown, or is ``"constant"`` without a ``length``.
    """
    kept = _kept(batch, losses)
    counts = batch.mask.sum(dim=1)
    if how == "token":
        return kept.sum() / counts.sum().clamp(min=1)
    units = _numbered(batch.episodes)
    per_episode = counts.new_zeros(len(units)).index_add(0, units, counts)
    episodes = (per_episode > 0).sum().clamp(min=1)
    if how == "episode":
        return (kept.sum(dim=1) / per_episode[units].clamp(min=1)).sum() / episodes
    if how != "constant":
        raise ConfigurationError(f"how must be 'token', 'episode' or 'constant', got {how!r:.60}")
    if length is None or length < 1:
        raise ConfigurationError(
            f"how='constant' needs a length of at least 1 token, got {length!r:.60}"
        )
    return kept.sum() / (episodes * length)


def kl(
    log_probs: Tensor,
    reference_log_probs: Tensor,
    *,
    estimator: Literal["k1", "k2", "k3"] = "k3",
) -> Tensor:
    """Return an estimate of KL(policy, reference) for each token that the policy drew.

    With ``d = log p - log q``: k1 is ``d``, k2 is ``d^2 / 2``, k3 is ``e^-d - 1 + d`` (Schulman
    2020, "Approximating KL divergence"); k3 is that of GRPO (arXiv:2402.03300, equation 4). k1 and
    k3 have the KL as their mean, k2 and k3 are never negative; as a loss, only k2 has the KL's
    gradient as the mean of its own.

    Args:
        log_probs: Of the tokens under the policy.
        reference_log_probs: Under the reference.
        estimator: Which.

    Raises:
        ConfigurationError: The estimator is unknown.
    """
    difference = log_probs - reference_log_probs
    if estimator == "k1":
        return difference
    if estimator == "k2":
        return difference.square() / 2
    if estimator == "k3":
        back = (-difference).clamp(max=_LOG_LIMIT)
        return back.exp() - 1 - back
    raise ConfigurationError(f"estimator must be 'k1', 'k2' or 'k3', got {estimator!r:.60}")


def entropy(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the mean entropy in nats over the masked places; 0.0 if there is none.

    Args:
        logits: Of shape (..., vocabulary); minus infinity is a token that cannot be drawn.
        mask: Which places count, bool, of shape (...).
    """
    log_probs = torch.where(mask[..., None], logits, 0.0).log_softmax(dim=-1)
    log_probs = log_probs.clamp(min=torch.finfo(log_probs.dtype).min)
    each = -(log_probs.exp() * log_probs).sum(dim=-1)
    return torch.where(mask, each, 0.0).sum() / mask.sum().clamp(min=1)


def llds(
    batch: TokenBatch, *, answer_tokens: Tensor | None = None, answer_weight: float = 0.0
) -> Tensor:
    """Return ``max(0, log p_old - log p)`` for tokens of good turns that became unlikelier.

    LLDS (Deng et al. 2025, arXiv:2512.04220) keeps GRPO from unlearning right actions, which
    wrong episodes share. A token counts if its advantage is at least 0 and the summed
    log-probability of its turn fell. Weigh it, by 0.2 in the paper, and add it to the loss.

    Args:
        batch: The tokens.
        answer_tokens: Which tokens belong to answers, bool, (rows, tokens); the variant MA
            weighs them less.
        answer_weight: The weight of those.
    """
    log_ratio = _log_ratio(batch)
    sums = _unit_sums(log_ratio, _turn_units(batch), batch.mask)
    counts = batch.mask & (_kept(batch, batch.advantages) >= 0) & (sums < 0)
    penalty = torch.where(counts, (-log_ratio).clamp(min=0), 0.0)
    if answer_tokens is None:
        return penalty
    return torch.where(answer_tokens, answer_weight * penalty, penalty)


def _kept(batch: TokenBatch, values: Tensor) -> Tensor:
    """Return the values with zeros where the mask is False, whatever stood there."""
    return torch.where(batch.mask, values, 0.0)


def _log_ratio(batch: TokenBatch) -> Tensor:
    return _kept(batch, batch.log_probs) - _kept(batch, batch.old_log_probs)


def _clipped(batch: TokenBatch, log_ratio: Tensor, low: float, high: float) -> Tensor:
    ratio = log_ratio.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()
    advantages = _kept(batch, batch.advantages)
    bounded = ratio.clamp(1 - low, 1 + high)
    return _kept(batch, -torch.minimum(ratio * advantages, bounded * advantages))


def _unit_log_ratio(batch: TokenBatch, units: Tensor) -> Tensor:
    """Return the mean log-ratio of each token's unit, with the gradient of the token's own."""
    own = _log_ratio(batch)
    count = _unit_sums(batch.mask.to(own.dtype), units, batch.mask)
    mean = (_unit_sums(own, units, batch.mask) / count.clamp(min=1)).detach()
    return mean + own - own.detach()


def _unit_sums(values: Tensor, units: Tensor, mask: Tensor) -> Tensor:
    """Return for each token the sum of the values in its unit; 0 where the mask is False."""
    places = torch.where(mask, units.expand_as(values), 0)
    sums = values.new_zeros(values.numel() + 1)
    sums = sums.index_add(0, places[mask], values[mask])
    return torch.where(mask, sums[places], 0.0)


def _turn_units(batch: TokenBatch) -> Tensor:
    """Number the turns of all episodes, each turn of each episode apart, below rows * tokens."""
    turns = torch.where(batch.mask, batch.turns, 0)
    width = turns.max() + 1 if turns.numel() else 1
    return _numbered(_numbered(batch.episodes)[:, None] * width + turns)


def _numbered(keys: Tensor) -> Tensor:
    """Number the different keys from 0."""
    numbers: Tensor = torch.unique(keys, return_inverse=True)[1]
    return numbers


OBJECTIVES: dict[str, Objective] = {
    "ppo_clip": ppo_clip,
    "dapo": dapo,
    "gspo": gspo,
    "reinforce": reinforce,
}
