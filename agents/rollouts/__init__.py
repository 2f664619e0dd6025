"""Episodes: played, written down, read, and played again."""

from .grounding import ungrounded
from .play import play, replay
from .trajectory import Trajectory, Turn, encodable, read_trajectories, write_trajectories

__all__ = [
    "Trajectory",
    "Turn",
    "encodable",
    "play",
    "read_trajectories",
    "replay",
    "ungrounded",
    "write_trajectories",
]
