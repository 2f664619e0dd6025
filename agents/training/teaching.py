"""What the tutor would have said in a policy's place: targets in the states that the policy saw.

A learner that only ever sees its teacher's states does not know what to do after a mistake of its
own. So the policy plays, and the teacher says at each turn what it would do there: DAgger (Ross,
Gordon and Bagnell 2011, arXiv:1011.0686), with cross-entropy on the teacher's tokens.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...corpora.errors import ConfigurationError
from ...corpora.tasks import ProofStep
from ...envs.wrappers import TextProtocol
from ..llm.formats import Format
from ..rollouts.trajectory import Segment, Trajectory
from ..tutor import TutorAgent
from .tokens import Episode

__all__ = ["PathTutor", "advise", "lesson"]


class PathTutor(TutorAgent):
    """The tutor, taking over where somebody else has played.

    A fact that was read is not asked for again, whoever asked for it. A query that this path has
    tried in vain is followed by what the tutor does then: it opens the document if it was listed.
    Where the proof cannot be gone on with, there is no advice, rather than the answer "unknown".
    """

    name = "tutor on a path"

    def advise(
        self, observations: Sequence[str], calls: Sequence[Any], info: Mapping[str, Any]
    ) -> Any:
        """Return the tutor's next call, or None.

        Args:
            observations: What was read so far, the question first.
            calls: What was called so far.
            info: The latest ``info``.

        Raises:
            ConfigurationError: The task has no proof.
        """
        task = self._task
        if not task.proof:
            raise ConfigurationError(
                f"task {task.id!r} has no proof, so the tutor cannot teach it; use tasks with "
                "proofs, such as those of seekgym/Phantom-50-v0, or a model as teacher"
            )
        seen, documents = "\n".join(observations), set(info["documents"])
        steps = zip(task.proof, self._steps, strict=True)
        self._steps = deque(
            plan for step, plan in steps if not self._was_read(step, seen, documents)
        )
        has_found = not self._steps
        for _ in range(2):  # the query, then the document that it listed
            call = self.act(seen, {**info, "documents": ()})
            if not has_found and call == self._answer("unknown"):
                return None
            if call not in calls:
                return call
        return None

    def _was_read(self, step: ProofStep, seen: str, documents: set[str]) -> bool:
        """Tell whether a fact was shown: word for word, if its document has it so."""
        text = self._search_env.corpus[step.document].text
        stated = [part for part in step.fact.split(". ") if part.strip() and part in text]
        return all(part in seen for part in stated) if stated else step.document in documents


def advise(trajectory: Trajectory, env: TextProtocol) -> list[str | None]:
    """Return the tutor's reply for each turn of a trajectory, in the state before that turn.

    Args:
        trajectory: What somebody played.
        env: An environment of the same world, with the same protocol around it.

    Returns:
        For each turn the text of a reply; None where the tutor has nothing to say.

    Raises:
        ConfigurationError: The environment is of another world, or the task has no proof.
    """
    question, info = env.reset(seed=trajectory.seed, options={"task": trajectory.task_id})
    _check(info["env_hash"] == trajectory.env_hash, trajectory)
    observations, documents = [str(info.get("text", question))], set[str]()
    calls: list[Any] = []
    replies: list[str | None] = []
    for turn in trajectory.turns:
        tutor = PathTutor(env)
        tutor.reset(question, info)
        call = tutor.advise(observations, calls, {**info, "documents": sorted(documents)})
        replies.append(None if call is None else env.protocol.write(call, space=" "))
        observation, _, _, _, info = env.step(turn.action)
        observations.append(str(info.get("text", observation)))
        _check(observations[-1] == turn.observation, trajectory)
        documents.update(info["documents"])
        if isinstance(turn.action, str):
            calls.append(_bare(env.protocol.decode(turn.action)))
    return replies


def lesson(trajectory: Trajectory, replies: Sequence[str | None], layout: Format) -> Episode:
    """Return the tutor's replies as tokens, each after exactly the tokens that the policy saw.

    Args:
        trajectory: What a language model played: it has segments and spans.
        replies: What the tutor says at each turn; None leaves the turn out.
        layout: Turns texts into ids, as for the policy.

    Returns:
        One segment a turn: the policy's own context up to that turn, then the tutor's reply, which
        alone counts.
    """
    segments, turns = [], []
    for number, (turn, reply) in enumerate(zip(trajectory.turns, replies, strict=True)):
        if reply is None or turn.span is None:
            continue
        place, first, _ = turn.span
        context, target = trajectory.segments[place].ids[:first], tuple(layout.plain(reply))
        given, drawn = (0,) * len(context), (1,) * len(target)
        segments.append(Segment(context + target, given + drawn, (0.0,) * len(given + drawn)))
        turns.append(np.array([-1] * len(context) + [number] * len(target), dtype=np.int64))
    return Episode(tuple(segments), tuple(turns), tuple(np.zeros(len(t)) for t in turns))


def _bare(action: Any) -> Any:
    """Return a call as an agent makes it: without notes, its arguments without spaces around."""
    if not isinstance(action, Mapping) or "arguments" not in action:
        return None
    arguments = {name: _stripped(value) for name, value in action["arguments"].items()}
    return {"name": action["name"], "arguments": arguments}


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def _check(is_same: bool, trajectory: Trajectory) -> None:
    if not is_same:
        raise ConfigurationError(
            f"trajectory {trajectory.id!r} of task {trajectory.task_id!r} does not play again as "
            "it was played; pass an environment of the same world and protocol"
        )
