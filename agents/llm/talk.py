"""One episode as a language model sees it: its tokens, what it drew, what its context holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...corpora.errors import ConfigurationError
from ..rollouts.running import Reply, RunningEpisode
from ..rollouts.trajectory import Segment, Trajectory
from .constraint import Guide
from .context import Compaction, Past
from .formats import Format

__all__ = ["Limits", "Talk"]

_DROPPED = "(An earlier result was dropped to make room.)"
_CUT = " … (cut)"
_ASK = "The context is nearly full. Write down, in a few sentences, what was found so far."
_FOUND = "\n\nWhat was found so far: "
_LEAST_OBSERVATION = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What an episode's tokens may take.

    Attributes:
        max_context: The longest context, in tokens.
        max_new_tokens: The longest reply.
        compaction: What to do when the context is full.
    """

    max_context: int
    max_new_tokens: int
    compaction: Compaction


class Talk:
    """The tokens of a running episode.

    ``ids`` is the context: what the model has read and written since the last compaction. The
    policy calls ``give`` and ``take`` for each token of a reply, then ``end``.

    Args:
        episode: What is played.
        layout: Turns texts into ids.
        limits: Budgets and compaction.
        has_instructions: Whether the context begins with the protocol's instructions.

    Raises:
        ConfigurationError: The instructions and the question leave too little room.
    """

    def __init__(
        self,
        episode: RunningEpisode,
        layout: Format,
        limits: Limits,
        *,
        has_instructions: bool = True,
    ) -> None:
        self.episode = episode
        self.generator = episode.generator
        self.guide: Guide | None = None
        self._layout = layout
        self._limits = limits
        self._instructions = episode.system_prompt if has_instructions else ""
        self._start = layout.start(self._instructions, episode.question)
        self._notice = layout.observation(_DROPPED)
        self._observation_limit = self._room_for_an_observation()
        self._segments: list[Segment] = []
        self._past: list[Past] = []
        self._is_summary = False
        self._begin(self._start)
        self._usage = {"sampled_tokens": 0, "given_tokens": 0, "compactions": 0}
        if episode.turns:
            self._go_on()
        self._reply_start = len(self.ids)

    @property
    def reply(self) -> list[int]:
        """The ids of the running reply."""
        return self.ids[self._reply_start :]

    @property
    def is_summary(self) -> bool:
        """Whether the running reply is a summary, no turn."""
        return self._is_summary

    @property
    def is_full(self) -> bool:
        """Whether the running reply has as many tokens as it may have."""
        limit = self._limits.max_new_tokens
        if self._is_summary:
            limit = self._limits.compaction.summary_tokens
        return len(self.ids) - self._reply_start >= limit

    def give(self, ids: Sequence[int]) -> None:
        """Append ids that the policy did not draw."""
        self.ids.extend(ids)
        self._mask.extend([0] * len(ids))
        self._log_probs.extend([0.0] * len(ids))

    def take(self, token: int, log_prob: float) -> None:
        """Append an id that the policy drew."""
        self.ids.append(token)
        self._mask.append(1)
        self._log_probs.append(log_prob)

    def end(self, text: str, *, is_cut: bool) -> Trajectory | None:
        """End the running reply; return the trajectory if the episode is over.

        Args:
            text: What was written.
            is_cut: Whether the policy was stopped before its end.
        """
        if self._is_summary:
            self._fold()
            return None
        span = (len(self._segments), self._reply_start, len(self.ids))
        reply = Reply(text, "length" if is_cut else "stop", span)
        observation = self.episode.send(reply)
        if observation is None:
            self._close_segment()
            return self.episode.finish(self._segments, usage=self._usage)
        self._append(observation)
        return None

    def _append(self, observation: str) -> None:
        """Append an observation; if the next reply would not fit, compact the past first."""
        reply = self.reply
        rest = self._observation(observation, reply)
        self._past.append(Past(tuple(reply), tuple(rest)))
        spare = self._limits.max_new_tokens + self._summary_room
        if len(self.ids) + len(rest) + spare <= self._limits.max_context:
            self.give(rest)
        elif self._limits.compaction.summary_tokens:
            self.give(self._layout.observation(_ASK, last=reply[-1] if reply else None))
            self._is_summary = True
        else:
            self._compact(self._start)
        self._reply_start = len(self.ids)

    def _observation(self, text: str, reply: Sequence[int]) -> list[int]:
        """Return the ids between a reply and the next; a text that is too long is cut."""
        last = reply[-1] if reply else None
        ids = self._layout.plain(text)
        if len(ids) > self._observation_limit:
            cut = self._layout.plain(_CUT)
            ids = ids[: self._observation_limit - len(cut)] + cut
        return self._layout.between(ids, last=last)

    def _fold(self) -> None:
        """Begin a new segment with the summary that was just written."""
        summary = [token for token in self.reply if token not in self._layout.eos]
        self._is_summary = False
        head = [*self._layout.plain(_FOUND), *summary]
        episode = self.episode
        start = self._layout.start(self._instructions, episode.question, extra=head)
        self._compact(start)
        self._reply_start = len(self.ids)

    def _compact(self, start: list[int]) -> None:
        room = self._limits.max_context - len(start) - self._limits.max_new_tokens
        room -= self._summary_room
        kept = self._limits.compaction.compact(self._past, room, self._notice)
        self._close_segment()
        self._past = list(kept)
        self._begin([*start, *(i for turn in kept for i in (*turn.reply, *turn.rest))])
        self._usage["compactions"] += 1

    def _begin(self, ids: Sequence[int]) -> None:
        self.ids = list(ids)
        self._mask = [0] * len(self.ids)
        self._log_probs = [0.0] * len(self.ids)

    def _close_segment(self) -> None:
        segment = Segment(tuple(self.ids), tuple(self._mask), tuple(self._log_probs))
        self._segments.append(segment)
        sampled = sum(self._mask)
        self._usage["sampled_tokens"] += sampled
        self._usage["given_tokens"] += len(self.ids) - sampled

    def _go_on(self) -> None:
        """Take over the turns that the episode began with."""
        shared = self.episode.shared_segments
        turns = self.episode.turns
        if not shared:  # they were not played by a language model: encode them, once
            for turn in turns:
                reply = self._layout.plain(str(turn.action))
                rest = self._observation(turn.observation, reply)
                self._past.append(Past(tuple(reply), tuple(rest)))
            self._begin(
                [*self._start, *(i for past in self._past for i in (*past.reply, *past.rest))]
            )
            return
        self._segments = list(shared[:-1])
        last = shared[-1]
        self.ids, self._mask = list(last.ids), list(last.mask)
        self._log_probs = list(last.log_probs)
        spans = [turn.span for turn in turns if turn.span and turn.span[0] == len(shared) - 1]
        ends = [span[1] for span in spans[1:]] + [len(self.ids)]
        self._past = [
            Past(tuple(self.ids[span[1] : span[2]]), tuple(self.ids[span[2] : end]))
            for span, end in zip(spans, ends, strict=True)
        ]
        if spans and not self._past[-1].rest:  # put aside right after a reply
            self._reply_start = spans[-1][1]
            self._past.pop()
            self._append(turns[-1].observation)

    @property
    def _summary_room(self) -> int:
        summary = self._limits.compaction.summary_tokens
        return summary + len(self._layout.observation(_ASK)) if summary else 0

    def _room_for_an_observation(self) -> int:
        limits = self._limits
        fixed = len(self._start) + 2 * limits.max_new_tokens + len(self._layout.between([]))
        if limits.compaction.summary_tokens:
            fixed += 2 * self._summary_room + len(self._layout.plain(_FOUND))
        room = limits.max_context - fixed
        if room < _LEAST_OBSERVATION:
            raise ConfigurationError(
                f"max_context={limits.max_context} is too little: instructions and question take "
                f"{len(self._start)} tokens, and {limits.max_new_tokens} are kept for a reply; "
                f"at least {fixed + _LEAST_OBSERVATION} are needed"
            )
        return room
