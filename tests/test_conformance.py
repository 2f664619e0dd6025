"""Every check of the public kit, on every registered environment."""

import pytest
from registered import every_environment

from seekgym.testing import CHECKS, Case, run_check


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("environment", every_environment())
def test_environment_keeps_the_contract(environment, check):
    run_check(check, Case.of_id(environment.id))
