"""From trajectories and advantages to tensors: which token is of which turn, and worth what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from ..rollouts.trajectory import Segment, Trajectory
from .batches import pad, score
from .token_batch import TokenBatch

__all__ = ["Episode", "minibatches", "prepare"]


@dataclass(frozen=True)
class Episode:
    """One episode as its trainer needs it; each segment is a row of a batch.

    Attributes:
        segments: Its tokens; a segment's mask says which of them count in the loss.
        turns: For each segment the number of each token's turn, -1 where it does not count.
        advantages: For each segment the advantage of each token.
    """

    segments: tuple[Segment, ...]
    turns: tuple[np.ndarray, ...]
    advantages: tuple[np.ndarray, ...]

    @property
    def drawn(self) -> int:
        """How many tokens count."""
        return sum(sum(segment.mask) for segment in self.segments)

    def scored(self, model: PreTrainedModel, temperature: float) -> "Episode":
        """Return the episode with the log-probabilities that the model gives now."""
        rows = pad(self.segments, model.device)
        with torch.no_grad():
            found = score(model, rows, rows.drawn, temperature=temperature)
        values = found.log_probs.cpu().numpy()
        segments = tuple(
            replace(segment, log_probs=tuple(map(float, row[: len(segment.ids)])))
            for segment, row in zip(self.segments, values, strict=True)
        )
        return replace(self, segments=segments)

    @staticmethod
    def parts(episodes: Sequence["Episode"], tokens: int) -> list[list["Episode"]]:
        """Return the episodes in parts of so many tokens at most, padding included.

        Rows of one episode stay together; an episode that is too long is a part by itself.
        """
        parts: list[list[Episode]] = []
        for episode in sorted(episodes, key=Episode.longest, reverse=True):
            rows = sum(len(each.segments) for each in parts[-1]) if parts else 0
            width = parts[-1][0].longest() if parts else 0
            if not parts or (rows + len(episode.segments)) * width > tokens:
                parts.append([])
            parts[-1].append(episode)
        return parts

    def longest(self) -> int:
        """Return the length of its longest segment, in tokens."""
        return max(len(segment.ids) for segment in self.segments)

    @staticmethod
    def batch(
        episodes: Sequence["Episode"],
        model: PreTrainedModel,
        reference: PreTrainedModel | None,
        *,
        temperature: float,
        pays_entropy: bool,
    ) -> tuple[TokenBatch, Tensor]:
        """Return episodes as an objective needs them, and the mean entropy of their tokens.

        Args:
            episodes: Some episodes.
            model: The model that is trained; it reads them with a gradient.
            reference: A frozen one, or None.
            temperature: That of sampling.
            pays_entropy: Whether the entropy needs a gradient.
        """
        segments = [segment for episode in episodes for segment in episode.segments]
        rows = pad(segments, model.device)
        scores = score(model, rows, rows.drawn, temperature=temperature, pays_entropy=pays_entropy)
        reference_log_probs = None
        if reference is not None:
            with torch.no_grad():
                frozen = score(reference, rows, rows.drawn, temperature=temperature)
            reference_log_probs = frozen.log_probs
        width = rows.ids.shape[1]
        numbers = [n for n, episode in enumerate(episodes) for _ in episode.segments]
        old = [np.array(segment.log_probs) for segment in segments]
        turns = [array for episode in episodes for array in episode.turns]
        worth = [array for episode in episodes for array in episode.advantages]
        first = torch.zeros_like(rows.drawn)
        first[:, 0] = True  # the first token of a row is never predicted
        batch = TokenBatch(
            log_probs=scores.log_probs,
            old_log_probs=_filled(old, width, 0.0, np.float32).to(model.device),
            advantages=_filled(worth, width, 0.0, np.float32).to(model.device),
            mask=rows.drawn & ~first,
            turns=_filled(turns, width, -1, np.int64).to(model.device),
            episodes=torch.tensor(numbers, device=model.device),
            reference_log_probs=reference_log_probs,
        )
        return batch, scores.entropy


def prepare(
    trajectories: Sequence[Trajectory],
    advantages: Sequence[np.ndarray],
    *,
    masks_observations: bool = True,
) -> list[Episode]:
    """Return trajectories with their advantages, token by token.

    Args:
        trajectories: Played by a language model, so that they have segments and spans.
        advantages: For each of them the advantage of each turn, as an estimator gives it.
        masks_observations: Whether only drawn tokens count. Otherwise what the environment wrote
            after a turn counts with that turn: an ablation.
    """
    return [
        _prepare(trajectory, worth, masks_observations)
        for trajectory, worth in zip(trajectories, advantages, strict=True)
        if trajectory.segments
    ]


def minibatches(
    episodes: Sequence[Episode], count: int, generator: np.random.Generator
) -> Iterator[list[Episode]]:
    """Give the episodes in so many parts of about equal size, drawn at random; none is empty."""
    order = generator.permutation(len(episodes))
    for places in np.array_split(order, count):
        if len(places):
            yield [episodes[int(place)] for place in places]


def _prepare(trajectory: Trajectory, worth: np.ndarray, masks_observations: bool) -> Episode:
    segments = trajectory.segments
    turns = [np.full(len(segment.ids), -1, dtype=np.int64) for segment in segments]
    values = [np.zeros(len(segment.ids)) for segment in segments]
    for number, turn in enumerate(trajectory.turns):
        if turn.span is None:
            continue
        place, first, end = turn.span
        is_drawn = np.array(segments[place].mask[first:end], dtype=bool)
        turns[place][first:end] = np.where(is_drawn, number, -1)
        values[place][first:end] = np.where(is_drawn, worth[number], 0.0)
    if masks_observations:
        segments = tuple(
            replace(segment, mask=tuple((array >= 0).astype(int).tolist()))
            for segment, array in zip(segments, turns, strict=True)
        )
        return Episode(segments, tuple(turns), tuple(values))
    whole = [
        _spread(segment, array, value)
        for segment, array, value in zip(segments, turns, values, strict=True)
    ]
    return Episode(*map(tuple, zip(*whole, strict=True)))


def _spread(
    segment: Segment, turns: np.ndarray, values: np.ndarray
) -> tuple[Segment, np.ndarray, np.ndarray]:
    """Let every token after the first reply count, with the turn before it."""
    turns, values = turns.copy(), values.copy()
    for place in range(1, len(turns)):
        if turns[place] < 0 <= turns[place - 1]:
            turns[place], values[place] = turns[place - 1], values[place - 1]
    mask = tuple((turns >= 0).astype(int).tolist())
    return replace(segment, mask=mask), turns, values


def _filled(arrays: Sequence[np.ndarray], width: int, value: float, dtype: type) -> Tensor:
    filled: np.ndarray = np.full((len(arrays), width), value, dtype=dtype)
    for row, array in enumerate(arrays):
        filled[row, : len(array)] = array
    return torch.from_numpy(filled)
