"""From trajectories to tensors: what counts, with which advantage, in any order and padding."""

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kit.small_models import policy

from seekgym.agents.rollouts import generate
from seekgym.agents.training.advantages import ESTIMATORS
from seekgym.agents.training.batches import by_length, pad, score
from seekgym.agents.training.objectives import OBJECTIVES
from seekgym.agents.training.token_batch import aggregate
from seekgym.agents.training.tokens import Episode, minibatches, prepare

SHORT = {"hit_sentences": 1, "k": 1}


@pytest.fixture(scope="module")
def played():
    """Real episodes of a model with random weights, some longer than its context."""
    player = policy(max_context=420, is_constrained=True, batch_size=8)
    found = generate(
        player, "seekgym/Phantom-50-v0", episodes=6, group_size=3, seed=1, arguments=SHORT
    )
    assert any(len(trajectory.segments) > 1 for trajectory in found)
    return player.model, found


def worth(played):
    """An advantage for each turn that tells the turn: nothing an estimator would give."""
    return [np.arange(1.0, len(t.turns) + 1) * (-1) ** place for place, t in enumerate(played)]


def test_each_drawn_token_has_the_number_and_the_advantage_of_its_turn(played):
    _, trajectories = played
    for trajectory, values, episode in zip(
        trajectories, worth(trajectories), prepare(trajectories, worth(trajectories)), strict=True
    ):
        seen = 0
        for segment, made, turns, advantages in zip(
            trajectory.segments,
            episode.segments,
            episode.turns,
            episode.advantages,
            strict=True,
        ):
            assert made.mask == segment.mask
            assert made.ids == segment.ids
            for is_drawn, turn, advantage in zip(segment.mask, turns, advantages, strict=True):
                assert (turn >= 0) == (is_drawn == 1)
                assert advantage == (values[turn] if is_drawn else 0.0)
                seen += is_drawn
        assert episode.drawn == seen == sum(s.mask.count(1) for s in trajectory.segments)


def test_without_the_mask_what_the_environment_wrote_counts_with_the_turn_before(played):
    _, trajectories = played
    bare = prepare(trajectories, worth(trajectories), masks_observations=False)
    for masked, episode in zip(prepare(trajectories, worth(trajectories)), bare, strict=True):
        for segment, turns, kept in zip(episode.segments, episode.turns, masked.turns, strict=True):
            first = int(np.argmax(kept >= 0))
            assert not any(segment.mask[:first])
            assert all(segment.mask[first:])
            assert (np.diff(turns[first:]) >= 0).all()
            assert (turns[kept >= 0] == kept[kept >= 0]).all()


def loss_of(model, episodes, objective="dapo", how="episode"):
    """The loss and its gradient, over the parameters laid end to end."""
    model.zero_grad()
    batch, _ = Episode.batch(episodes, model, None, temperature=1.0, pays_entropy=False)
    loss = aggregate(OBJECTIVES[objective](batch), batch, how)
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    return loss.item(), gradient


@pytest.mark.parametrize("how", ["token", "episode"])
def test_the_order_of_episodes_and_more_padding_change_nothing(played, how):
    model, trajectories = played
    episodes = prepare(trajectories, worth(trajectories))
    loss, gradient = loss_of(model, episodes, how=how)
    turned, turned_gradient = loss_of(model, episodes[::-1], how=how)
    assert turned == pytest.approx(loss, abs=1e-5)
    assert torch.allclose(turned_gradient, gradient, atol=1e-5)
    longest = max(episodes, key=Episode.longest)
    alone, _ = loss_of(model, [e for e in episodes if e is not longest], how=how)
    worthless = dataclasses.replace(
        longest,
        segments=tuple(dataclasses.replace(s, mask=(0,) * len(s.ids)) for s in longest.segments),
    )
    padded, _ = loss_of(model, [e if e is not longest else worthless for e in episodes], how=how)
    assert padded == pytest.approx(alone, abs=1e-5)


@given(st.integers(1, 4_000))
@settings(max_examples=20, deadline=None)
def test_parts_hold_each_episode_once_and_whole(played, tokens):
    episodes = prepare(played[1], worth(played[1]))
    parts = Episode.parts(episodes, tokens)
    assert sorted(map(id, (e for part in parts for e in part))) == sorted(map(id, episodes))
    for part in parts:
        rows = sum(len(episode.segments) for episode in part)
        width = max(map(Episode.longest, part))
        assert len(part) == 1 or rows * width <= tokens


def test_minibatches_share_the_episodes_out():
    generator = np.random.default_rng(0)
    episodes = [object() for _ in range(7)]
    parts = list(minibatches(episodes, 3, generator))
    assert sorted(len(part) for part in parts) == [2, 2, 3]
    assert {id(e) for part in parts for e in part} == {id(e) for e in episodes}
    assert list(minibatches([], 3, generator)) == []


@given(st.lists(st.integers(1, 300), min_size=1, max_size=40), st.integers(1, 2_000))
@settings(max_examples=50, deadline=None)
def test_batches_by_length_hold_each_place_once_and_fit(lengths, tokens):
    batches = by_length(lengths, tokens, np.random.default_rng(0))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        width = -(-max(lengths[place] for place in batch) // 16) * 16
        assert len(batch) == 1 or len(batch) * width <= tokens


def test_scores_are_those_of_drawing(played):
    model, trajectories = played
    segments = [segment for trajectory in trajectories for segment in trajectory.segments]
    rows = pad(segments)
    scores = score(model, rows, rows.drawn)
    for row, segment in enumerate(segments):
        recorded = torch.tensor(segment.log_probs)
        assert torch.allclose(
            scores.log_probs[row, : len(segment.ids)].detach(), recorded, atol=1e-4
        )
    assert scores.entropy > 0


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_a_step_makes_what_was_better_likelier(name):
    player = policy(is_constrained=True)
    trajectories = generate(
        player, "seekgym/Phantom-50-v0", episodes=4, group_size=4, seed=3, arguments=SHORT
    )
    signs = [1.0, -1.0, 1.0, -1.0]
    values = [np.full(len(t.turns), s) for t, s in zip(trajectories, signs, strict=True)]
    episodes = prepare(trajectories, values)
    model = player.model
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    make = partial(Episode.batch, episodes, model, model, temperature=1.0, pays_entropy=False)
    try:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        before, _ = make()
        aggregate(OBJECTIVES[name](before), before).backward()
        optimizer.step()
        after, _ = make()
        change = (after.log_probs - before.log_probs).detach()
        assert float((change * before.advantages)[before.mask].sum()) > 0
    finally:
        model.load_state_dict(weights)
        model.zero_grad()


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"difference"}))  # that is for teams
def test_every_estimator_takes_real_episodes(played, name):
    found = ESTIMATORS[name](played[1])
    for trajectory, values in zip(played[1], found, strict=True):
        assert values.shape == (len(trajectory.turns),)
        assert np.isfinite(values).all()
