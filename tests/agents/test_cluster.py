"""The same rollouts over a real Ray, which is started on this machine and stopped again."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from wandering import Dying, WanderingPolicy, lines

from seekgym.agents.rollouts import RayWorkers, UntilVariance, generate, generate_groups
from seekgym.corpora import BackendError, ConfigurationError, MissingExtraError

KIT = str(Path(__file__).parent.parent / "kit")
ROLLOUT = {"episodes": 20, "group_size": 4, "seed": 3}
# Ray leaves files open in places, and so does its start of processes.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def ray_processes():
    """Return the ids of the processes of Ray that descend from this one."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            names[int(folder.name)] = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(folder.name)] = int(re.search(r"\) \S (\d+)", stat)[1])
    return {pid for pid, name in names.items() if b"ray" in name and _is_below(pid, parents)}


def _is_below(pid, parents):
    while pid in parents:
        pid = parents[pid]
        if pid == os.getpid():
            return True
    return False


@pytest.fixture(scope="module")
def here():
    return lines(generate(WanderingPolicy(cuts=0.1), "seekgym/QA-v0", **ROLLOUT))


def test_what_is_played_does_not_depend_on_the_number_of_workers(here, tmp_path):
    before = ray_processes()
    with RayWorkers(1, episodes=6) as one:
        import ray  # only now: RayWorkers says before its import that it is to stay on loopback

        assert [node["NodeManagerAddress"] for node in ray.nodes()] == ["127.0.0.1"]
        policy = WanderingPolicy(cuts=0.1)
        heard = []
        rollout = ROLLOUT | {"workers": one, "on_finished": lambda each: heard.append(each.id)}
        assert lines(generate(policy, "seekgym/QA-v0", **rollout)) == here
        assert sorted(heard) == sorted({f"{g}-{m}" for g in range(5) for m in range(4)})
        assert ray_processes() > before
        # while Ray runs, other workers use it and leave it running
        for count in (2, 3):
            workers = RayWorkers(count, episodes=6)
            made = generate(policy, "seekgym/QA-v0", workers=workers, **ROLLOUT)
            assert lines(made) == here
            assert ray.is_initialized()
        made = generate(lambda: WanderingPolicy(cuts=0.1), "seekgym/QA-v0", workers=one, **ROLLOUT)
        assert lines(made) == here
        sizes = UntilVariance(first=1, step=1, most=2)
        grown = [
            lines(
                generate_groups(
                    policy, "seekgym/QA-v0", groups=4, allocation=sizes, workers=workers
                )
            )
            for workers in (None, one)
        ]
        assert grown[0] == grown[1]
        # a worker that dies is replaced, and its episodes are played again
        kept = lines(generate(WanderingPolicy(), "seekgym/QA-v0", **ROLLOUT))
        mark = tmp_path / "died"
        died = generate(Dying(str(mark)), "seekgym/QA-v0", workers=one, **ROLLOUT)
        assert mark.exists()
        assert lines(died) == kept
        one.restarts = 0
        with pytest.raises(BackendError, match="1 Ray actors died in one rollout"):
            generate(Dying(None), "seekgym/QA-v0", workers=one, **ROLLOUT)
        # what is wrong with an argument is said as it is without workers
        with pytest.raises(ConfigurationError, match="seekgym/Nothing"):
            generate(policy, "seekgym/Nothing-v0", workers=one, **ROLLOUT)
    assert not ray.is_initialized()
    deadline = time.monotonic() + 20
    while ray_processes() > before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ray_processes() == before


SLOW = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # not ignored, as CI may have it
sys.path.append({kit!r})
from wandering import WanderingPolicy
import seekgym
from seekgym.agents.rollouts import RayWorkers, generate

class Slow(WanderingPolicy):
    def play(self, episodes):
        for episode in episodes:
            with open(os.path.join({folder!r}, str(os.getpid())), "w"):
                time.sleep(100)
            yield episode.finish()

generate(Slow(), "seekgym/QA-v0", episodes=40, workers=RayWorkers(2, episodes=2))
"""


def test_an_interrupt_stops_the_actors(tmp_path):
    script = SLOW.format(kit=KIT, folder=str(tmp_path))
    driver = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2:
        assert time.monotonic() < deadline
        assert driver.poll() is None
        time.sleep(0.1)
    actors = [int(path.name) for path in tmp_path.iterdir()]
    os.kill(driver.pid, signal.SIGINT)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode != 0
    assert "KeyboardInterrupt" in said
    deadline = time.monotonic() + 60
    while any(map(_is_alive, actors)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _is_alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_without_ray_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"seekgym\[ray\]"):
        generate(WanderingPolicy(), "seekgym/QA-v0", episodes=1, workers=RayWorkers(1))


@pytest.mark.parametrize("wrong", [{"count": 0}, {"episodes": 0}, {"restarts": -1}])
def test_arguments_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        RayWorkers(**({"count": 1} | wrong))
