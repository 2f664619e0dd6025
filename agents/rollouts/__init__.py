"""Episodes: played, written down, read, and played again."""

from .generate import generate, resume
from .grounding import ungrounded
from .play import play, replay
from .running import EpisodePlan, Reply, RunningEpisode, Start
from .trajectory import (
    Segment,
    Trajectory,
    Turn,
    encodable,
    read_trajectories,
    write_trajectories,
)

__all__ = [
    "EpisodePlan",
    "Reply",
    "RunningEpisode",
    "Segment",
    "Start",
    "Trajectory",
    "Turn",
    "encodable",
    "generate",
    "play",
    "read_trajectories",
    "replay",
    "resume",
    "ungrounded",
    "write_trajectories",
]
