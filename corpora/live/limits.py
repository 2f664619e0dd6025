"""What fetching may cost, and how politely it goes about it."""

import math
from dataclasses import dataclass, fields

from ..errors import ConfigurationError

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one fetch may cost, and how politely hosts are asked.

    Attributes:
        total_s: The longest that a fetch takes, redirects, waits and retries together.
        connect_s: The longest that connecting to one address takes.
        max_bytes: The longest body, decompressed; a longer one is an error, never cut.
        redirects: How many redirects are followed.
        retries: How often a request is sent again after 429, 5xx or a broken connection.
        first_wait_s: The wait before the first retry; each further one is twice as long. A longer
            ``Retry-After`` is waited for if it fits into what is left of ``total_s``.
        at_once: How many requests one host gets at a time.
        delay_s: The least time between the beginnings of two requests to one host.
    """

    total_s: float = 20.0
    connect_s: float = 5.0
    max_bytes: int = 5_000_000
    redirects: int = 8
    retries: int = 2
    first_wait_s: float = 0.5
    at_once: int = 4
    delay_s: float = 0.1

    def __post_init__(self) -> None:
        """Check the range of each value."""
        least = {"total_s": 0.001, "connect_s": 0.001, "max_bytes": 1, "at_once": 1}
        for field in fields(self):
            value = getattr(self, field.name)
            floor = least.get(field.name, 0)
            if not isinstance(value, (int, float)) or not floor <= value < math.inf:
                raise ConfigurationError(
                    f"limits.{field.name} must be at least {floor}, got {value!r}"
                )
