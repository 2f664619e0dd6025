"""Every objective against loops from its formula, finite differences, and values by hand."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seekgym.agents.training.objectives import (
    OBJECTIVES,
    TokenBatch,
    aggregate,
    dapo,
    dppo,
    entropy,
    gspo,
    kl,
    llds,
    ppo_clip,
    reinforce,
    sapo,
    turn_ppo,
)
from seekgym.corpora import ConfigurationError

torch.set_num_threads(1)
NAN = float("nan")
HOW = ("token", "episode", "constant")
VARIANTS = {
    **OBJECTIVES,
    "llds": llds,
    "dppo kl": partial(dppo, divergence="kl"),
    "gspo segment": partial(gspo, unit="segment"),
    "gspo wide": partial(gspo, low=0.2, high=0.2),
}


def row(*tokens, episode=0):
    """Return a batch of one row; a token is log p, log p_old, advantage and turn, or None."""
    masked = (NAN, NAN, NAN, -1)
    log_probs, old, advantages, turns = zip(*(t or masked for t in tokens), strict=True)
    return TokenBatch(
        torch.tensor([log_probs], dtype=torch.float64).requires_grad_(),
        torch.tensor([old], dtype=torch.float64),
        torch.tensor([advantages], dtype=torch.float64),
        torch.tensor([[t is not None for t in tokens]]),
        torch.tensor([turns]),
        torch.tensor([episode]),
    )


def some(seed, rows=6, tokens=9, *, drift=0.4, one_advantage=False):
    """Return a random batch: three episodes of two segments each, some places masked."""
    draw = torch.Generator().manual_seed(seed)
    shape = (rows, tokens)
    mask = torch.rand(shape, generator=draw) < 0.7
    episodes = torch.arange(rows) // 2 * 7
    turns = torch.arange(tokens).expand(shape) // 3 + (torch.arange(rows) % 2)[:, None] * 2
    by_turn = torch.randn((rows, 9), generator=draw, dtype=torch.float64)
    per_turn = by_turn[episodes // 7, :].gather(1, turns)
    advantages = by_turn[episodes // 7, :1].expand(shape) if one_advantage else per_turn
    old = -torch.rand(shape, generator=draw, dtype=torch.float64) * 2 - 0.05
    moved = old + drift * torch.randn(shape, generator=draw, dtype=torch.float64)
    return TokenBatch(
        moved.clamp(max=-1e-3).where(mask, NAN).requires_grad_(),
        old.where(mask, NAN),
        advantages.where(mask, NAN),
        mask,
        turns.where(mask, -1),
        episodes,
    )


def changed(batch, **fields):
    given = {name: getattr(batch, name) for name in TokenBatch.__dataclass_fields__}
    return TokenBatch(**(given | fields))


def drawn(batch):
    """Give the places of all tokens that the policy drew."""
    return [tuple(place) for place in batch.mask.nonzero().tolist()]


def unit_of(kind, batch, place):
    r, _ = place
    episode, turn = batch.episodes[r].item(), batch.turns[place].item()
    return {"episode": episode, "turn": (episode, turn), "segment": r, "token": place}[kind]


def mean_ratio(kind, batch, place):
    mates = [
        batch.log_probs[p].item() - batch.old_log_probs[p].item()
        for p in drawn(batch)
        if unit_of(kind, batch, p) == unit_of(kind, batch, place)
    ]
    return math.exp(sum(mates) / len(mates))


def slow_clip(kind, low, high, batch, place):
    ratio, advantage = mean_ratio(kind, batch, place), batch.advantages[place].item()
    bounded = min(max(ratio, 1 - low), 1 + high)
    return -min(ratio * advantage, bounded * advantage)


def slow_reinforce(batch, place):
    return -batch.advantages[place].item() * batch.log_probs[place].item()


def slow_sapo(batch, place):
    new, old = batch.log_probs[place].item(), batch.old_log_probs[place].item()
    is_penalised = batch.advantages[place] >= 0 and math.exp(new - old) <= 0.8
    return slow_clip("token", 0.2, 0.2, batch, place) + (0.1 * (old - new) if is_penalised else 0)


def slow_dppo(divergence, batch, place):
    p, q = (math.exp(x[place].item()) for x in (batch.log_probs, batch.old_log_probs))
    advantage = batch.advantages[place].item()
    tv = abs(p - q)
    binary_kl = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    too_far = tv > 0.15 if divergence == "tv" else binary_kl > 0.05
    onwards = (advantage > 0 and p > q) or (advantage < 0 and p < q)
    return 0.0 if too_far and onwards else -min(p / q, 20) * advantage


def slow_llds(batch, place):
    fall = batch.old_log_probs[place].item() - batch.log_probs[place].item()
    whole = sum(
        batch.old_log_probs[p].item() - batch.log_probs[p].item()
        for p in drawn(batch)
        if unit_of("turn", batch, p) == unit_of("turn", batch, place)
    )
    return max(0.0, fall) if batch.advantages[place] >= 0 and whole > 1e-4 else 0.0


SLOW = {
    "ppo_clip": partial(slow_clip, "token", 0.2, 0.2),
    "dapo": partial(slow_clip, "token", 0.2, 0.28),
    "gspo": partial(slow_clip, "episode", 3e-4, 4e-4),
    "gspo wide": partial(slow_clip, "episode", 0.2, 0.2),
    "gspo segment": partial(slow_clip, "segment", 3e-4, 4e-4),
    "turn_ppo": partial(slow_clip, "turn", 0.2, 0.2),
    "sapo": slow_sapo,
    "dppo": partial(slow_dppo, "tv"),
    "dppo kl": partial(slow_dppo, "kl"),
    "reinforce": slow_reinforce,
    "llds": slow_llds,
}


def slow_aggregate(losses, batch, how, length):
    by_episode = {}
    for place in drawn(batch):
        by_episode.setdefault(batch.episodes[place[0]].item(), []).append(losses[place].item())
    everything = [loss for episode in by_episode.values() for loss in episode]
    if how == "token":
        return sum(everything) / len(everything)
    if how == "episode":
        return sum(sum(e) / len(e) for e in by_episode.values()) / len(by_episode)
    return sum(everything) / (len(by_episode) * length)


def total(objective, batch, how="episode"):
    return aggregate(objective(batch), batch, how, length=11)


def gradient(objective, batch, how="episode"):
    return torch.autograd.grad(total(objective, batch, how), batch.log_probs)[0]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_its_formula_says(name, seed):
    batch = some(seed)
    losses = VARIANTS[name](batch)
    assert losses.shape == batch.mask.shape
    assert (losses[~batch.mask] == 0).all()
    places = drawn(batch)
    expected = [SLOW[name](batch, place) for place in places]
    assert [losses[p].item() for p in places] == pytest.approx(expected, abs=1e-12)
    assert any(expected)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("seed", range(3))
def test_aggregates_are_what_they_say(how, seed):
    batch = some(seed)
    losses = torch.randn(batch.mask.shape, dtype=torch.float64).where(batch.mask, NAN)
    found = aggregate(losses, batch, how, length=11)
    assert found.item() == pytest.approx(slow_aggregate(losses, batch, how, 11))


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("how", HOW)
def test_gradients_equal_finite_differences(name, how):
    """Where a ratio is shared, all its tokens have one advantage: there the two are the same."""
    batch = some(3, one_advantage=name.startswith("gspo"), drift=0.3)
    objective, step = VARIANTS[name], 1e-6
    found = gradient(objective, batch, how)
    for place in drawn(batch):
        nudge = torch.zeros_like(batch.log_probs).index_put(
            tuple(map(torch.tensor, place)), torch.tensor(step, dtype=torch.float64)
        )
        up = changed(batch, log_probs=batch.log_probs.detach() + nudge)
        down = changed(batch, log_probs=batch.log_probs.detach() - nudge)
        slope = (total(objective, up, how) - total(objective, down, how)) / (2 * step)
        assert found[place].item() == pytest.approx(slope.item(), abs=1e-7)
    assert (found[~batch.mask] == 0).all()
    assert found.any()


def test_a_shared_ratio_leaves_each_token_its_own_advantage():
    batch = row((0.1, 0.0, 1.0, 0), (0.1, 0.0, -2.0, 1))
    ratio = math.exp(0.1)
    objective = partial(gspo, low=0.5, high=0.5)
    assert gradient(objective, batch, "token").tolist()[0] == pytest.approx([-ratio / 2, ratio])


def values(objective, *tokens):
    return objective(row(*tokens)).tolist()[0]


def test_clipping_by_hand():
    up, down = math.log(1.5), math.log(0.5)
    tokens = [(up, 0.0, 1.0, 0), (down, 0.0, 1.0, 0), (up, 0.0, -1.0, 0), (down, 0.0, -1.0, 0)]
    assert values(ppo_clip, *tokens) == pytest.approx([-1.2, -0.5, 1.5, 0.8])
    assert values(dapo, *tokens) == pytest.approx([-1.28, -0.5, 1.5, 0.8])
    assert values(ppo_clip, None, tokens[0], None) == pytest.approx([0.0, -1.2, 0.0])
    assert values(reinforce, (-2.0, -1.0, 3.0, 0)) == [6.0]


def test_shared_ratios_by_hand():
    tokens = [(math.log(4), 0.0, 1.0, 0), None, (0.0, 0.0, 1.0, 1), (math.log(0.5), 0.0, -1.0, 1)]
    wide = partial(gspo, low=9.0, high=9.0)
    assert values(wide, *tokens) == pytest.approx(
        [-(2 ** (1 / 3)), 0, -(2 ** (1 / 3)), 2 ** (1 / 3)]
    )
    half = math.sqrt(0.5)
    assert values(partial(turn_ppo, low=9.0, high=9.0), *tokens) == pytest.approx(
        [-4, 0, -half, half]
    )
    assert values(gspo, *tokens) == pytest.approx([-1.0004, 0, -1.0004, 2 ** (1 / 3)])


def test_a_good_token_that_fell_is_pulled_back():
    low = math.log(0.5)
    tokens = [(low, 0.0, 1.0, 0), (low, 0.0, -1.0, 0), (low, 0.0, 0.0, 0), (-0.1, 0.0, 0.0, 0)]
    penalty = 0.1 * math.log(2)
    assert values(sapo, *tokens) == pytest.approx([-0.5 + penalty, 0.8, penalty, 0.0])
    assert (gradient(partial(sapo, weight=1.0), row(tokens[2])) < 0).all()


def test_likely_tokens_may_move_less_than_unlikely_ones():
    def token(p, q, advantage):
        return (math.log(p), math.log(q), advantage, 0)

    assert values(dppo, token(0.9, 0.6, 1.0)) == [0.0]
    assert values(dppo, token(0.9, 0.6, -1.0)) == pytest.approx([1.5])
    assert values(dppo, token(0.04, 0.01, 1.0)) == pytest.approx([-4.0])
    assert values(dppo, token(0.3, 0.6, -1.0)) == [0.0]
    assert values(partial(dppo, limit=0.4), token(0.9, 0.6, 1.0)) == pytest.approx([-1.5])
    assert values(partial(dppo, divergence="kl"), token(0.9, 0.6, 1.0)) == [0.0]
    assert values(partial(dppo, divergence="kl"), token(0.04, 0.01, 1.0)) == pytest.approx([-4.0])


def test_a_ratio_weighs_twenty_at_most_in_dppo():
    batch = row((math.log(0.5), math.log(0.001), -1.0, 0))
    assert dppo(batch).item() == pytest.approx(20.0)
    assert gradient(dppo, batch).item() == pytest.approx(20.0)


def test_only_turns_that_fell_are_kept_from_falling():
    fell = [(-2.0, -1.0, 1.0, 0), (-1.0, -1.5, 1.0, 0)]
    rose = [(-2.0, -1.0, 1.0, 1), (-1.0, -2.5, 1.0, 1)]
    bad = [(-2.0, -1.0, -1.0, 2)]
    untrained = [(-2.0, -1.0, 0.0, 3)]
    assert values(llds, *fell, *rose, *bad, *untrained) == [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    answers = torch.tensor([[True, False]])
    masked = partial(llds, answer_tokens=answers)
    assert values(masked, *untrained, *untrained) == [0.0, 1.0]
    weighed = partial(masked, answer_weight=0.25)
    assert values(weighed, *untrained, *untrained) == [0.25, 1.0]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("how", HOW)
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 4), st.integers(0, 3), st.randoms())
def test_padding_and_order_do_not_matter(name, how, seed, columns, rows, random):
    batch = some(seed)
    order = list(range(6 + rows))
    random.shuffle(order)

    def padded(values, fill):
        wide = torch.nn.functional.pad(values, (0, columns, 0, rows), value=fill)
        return wide[order]

    episodes = torch.cat([batch.episodes, torch.tensor([7, 99, 99][:rows], dtype=torch.int64)])
    other = TokenBatch(
        padded(batch.log_probs.detach(), NAN).requires_grad_(),
        padded(batch.old_log_probs, NAN),
        padded(batch.advantages, NAN),
        padded(batch.mask, False),
        padded(batch.turns, -1),
        episodes[order],
    )
    objective = VARIANTS[name]
    torch.testing.assert_close(total(objective, other, how), total(objective, batch, how))
    expected = padded(gradient(objective, batch, how), 0.0)
    torch.testing.assert_close(gradient(objective, other, how), expected)


@pytest.mark.parametrize("name", sorted(VARIANTS.keys() - {"gspo segment"}))
@pytest.mark.parametrize("how", HOW)
def test_an_episode_in_several_rows_is_one_episode(name, how):
    whole = some(5, rows=3, tokens=8)
    whole = changed(whole, episodes=torch.arange(3))

    def split(values):
        return torch.cat([values[:, :3], values[:, 3:6], values[:, 6:]], dim=1).reshape(6, 4)

    parts = TokenBatch(
        split(whole.log_probs.detach()).requires_grad_(),
        split(whole.old_log_probs),
        split(whole.advantages),
        split(whole.mask),
        split(whole.turns),
        torch.arange(6) // 2,
    )
    objective = VARIANTS[name]
    torch.testing.assert_close(total(objective, parts, how), total(objective, whole, how))
    found = gradient(objective, parts, how)
    torch.testing.assert_close(found, split(gradient(objective, whole, how)))


def test_segments_count_by_their_share_of_the_tokens():
    one = row(*[(0.2, 0.0, 1.0, 0)] * 3, None, episode=3)
    two = row((0.1, 0.0, 1.0, 1), None, None, None, episode=3)
    names = ("log_probs", "old_log_probs", "advantages", "mask", "turns", "episodes")
    both = TokenBatch(*(torch.cat([getattr(one, n), getattr(two, n)]) for n in names))
    found = total(partial(gspo, unit="segment", low=9.0, high=9.0), both)
    assert found.item() == pytest.approx(-(3 * math.exp(0.2) + math.exp(0.1)) / 4)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("how", HOW)
def test_a_step_makes_good_tokens_likelier(name, how):
    logits = torch.zeros((2, 4, 5), dtype=torch.float64, requires_grad=True)
    chosen = torch.tensor([[0, 1, 2, 3], [4, 3, 2, 1]])
    log_probs = logits.log_softmax(-1).gather(-1, chosen[..., None])[..., 0]
    advantages = torch.tensor([[1.0, 1.0, -1.0, -1.0], [0.5, 0.5, 0.5, -2.0]]).double()
    batch = TokenBatch(
        log_probs,
        log_probs.detach(),
        advantages,
        torch.ones((2, 4), dtype=torch.bool),
        torch.tensor([[0, 0, 1, 1], [0, 0, 0, 1]]),
        torch.arange(2),
    )
    (slope,) = torch.autograd.grad(total(OBJECTIVES[name], batch, how), logits)
    after = (logits - 0.1 * slope).log_softmax(-1).gather(-1, chosen[..., None])[..., 0]
    assert ((after - log_probs) * advantages > 0).all()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0), (0, 0)])
def test_an_empty_mask_gives_zero_with_a_gradient_path(name, how, shape):
    nothing = torch.full(shape, NAN)
    batch = TokenBatch(
        nothing.clone().requires_grad_(),
        nothing,
        nothing,
        torch.zeros(shape, dtype=torch.bool),
        torch.full(shape, -1),
        torch.arange(shape[0]),
    )
    loss = total(VARIANTS[name], batch, how)
    assert loss.item() == 0.0
    assert not gradient(VARIANTS[name], batch, how).any()
    loss.backward()


@pytest.mark.parametrize("name", VARIANTS)
def test_no_advantage_no_loss(name):
    batch = some(6)
    batch = changed(batch, advantages=torch.zeros_like(batch.advantages))
    if name not in ("sapo", "llds"):  # which keep untrained turns from falling
        assert not VARIANTS[name](batch).any()
        assert not gradient(VARIANTS[name], batch).any()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("new", [-1e4, -100.0, -1e-30, 0.0])
@pytest.mark.parametrize("old", [-1e4, -100.0, -1e-30, 0.0])
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 1.0])
def test_a_single_token_at_the_ends_of_the_scale_stays_finite(name, new, old, advantage):
    batch = row((new, old, advantage, 0))
    batch = TokenBatch(
        *(getattr(batch, n).float() for n in ("log_probs", "old_log_probs", "advantages")),
        batch.mask,
        batch.turns,
        batch.episodes,
    )
    assert total(VARIANTS[name], batch).isfinite()
    assert gradient(VARIANTS[name], batch).isfinite().all()


def beside(log_probs, reference):
    """Return a batch of one row that knows a reference; what is NaN there is masked."""
    rows, others = torch.atleast_2d(log_probs), torch.atleast_2d(reference)
    return TokenBatch(
        log_probs=rows,
        old_log_probs=rows.detach(),
        advantages=torch.zeros_like(others),
        mask=~others.isnan(),
        turns=torch.zeros_like(others, dtype=torch.int64),
        episodes=torch.zeros(1, dtype=torch.int64),
        reference_log_probs=others,
    )


def test_divergences_by_hand_and_on_average():
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    q = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    exact = (p * (p / q).log()).sum()
    for name in ("k1", "k3"):
        found = kl(beside(p.log(), q.log()), estimator=name)
        torch.testing.assert_close((p * found).sum(), exact)
    d = math.log(2)
    pair = beside(torch.tensor([d]), torch.tensor([0.0]))
    assert kl(pair, estimator="k1").item() == pytest.approx(d)
    assert kl(pair, estimator="k2").item() == pytest.approx(d * d / 2)
    assert kl(pair, estimator="k3").item() == pytest.approx(0.5 - 1 + d)
    assert kl(pair).item() == kl(pair, estimator="k3").item()
    assert kl(beside(torch.tensor([-1e4]), torch.tensor([0.0]))).isfinite().all()


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_a_divergence_gives_masked_tokens_no_gradient(estimator):
    log_probs = torch.tensor([-1.0, NAN, -2.0], requires_grad=True)
    batch = beside(log_probs, torch.tensor([-1.5, NAN, -1.0]))
    aggregate(kl(batch, estimator=estimator), batch).backward()
    assert log_probs.grad.isfinite().all()
    assert log_probs.grad[1] == 0


def test_k2_has_the_gradient_of_the_divergence_on_average():
    logits = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    log_p = logits.log_softmax(-1)
    (exact,) = torch.autograd.grad((log_p.exp() * (log_p - q.log())).sum(), logits)
    slopes = {}
    for name in ("k1", "k2", "k3"):
        log_p = logits.log_softmax(-1)
        mean = (log_p.detach().exp() * kl(beside(log_p, q.log()), estimator=name)).sum()
        (slopes[name],) = torch.autograd.grad(mean, logits)
    torch.testing.assert_close(slopes["k2"], exact)
    assert not torch.allclose(slopes["k1"], exact)
    assert not torch.allclose(slopes["k3"], exact)


@settings(max_examples=40, deadline=None)
@given(st.floats(-30, 0), st.floats(-30, 0), st.sampled_from(["k2", "k3"]))
def test_k2_and_k3_are_never_negative(one, two, estimator):
    pair = beside(torch.tensor([one]).double(), torch.tensor([two]).double())
    found = kl(pair, estimator=estimator)
    assert found.item() >= 0


def test_entropy_is_that_of_the_masked_places():
    logits = torch.tensor([[0.0, 0.0, -torch.inf], [NAN, torch.inf, 1.0], [1.0, 2.0, 3.0]]).double()
    logits.requires_grad_()
    mask = torch.tensor([True, False, True])
    p = [math.exp(x) / sum(map(math.exp, (1, 2, 3))) for x in (1, 2, 3)]
    expected = (math.log(2) - sum(x * math.log(x) for x in p)) / 2
    found = entropy(logits, mask)
    assert found.item() == pytest.approx(expected)
    (slope,) = torch.autograd.grad(found, logits)
    assert slope.isfinite().all()
    assert not slope[1].any()
    for place in range(3):
        nudge = torch.zeros_like(logits)
        nudge[2, place] = 1e-6
        up, down = (entropy(logits.detach() + s * nudge, mask) for s in (1, -1))
        assert slope[2, place].item() == pytest.approx(((up - down) / 2e-6).item(), abs=1e-7)
    nothing = entropy(logits, torch.zeros(3, dtype=torch.bool))
    assert nothing.item() == 0.0
    nothing.backward()


def test_unknown_names_are_refused():
    batch = some(0)
    losses = ppo_clip(batch)
    with pytest.raises(ConfigurationError, match="how must be 'token', 'episode' or 'constant'"):
        aggregate(losses, batch, "mean")
    for length in (None, 0):
        with pytest.raises(ConfigurationError, match="needs a length of at least 1"):
            aggregate(losses, batch, "constant", length=length)
    with pytest.raises(ConfigurationError, match="estimator must be"):
        kl(beside(losses, losses), estimator="k4")
    with pytest.raises(ConfigurationError, match="reference_log_probs"):
        kl(replace(batch, reference_log_probs=None))
    with pytest.raises(ConfigurationError, match="unit must be"):
        gspo(batch, unit="turn")
    with pytest.raises(ConfigurationError, match="divergence must be"):
        dppo(batch, divergence="js")
