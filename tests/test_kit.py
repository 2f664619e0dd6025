"""The conformance kit is itself tested: each check is seen to fail."""

from functools import partial

import pytest
from wrong_envs import WRONG

import seekgym.testing
from seekgym.envs import QAEnv
from seekgym.testing import CHECKS, Case, CheckFailedError, run_check


def name_of(case):
    return case.make.args[0].__name__ if isinstance(case.make, partial) else case.make.__name__


PAIRS = [(check, case) for check, cases in WRONG.items() for case in cases]


def test_every_check_has_an_environment_that_fails_it():
    assert set(WRONG) == set(CHECKS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("check", "case"), PAIRS, ids=[f"{check}-{name_of(case)}" for check, case in PAIRS]
)
def test_check_sees_what_is_wrong(check, case):
    with pytest.raises(CheckFailedError, match=f"^{check}: "):
        run_check(check, case)


@pytest.mark.parametrize("check", [check for check in CHECKS if check != "gymnasium"])
def test_right_environment_passes(check):
    run_check(check, Case(QAEnv))


@pytest.mark.parametrize("check", [check for check in CHECKS if check != "own_vector"])
def test_right_menu_passes(check):
    run_check(check, Case.of_id("seekgym/QAMenu-v0"))


def test_check_reports_every_failure_in_one_error():
    with pytest.raises(CheckFailedError, match=r"(?s)seekgym/QA-v0 fails:.*oracle: .*boom"):
        seekgym.testing.check("seekgym/QA-v0", only=["oracle"], rewards=[_Explodes()])


class _Explodes(seekgym.envs.rewards.ExactMatch):
    def value(self, outcome):
        raise RuntimeError("boom")
