"""Episodes: played, written down, read, and played again."""

from .play import play, replay
from .trajectory import Trajectory, Turn, read_trajectories, write_trajectories

__all__ = ["Trajectory", "Turn", "play", "read_trajectories", "replay", "write_trajectories"]
