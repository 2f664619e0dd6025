"""How many trajectories trees and tails give for the calls of the environment that chains take.

Each row plays a shape, counts the calls of the environment that it really made, and lets
independent chains of the same policy spend the same number. The policy is random: it searches
for names it has seen, a least number of times, and then answers with a given probability in each
turn. With no least number it has no memory of how long it has played: going on from a node then
costs as much as a new chain, and a tree saves next to nothing. That is the worst case, shown
first; agents that need so many searches before they can answer are like the others.

Run: python benchmarks/trees.py
"""

import re
from collections.abc import Iterator

from seekgym.agents.policy import Policy
from seekgym.agents.rollouts import (
    Budget,
    Generate,
    Limit,
    Reply,
    RunningEpisode,
    TailShape,
    Trajectory,
    TreeShape,
    generate_tails,
    generate_trees,
    replay,
    total_cost,
)

ENVIRONMENT = "seekgym/QA-v0"
GROUPS = 50
SEED = 0
NAME = re.compile(r"[A-Z]\w+")


class RandomSearcher(Policy):
    """Searches for names it has seen, and answers with one of them.

    Args:
        least: How many turns it searches at least.
        stops: How likely it answers in each turn after them.
    """

    name = "random-searcher"

    def __init__(self, least: int, stops: float) -> None:
        self.least = least
        self.stops = stops

    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play one episode after the other."""
        for episode in episodes:
            draw = episode.generator
            seen = [episode.question, *(turn.observation for turn in episode.turns)]
            observation: str | None = ""
            while observation is not None:
                names = NAME.findall(" ".join(seen)) or ["x"]
                name = names[int(draw.integers(len(names)))]
                if len(episode.turns) >= self.least and draw.random() < self.stops:
                    reply = Reply({"name": "answer", "arguments": {"text": name}})
                else:
                    reply = Reply({"name": "search", "arguments": {"query": name}})
                observation = episode.send(reply)
                seen.append(observation or "")
            yield episode.finish()


def main() -> None:
    """Print the table."""
    print(f"{'shape':46}{'turns':>6}{'calls':>8}{'leaves':>8}{'chains':>8}{'ratio':>7}  replay")
    for least, stops in ((0, 0.25), (3, 0.5), (5, 0.5)):
        policy = RandomSearcher(least, stops)
        print(f"at least {least} searches, then an answer with probability {stops}")
        for shape in (
            TreeShape(trees=2, expansions=2, rounds=1),
            TreeShape(trees=2, expansions=2, rounds=3),
            TailShape(chains=4, branches=1, tail=2),
            TailShape(chains=2, branches=4, tail=2),
        ):
            if isinstance(shape, TreeShape):
                leaves = generate_trees(policy, ENVIRONMENT, groups=GROUPS, shape=shape, seed=SEED)
            else:
                leaves = generate_tails(policy, ENVIRONMENT, groups=GROUPS, shape=shape, seed=SEED)
            show(policy, leaves, str(shape))


def show(policy: Policy, leaves: list[Trajectory], label: str) -> None:
    """Print one row: leaves, and the chains that the same calls give."""
    calls = total_cost(leaves).turns
    source = Generate(policy, ENVIRONMENT, episodes=8 * len(leaves), seed=SEED)
    chains = (source | Limit(Budget(turns=calls))).run().trajectories
    turns = sum(len(leaf.turns) for leaf in leaves) / len(leaves)
    wrong = sum(1 for leaf in leaves[:40] if replay(leaf))
    print(
        f"{label:46.46}{turns:6.1f}{calls:8}{len(leaves):8}{len(chains):8}"
        f"{len(leaves) / len(chains):7.2f}  {40 - wrong} of 40",
        flush=True,
    )


if __name__ == "__main__":
    main()
