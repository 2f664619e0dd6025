"""The registered environments as parameters of tests; the large ones are for exhaustive runs."""

import pytest

from seekgym.registration import ENVIRONMENTS


def every_environment():
    """Return a parameter for each registered environment."""
    return [
        pytest.param(
            environment,
            id=environment.id,
            marks=pytest.mark.exhaustive if environment.is_large else (),
        )
        for environment in ENVIRONMENTS
    ]
