"""Rollouts over a Ray cluster: environments and policies live in actors."""

import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import gymnasium as gym

from ...corpora.errors import BackendError, MissingExtraError
from ...envs.rules import check_at_least
from .generate import in_order, make_policy, play_plans
from .pool import EnvironmentPool
from .running import EpisodePlan
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = ["RayWorkers"]

_STORE_BYTES = 200_000_000
_START_S = 120.0
_LOCAL = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # without it Ray listens beyond loopback
}


class RayWorkers:
    """Plays a rollout in Ray actors: ``generate(..., workers=RayWorkers(2))``.

    Each actor makes its own policy and environments and plays pieces of the rollout, which are
    cut alike whatever the number of actors: results do not depend on it. An actor that dies is
    replaced and its piece is played again; a piece comes back whole or not at all.

    If Ray runs already it is used and left running; else a cluster on this machine alone is
    started, on loopback unless ``ray`` was imported before, and stopped at the end. As a context
    manager the actors stay from one rollout to the next, which saves the seconds of their start.
    An environment that no import registers is passed as an object, or as ``module:Id``.

    Args:
        count: How many actors.
        episodes: How many episodes an actor takes at a time.
        address: The address of a running cluster, as ``ray.init`` takes it.
        gpus: The share of a GPU that each actor holds.
        restarts: How many deaths of actors a rollout bears.

    Raises:
        ConfigurationError: A number is out of range.
    """

    def __init__(
        self,
        count: int,
        *,
        episodes: int = 16,
        address: str | None = None,
        gpus: float = 0.0,
        restarts: int = 3,
    ) -> None:
        check_at_least("count", count, 1)
        check_at_least("episodes", episodes, 1)
        check_at_least("restarts", restarts, 0)
        self.count = count
        self.episodes = episodes
        self.address = address
        self.gpus = gpus
        self.restarts = restarts
        self._ray: ModuleType | None = None
        self._is_ours = False
        self._actors: list[Any] = []

    def __enter__(self) -> Self:
        """Start Ray, if it does not run, and the actors.

        Raises:
            MissingExtraError: Ray is not installed.
        """
        is_local = self.address is None and "RAY_ADDRESS" not in os.environ
        if is_local:
            for name, value in _LOCAL.items():
                os.environ.setdefault(name, value)
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "ray") from None
        if not ray.is_initialized():
            ray.init(self.address, **(self._local_settings() if is_local else {}))
            self._is_ours = True
        self._ray = ray
        self._actors = [self._start(ray) for _ in range(self.count)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the actors, and Ray if it was started here."""
        ray, self._ray = self._ray, None
        if ray is None:
            return
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        if self._is_ours:
            ray.shutdown()
            self._is_ours = False

    def play(
        self,
        policy: "Policy | Callable[[], Policy]",
        environment: str | gym.Env[Any, Any],
        arguments: Mapping[str, Any] | None,
        plans: Sequence[EpisodePlan],
    ) -> Iterator[Trajectory]:
        """Give each plan's trajectory, in any order.

        Raises:
            BackendError: More actors died than may.
        """
        if self._ray is None:
            with self:
                yield from self.play(policy, environment, arguments, plans)
            return
        # what is importable here is to be importable there
        pickled = self._ray.cloudpickle.dumps((policy, environment, arguments))
        job = self._ray.put((sys.path, pickled))
        pieces = deque(
            plans[start : start + self.episodes] for start in range(0, len(plans), self.episodes)
        )
        yield from self._share_out(self._ray, job, pieces)

    def _share_out(
        self, ray: ModuleType, job: Any, pieces: deque[Sequence[EpisodePlan]]
    ) -> Iterator[Trajectory]:
        """Give the pieces to actors that are ready, and what comes back."""
        deaths = 0
        # what each actor is at: its place, and its piece; none while it is being started
        work: dict[Any, tuple[int, Sequence[EpisodePlan]]] = {
            actor.is_ready.remote(): (place, ()) for place, actor in enumerate(self._actors)
        }
        missing = sum(map(len, pieces))
        while missing:
            is_played = any(piece for _, piece in work.values())
            ready, _ = ray.wait(list(work), timeout=None if is_played else _START_S)
            if not ready:
                raise BackendError(
                    f"no Ray actor could be started within {_START_S} s; an actor needs "
                    f"gpus={self.gpus}, the cluster has free: {ray.available_resources()}"
                )
            done = ready[0]
            place, piece = work.pop(done)
            try:
                played = ray.get(done) if piece else ()
            except ray.exceptions.RayActorError as error:
                deaths += 1
                self._actors[place] = self._start(ray)
                if deaths > self.restarts:
                    raise BackendError(
                        f"{deaths} Ray actors died in one rollout, the last one with: {error}"
                    ) from error
                work[self._actors[place].is_ready.remote()] = (place, ())
                if piece:
                    pieces.appendleft(piece)
                continue
            missing -= len(played)
            yield from played
            if pieces:
                piece = pieces.popleft()
                work[self._actors[place].play.remote([job], piece)] = (place, piece)

    def _start(self, ray: ModuleType) -> Any:
        # no CPU is asked for: where there are fewer than actors, they share them
        options = {"num_cpus": 0, "num_gpus": self.gpus, "scheduling_strategy": "SPREAD"}
        return ray.remote(**options)(_Player).remote()

    def _local_settings(self) -> dict[str, Any]:
        return {
            "num_cpus": self.count,
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
            "log_to_driver": False,
            "logging_level": "error",
        }


class _Player:
    """Lives in an actor: plays pieces of a rollout."""

    def __init__(self) -> None:
        self._job: Any = None
        self._policy: Policy | None = None
        self._pools: dict[str, EnvironmentPool] = {}

    def is_ready(self) -> bool:
        """Say that the actor runs."""
        return True

    def play(self, job: list[Any], plans: Sequence[EpisodePlan]) -> list[Trajectory]:
        """Play some plans; the job is fetched when it is a new one."""
        import ray

        if job[0] != self._job:
            path, pickled = ray.get(job[0])
            sys.path.extend(each for each in path if each not in sys.path)
            policy, environment, arguments = pickle.loads(pickled)
            self._policy = make_policy(policy)
            self._pool = self._pool_of(environment, arguments, self._policy.protocol)
            self._job = job[0]
        if self._policy is None:
            raise BackendError("the actor was given no policy")
        return list(in_order(play_plans(self._policy, self._pool, plans), plans))

    def _pool_of(
        self,
        environment: str | gym.Env[Any, Any],
        arguments: Mapping[str, Any] | None,
        protocol: str | None,
    ) -> EnvironmentPool:
        """Return the environments, those of an earlier job if they are the same."""
        if not isinstance(environment, str):
            return EnvironmentPool(environment, arguments, protocol=protocol)
        key = repr((environment, sorted((arguments or {}).items()), protocol))
        if key not in self._pools:
            self._pools = {key: EnvironmentPool(environment, arguments, protocol=protocol)}
        return self._pools[key]
