"""Episodes made by hand: what was paid turn by turn, in which group, and how they branched."""

from seekgym.agents.rollouts import Trajectory, Turn

OUTCOME = {"answer": "x", "exact_match": 0.0, "searches": 1, "hops": 1, "entities": ("Ann",)}


def paid(
    group, *rewards, parent="", shared=0, agent="a", finish="", error=None, says="", **outcome
):
    """Return an episode with these rewards; ``outcome`` goes over what is usual."""
    turns = tuple(
        Turn({"name": "search", "arguments": {"query": says}}, "", reward, {}, error, (), finish)
        for reward in rewards
    )
    name = outcome.pop("id", "")
    return Trajectory(
        environment="e",
        arguments={},
        env_hash="h",
        seed=0,
        task_id="t",
        agent=agent,
        question="q",
        turns=turns,
        outcome={**OUTCOME, "difference": sum(rewards), **outcome},
        id=name,
        group=group,
        parent=parent,
        shared_turns=shared,
    )
