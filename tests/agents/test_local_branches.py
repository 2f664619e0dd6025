"""A local policy goes on: from branches, from episodes put aside, over a run that was killed."""

import numpy as np
import pytest
from small_models import policy, taught

from seekgym.agents.llm.scoring import score_segments
from seekgym.agents.rollouts import Budget, TreeShape, generate, generate_trees, replay, resume
from seekgym.corpora import ConfigurationError

ENV = "seekgym/Phantom-50-v0"
SHORT = {"max_turns": 4, "max_observation_chars": 1_000, "k": 2}


def assert_tokens_are_right(made, trajectories):
    for trajectory in trajectories:
        assert replay(trajectory) == []
        scored = score_segments(made.model, trajectory.segments)
        for segment, found in zip(trajectory.segments, scored, strict=True):
            np.testing.assert_allclose(found, segment.log_probs, atol=1e-4, rtol=0)
        for turn in trajectory.turns:
            number, start, end = turn.span
            ids = trajectory.segments[number].ids[start:end]
            text = turn.action if isinstance(turn.action, str) else turn.action["text"]
            assert made.layout.text(list(ids)).startswith(text)


@pytest.mark.parametrize("options", [{}, {"is_constrained": True, "protocol": "react"}])
def test_leaves_share_the_tokens_of_their_first_turns(options):
    made = policy(**options)
    shape = TreeShape(trees=2, expansions=2, rounds=1)
    leaves = generate_trees(made, ENV, groups=3, shape=shape, arguments=SHORT)
    by_id = {leaf.id: leaf for leaf in leaves}
    branched = [leaf for leaf in leaves if leaf.parent]
    assert branched
    for leaf in branched:
        parent = by_id[leaf.parent]
        number, start, _ = parent.turns[leaf.shared_turns].span
        assert leaf.segments[number].ids[:start] == parent.segments[number].ids[:start]
        assert leaf.turns[: leaf.shared_turns] == parent.turns[: leaf.shared_turns]
    assert_tokens_are_right(made, leaves)


@pytest.mark.parametrize("has_template", [False, True])
def test_an_episode_put_aside_is_played_on_with_its_own_tokens(has_template):
    made = policy(
        taught(has_template), has_template=has_template, temperature=0.3, max_new_tokens=48
    )
    aside = generate(made, ENV, episodes=6, arguments=SHORT, budget=Budget(turns=1))
    assert any(trajectory.is_suspended for trajectory in aside)
    ended = resume(made, aside, ENV, arguments=SHORT)
    assert not any(trajectory.is_suspended for trajectory in ended)
    for before, after in zip(aside, ended, strict=True):
        assert after.turns[: len(before.turns)] == before.turns
        length = len(before.segments[0].ids)
        assert after.segments[0].ids[:length] == before.segments[0].ids
    for trajectory in ended:
        assert replay(trajectory) == []
        scored = score_segments(made.model, trajectory.segments, temperature=0.3)
        for segment, found in zip(trajectory.segments, scored, strict=True):
            np.testing.assert_allclose(found, segment.log_probs, atol=1e-4, rtol=0)


def test_a_file_goes_on_with_the_same_settings_only(tmp_path):
    path = tmp_path / "run.jsonl"
    whole = generate(policy(), ENV, episodes=6, arguments=SHORT)
    generate(policy(), ENV, episodes=3, arguments=SHORT, path=path)
    gone_on = generate(policy(), ENV, episodes=6, arguments=SHORT, path=path)
    tokens = [[(s.ids, s.mask) for s in t.segments] for t in whole]
    assert [[(s.ids, s.mask) for s in t.segments] for t in gone_on] == tokens
    assert [t.outcome["answer"] for t in gone_on] == [t.outcome["answer"] for t in whole]
    with pytest.raises(ConfigurationError, match="temperature"):
        generate(policy(temperature=0.5), ENV, episodes=6, arguments=SHORT, path=path)
