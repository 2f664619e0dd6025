"""Recompute the log-probabilities of a trajectory's tokens."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from transformers import PreTrainedModel

from ...corpora.errors import TokenError
from ..rollouts.trajectory import Segment, Trajectory

__all__ = ["check_log_probs", "evaluation_mode", "score_segments"]

_TOLERANCE = 1e-4


@contextmanager
def evaluation_mode(model: PreTrainedModel) -> Iterator[None]:
    """Let a model be in evaluation mode, and then again in the mode that it was in."""
    is_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(is_training)


def score_segments(
    model: PreTrainedModel,
    segments: Sequence[Segment],
    *,
    temperature: float = 1.0,
    padding: Literal["left", "right"] = "right",
) -> list[np.ndarray]:
    """Return the log-probability of each token of each segment, read in one batch.

    Args:
        model: The model that played.
        segments: What it read and drew.
        temperature: That of sampling.
        padding: On which side shorter segments are filled up.

    Returns:
        For each segment an array as long as its ids; 0.0 where the mask is 0 and at the first
        token, which nothing predicts.
    """
    width = max(len(segment.ids) for segment in segments)
    ids = torch.zeros(len(segments), width, dtype=torch.long)
    mask = torch.zeros(len(segments), width, dtype=torch.long)
    starts = [width - len(s.ids) if padding == "left" else 0 for s in segments]
    for row, (segment, start) in enumerate(zip(segments, starts, strict=True)):
        end = start + len(segment.ids)
        ids[row, start:end] = torch.tensor(segment.ids)
        mask[row, start:end] = 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    device = model.device
    with evaluation_mode(model), torch.inference_mode():
        logits = model(
            ids.to(device), attention_mask=mask.to(device), position_ids=positions.to(device)
        ).logits
        values = torch.log_softmax(logits[:, :-1].float() / temperature, dim=-1)
        chosen = values.gather(-1, ids[:, 1:, None].to(device))[..., 0].cpu().numpy()
    scored = []
    for row, (segment, start) in enumerate(zip(segments, starts, strict=True)):
        log_probs = np.zeros(len(segment.ids), dtype=np.float64)
        log_probs[1:] = chosen[row, start : start + len(segment.ids) - 1]
        scored.append(np.where(np.array(segment.mask) == 1, log_probs, 0.0))
    return scored


def check_log_probs(
    model: PreTrainedModel,
    trajectory: Trajectory,
    *,
    temperature: float = 1.0,
    tolerance: float | None = None,
) -> float:
    """Compare the recorded log-probabilities with recomputed ones; return the largest difference.

    Args:
        model: The model that played.
        trajectory: What it played.
        temperature: That of sampling.
        tolerance: The largest difference allowed: by default 1e-4, or half a unit of
            log-probability for weights in half precision, where it only finds gross errors.

    Raises:
        TokenError: A difference is larger; names segment and token.
    """
    if tolerance is None:
        tolerance = _TOLERANCE if model.dtype in (torch.float32, torch.float64) else 0.5
    largest = 0.0
    for number, segment in enumerate(trajectory.segments):
        (scored,) = score_segments(model, [segment], temperature=temperature)
        differences = np.abs(scored - np.array(segment.log_probs))
        differences[np.isnan(differences)] = np.inf
        worst = int(differences.argmax())
        largest = float(np.fmax(largest, differences[worst]))
        if not largest <= tolerance:
            raise TokenError(
                f"trajectory {trajectory.id!r}, segment {number}, token {worst}: the recorded "
                f"log-probability {segment.log_probs[worst]:.6f} is {scored[worst]:.6f} when it "
                f"is recomputed, more than {tolerance} apart; the model or the tokens were changed"
            )
    return largest
