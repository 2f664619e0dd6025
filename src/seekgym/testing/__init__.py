"""The public conformance kit: does an environment keep the contract?

Example:
    >>> import seekgym.testing
    >>> seekgym.testing.check("seekgym/QA-v0")  # doctest: +SKIP
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..corpora.errors import raise_unknown
from .contract import (
    check_backend_failure,
    check_documentation,
    check_ends,
    check_gymnasium,
    check_hostile_actions,
    check_info,
    check_rewards,
    check_spaces,
)
from .menus import check_menu
from .players import check_oracle, check_random, check_replay
from .probe import Case, CheckFailedError, failing
from .sameness import (
    check_copies,
    check_determinism,
    check_interleaving,
    check_processes,
    check_snapshots,
    check_threads,
)
from .vectors import check_async_vector, check_own_vector, check_shared_memory

__all__ = ["CHECKS", "Case", "CheckFailedError", "check", "run_check"]

CHECKS: dict[str, Callable[[Case], None]] = {
    function.__name__.removeprefix("check_"): function
    for function in (
        check_gymnasium,
        check_spaces,
        check_info,
        check_hostile_actions,
        check_rewards,
        check_ends,
        check_backend_failure,
        check_documentation,
        check_determinism,
        check_interleaving,
        check_copies,
        check_snapshots,
        check_threads,
        check_processes,
        check_async_vector,
        check_shared_memory,
        check_own_vector,
        check_oracle,
        check_random,
        check_replay,
        check_menu,
    )
}


def check(env_id: str, *, only: str | Sequence[str] = (), **arguments: Any) -> None:
    """Run every check, or those named in ``only``, on a registered environment.

    An id may be ``module:id``: other processes, which some checks start, then import the module
    that registers it.

    Raises:
        CheckFailedError: With one line for each check that failed.
        ConfigurationError: There is no check of a name.
    """
    names = [only] if isinstance(only, str) else list(only or CHECKS)
    for name in names:
        if name not in CHECKS:
            raise_unknown("check", name, CHECKS)
    case = Case.of_id(env_id, **arguments)
    failures = []
    for name in names:
        try:
            run_check(name, case)
        except CheckFailedError as error:
            failures.append(str(error))
    if failures:
        raise CheckFailedError(f"{env_id} fails:\n" + "\n".join(failures))


def run_check(name: str, case: Case) -> None:
    """Run one check on a case.

    Raises:
        CheckFailedError: With the check's name and what was wrong.
    """
    with failing(name):
        CHECKS[name](case)
