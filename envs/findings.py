"""One line of a certificate: what was found, and whether it is as it must be."""

from typing import NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """What was found about an environment's tasks.

    Attributes:
        name: What was looked at.
        figure: What was found, in a few words.
        is_met: Whether it is as it must be; None where nothing is asked for.
    """

    name: str
    figure: str
    is_met: bool | None = None
