"""Search environments for agents: importing registers them with Gymnasium and does no more.

Example:
    >>> import gymnasium as gym, seekgym
    >>> env = gym.make("seekgym/QA-v0")
    >>> question, info = env.reset(seed=0)
"""

from .registration import register_all
from .version import __version__

__all__ = ["__version__", "register_all"]

register_all()
