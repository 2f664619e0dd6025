"""Every check of the public kit, on every registered environment."""

import pytest

from seekgym.envs.registration import ENVIRONMENTS
from seekgym.testing import CHECKS, Case, run_check


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda environment: environment.id)
def test_environment_keeps_the_contract(environment, check):
    run_check(check, Case.of_id(environment.id))
