"""What is added to an objective: divergences, entropy, a brake on unlearning."""

from typing import Literal

import torch
from torch import Tensor

from ...corpora.errors import ConfigurationError
from .token_batch import LOG_LIMIT, TokenBatch, kept, log_ratios, turn_units, unit_sums

__all__ = ["entropy", "kl", "llds"]

_NOISE = 1e-4  # of a sum of log-probabilities that two ways of computing give


def kl(batch: TokenBatch, *, estimator: Literal["k1", "k2", "k3"] = "k3") -> Tensor:
    """Return an estimate of KL(policy, reference) for each token, (rows, tokens).

    With ``d = log p - log q``: k1 is ``d``, k2 is ``d^2 / 2``, k3 is ``e^-d - 1 + d`` (Schulman
    2020, "Approximating KL divergence"); k3 is that of GRPO (arXiv:2402.03300, equation 4). k1 and
    k3 have the KL as their mean, k2 and k3 are never negative. As a loss, k2 alone has the KL's
    gradient as the mean of its own. A ``d`` below -20 counts as -20.

    Args:
        batch: The tokens, with the log-probabilities of a reference.
        estimator: Which.

    Raises:
        ConfigurationError: The estimator is unknown, or the batch knows no reference.
    """
    if batch.reference_log_probs is None:
        raise ConfigurationError("kl needs a batch with reference_log_probs, got None")
    policy, reference = kept(batch, batch.log_probs), kept(batch, batch.reference_log_probs)
    difference = (policy - reference).clamp(min=-LOG_LIMIT)
    if estimator == "k1":
        return difference
    if estimator == "k2":
        return difference.square() / 2
    if estimator == "k3":
        return (-difference).exp() - 1 + difference
    raise ConfigurationError(f"estimator must be 'k1', 'k2' or 'k3', got {estimator!r:.60}")


def entropy(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the mean entropy in nats over the masked places; 0.0 if there is none.

    Args:
        logits: Of shape (..., vocabulary); minus infinity is a token that cannot be drawn.
        mask: Which places count, bool, of shape (...).
    """
    lowest = torch.finfo(logits.dtype).min / 4  # far below any logit, and no infinity
    finite = torch.where(mask[..., None], logits, 0.0).clamp(min=lowest)
    log_probs = finite.log_softmax(dim=-1)
    each = -(log_probs.exp() * log_probs).sum(dim=-1)
    return each.where(mask, 0.0).sum() / mask.sum().clamp(min=1)


def llds(
    batch: TokenBatch, *, answer_tokens: Tensor | None = None, answer_weight: float = 0.0
) -> Tensor:
    """Return ``max(0, log p_old - log p)`` for tokens of good turns that became unlikelier.

    LLDS (Deng et al. 2025, arXiv:2512.04220, equation 4) keeps GRPO from unlearning right
    actions, which wrong episodes share. A token counts if its advantage is 0 or more and the
    summed log-probability of its turn fell, by more than 1e-4: what drew the tokens and what scores
    them now may differ by rounding. ``aggregate(how="episode")`` of it, times a weight
    (0.2 in the paper), is added to the loss; the paper averages over the episodes that count, and
    not, as that does, over all.

    Args:
        batch: The tokens.
        answer_tokens: Which tokens belong to answers, bool, (rows, tokens). The variant MA
            (equation 5), for policies that no longer search, weighs them less.
        answer_weight: The weight of those, from 0 to 1; the paper does not give its own.
    """
    log_ratio = log_ratios(batch)
    has_fallen = unit_sums(log_ratio.detach(), turn_units(batch), batch.mask) < -_NOISE
    counts = batch.mask & (kept(batch, batch.advantages) >= 0) & has_fallen
    penalty = torch.where(counts, (-log_ratio).clamp(min=0), 0.0)
    if answer_tokens is None:
        return penalty
    return torch.where(answer_tokens, answer_weight * penalty, penalty)
