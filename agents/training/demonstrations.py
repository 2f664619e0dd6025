"""Demonstrations: episodes of an agent that knows, as tokens that a model could have drawn."""

from collections.abc import Iterator

from transformers import PreTrainedTokenizerBase

from ...corpora.errors import ConfigurationError
from ..base import Agent
from ..llm.context import get_compaction
from ..llm.formats import Format
from ..llm.talk import Limits, Talk
from ..policy import Policy
from ..rollouts.filter import CausallyGrounded, Correct
from ..rollouts.generate import generate
from ..rollouts.running import RunningEpisode
from ..rollouts.trajectory import Trajectory
from ..tutor import TutorAgent
from .worlds import World

__all__ = ["Demonstrator", "demonstrate"]


class Demonstrator(Policy):
    """Lets an agent play, and writes its calls down as the protocol has them, token by token.

    The trajectories have segments as those of a ``LocalPolicy``: the tokens of replies have mask
    1, with log-probability 0.0, since nobody drew them.

    Args:
        tokenizer: Of the model that is to learn.
        protocol: The text protocol.
        agent: Who plays.
        max_context: The longest context, in tokens.
        max_new_tokens: The longest reply.
        has_instructions: Whether the context begins with the protocol's instructions.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        protocol: str = "search-r1",
        agent: type[Agent] = TutorAgent,
        max_context: int = 1024,
        max_new_tokens: int = 64,
        has_instructions: bool = True,
    ) -> None:
        self.name = f"demonstrations of {agent.name}"
        self.protocol: str = protocol
        self._agent = agent
        self._layout = Format(tokenizer)
        self._limits = Limits(max_context, max_new_tokens, get_compaction("drop-oldest"))
        self._has_instructions = has_instructions

    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play one episode after the other.

        Raises:
            ConfigurationError: A call cannot be written in the protocol, or not in so few tokens.
        """
        for episode in episodes:
            yield self._play(episode)

    def _play(self, episode: RunningEpisode) -> Trajectory:
        if episode.protocol is None:
            raise ConfigurationError("a demonstrator writes text: the episode needs a protocol")
        talk = Talk(episode, self._layout, self._limits, has_instructions=self._has_instructions)
        agent = self._agent(episode.search_env)
        agent.reset(episode.question, episode.info)
        while True:
            shown = episode.turns[-1].observation if episode.turns else episode.question
            call = agent.act(shown, episode.info)
            text = episode.protocol.write(call, space=" ")
            ids = self._layout.plain(text)
            if len(ids) > self._limits.max_new_tokens:
                raise ConfigurationError(
                    f"a demonstrated reply takes {len(ids)} tokens, {text!r:.80}; "
                    f"raise max_new_tokens={self._limits.max_new_tokens}"
                )
            for token in ids:
                talk.take(token, 0.0)
            trajectory = talk.end(text, is_cut=False)
            if trajectory is not None:
                return trajectory


def demonstrate(
    demonstrator: Demonstrator, world: World, *, episodes: int, seed: int
) -> list[Trajectory]:
    """Return demonstrations in a world: right ones, in which no name is used before it was seen."""
    played = generate(
        demonstrator,
        world.environment,
        episodes=episodes,
        seed=seed,
        arguments=world.arguments,
        options=world.options,
    )
    return list(CausallyGrounded()(Correct()(played)))
