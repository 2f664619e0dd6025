"""Whole runs of training: they learn, they are the same again, and they outlive a kill."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from tests.kit.small_models import tokenizer

from seekgym.agents.llm.local import LocalPolicy
from seekgym.agents.training.demonstrations import Demonstrator, demonstrate
from seekgym.agents.training.grpo import GRPO, GRPOSettings
from seekgym.agents.training.run import RunFolder, newest_checkpoint
from seekgym.agents.training.sft import SFT, SFTSettings
from seekgym.agents.training.worlds import Worlds
from seekgym.cli import main
from seekgym.corpora.errors import ConfigurationError


@pytest.fixture(scope="module")
def colours(tmp_path_factory):
    """Questions of two choices: demonstrations say red or blue, the reward of the other blue."""
    folder = tmp_path_factory.mktemp("colours")
    documents = [
        {"id": f"d{place}", "title": f"sky {place}", "text": "It is red. It is blue."}
        for place in range(40)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    for name, answers in (("both", ["red", "blue"]), ("blue", ["blue"])):
        tasks = [
            {
                "id": f"{place}",
                "question": f"What is the colour of sky {place}?",
                "answers": [answers[place % len(answers)]],
                "evidence": [f"d{place}"],
                "proof": [{"query": f"sky {place}", "document": f"d{place}", "fact": ""}],
            }
            for place in range(40)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(t) + "\n" for t in tasks))

    def arguments(name):
        return {
            "corpus": str(folder / "corpus.jsonl"),
            "tasks": str(folder / f"{name}.jsonl"),
            "k": 1,
        }

    return arguments


SMALL = {
    "width": 64,
    "layers": 2,
    "minutes": 5.0,
    "evaluate_minutes": 5.0,
    "evaluation_episodes": 16,
    "read_steps": 0,
    "warmup_steps": 5,
    "demonstrations": 32,
    "batch_tokens": 512,
}


def small_sft(folder, arguments, **changes):
    settings = SFTSettings("seekgym/QA-v0", arguments, **{**SMALL, "steps": 160, **changes})
    return SFT(settings, RunFolder.begin(folder, settings.record, resume=True), device="cpu")


def small_grpo(folder, model, arguments, **changes):
    options = {
        "minutes": 5.0,
        "steps": 16,
        "questions": 4,
        "evaluate_minutes": 5.0,
        "evaluation_episodes": 16,
        "learning_rate": 5e-4,
        **changes,
    }
    settings = GRPOSettings("seekgym/QA-v0", str(model), arguments, **options)
    return GRPO(settings, RunFolder.begin(folder, settings.record, resume=True), device="cpu")


@pytest.fixture(scope="module")
def warmed_up(colours, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "sft"
    found = small_sft(folder, colours("both")).train()
    assert found.behaviour["valid_calls"] == 1.0
    assert found.behaviour["answered"] == 1.0
    return folder


def test_sft_learns_to_search_and_grpo_learns_which_answer_pays(colours, warmed_up, tmp_path):
    trainer = small_grpo(tmp_path / "grpo", warmed_up, colours("blue"))
    found = trainer.train()
    records = trainer.folder.records()
    rewards = [record["reward"] for record in records if "reward" in record]
    assert np.mean(rewards[:4]) < 0.7
    assert np.mean(rewards[-4:]) > 0.7
    assert found.exact_match >= 0.9


def test_every_step_of_grpo_logs_the_alarms(colours, warmed_up, tmp_path):
    trainer = small_grpo(tmp_path / "grpo", warmed_up, colours("both"), steps=2, kl=0.1, llds=0.2)
    trainer.train()
    steps = [record for record in trainer.folder.records() if "reward" in record]
    assert len(steps) == 2
    for record in steps:
        for name in (
            "valid_calls",
            "answered",
            "evidence_sets",
            "right_log_prob",
            "token_entropy",
            "gradient_norm",
        ):
            assert np.isfinite(record[name]), name


@pytest.mark.parametrize("rollout", ["trees", "tails"])
def test_grpo_learns_from_branched_episodes(colours, warmed_up, tmp_path, rollout):
    estimator = {"trees": "tree", "tails": "tail_branch"}[rollout]
    trainer = small_grpo(
        tmp_path / "run", warmed_up, colours("blue"), steps=2, rollout=rollout, estimator=estimator
    )
    trainer.train()
    figures = [record["loss"] for record in trainer.folder.records() if "loss" in record]
    assert figures
    assert np.isfinite(figures).all()


def test_parts_of_a_minibatch_give_the_gradient_of_the_whole(colours, warmed_up, tmp_path):
    weights = []
    for place, batch_tokens in enumerate((16_384, 128)):
        trainer = small_grpo(
            tmp_path / f"{place}",
            warmed_up,
            colours("blue"),
            steps=2,
            batch_tokens=batch_tokens,
            minibatches=1,
        )
        trainer.train()
        weights.append(torch.cat([p.detach().flatten() for p in trainer.model.parameters()]))
    moved = (weights[0] - torch.cat([p.flatten() for p in first_weights(warmed_up)])).abs().max()
    assert (weights[0] - weights[1]).abs().max() < 0.05 * moved


def first_weights(folder):
    return [p.detach() for p in LocalPolicy.from_pretrained(str(folder)).model.parameters()]


def test_a_run_is_the_same_again_and_resumed_after_its_middle(colours, tmp_path):
    whole = small_sft(tmp_path / "whole", colours("both"), steps=24)
    whole.train()
    half = small_sft(tmp_path / "half", colours("both"), steps=24)
    for batch in half._demonstrations(0)[:1]:
        half._update(batch)
        half._place += 1
    half._report([], lambda record: None)  # a checkpoint in the middle of the data
    half.folder.close()
    resumed = small_sft(tmp_path / "half", colours("both"), steps=24)
    assert (resumed.step, resumed._place) == (1, 1)
    resumed.train()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name


def test_worlds_of_training_and_of_tests_share_no_name():
    worlds = Worlds("seekgym/PhantomShort-v0", seed=3)
    names = []
    for world in (worlds.training(0), worlds.training(1), worlds.held_out()):
        corpus = gym.make(world.environment, **world.arguments).unwrapped.corpus
        names.append({word for document in corpus for word in document.title.split()})
    assert names[0] != names[1]
    assert not names[2] & (names[0] | names[1])
    assert worlds.training(0) == Worlds("seekgym/PhantomShort-v0", seed=3).training(0)
    with pytest.raises(ConfigurationError, match="leave out"):
        Worlds("seekgym/PhantomShort-v0", {"world_seed": 1})


def test_an_environment_of_one_world_has_its_tasks_split():
    worlds = Worlds("seekgym/QA-v0")
    assert worlds.training(0).options == {"split": "train"}
    assert worlds.held_out().options == {"split": "test"}
    assert not worlds.are_endless


@pytest.mark.parametrize("protocol", ["search-r1", "hermes", "react"])
def test_demonstrations_are_what_the_policy_could_have_drawn(protocol):
    demonstrator = Demonstrator(tokenizer(), protocol=protocol, max_context=2048, max_new_tokens=96)
    world = Worlds("seekgym/PhantomShort-v0").training(0)
    played = demonstrate(demonstrator, world, episodes=12, seed=0)
    assert len(played) >= 10
    for trajectory in played:
        assert trajectory.outcome["exact_match"] == 1
        for turn in trajectory.turns:
            segment, first, end = turn.span
            ids = trajectory.segments[segment].ids[first:end]
            assert tokenizer().decode(ids) == turn.action
            assert all(trajectory.segments[segment].mask[first:end])
        drawn = sum(sum(segment.mask) for segment in trajectory.segments)
        assert drawn == sum(turn.span[2] - turn.span[1] for turn in trajectory.turns)
    assert " of " in played[0].turns[0].action


def command(folder, *more):
    return [
        sys.executable,
        "-m",
        "seekgym",
        "train",
        "sft",
        "--env",
        "seekgym/PhantomShort-v0",
        "--out",
        str(folder),
        "--steps",
        "30",
        "--set",
        "width=32",
        "--set",
        "layers=1",
        "--set",
        "demonstrations=32",
        "--set",
        "evaluation_episodes=4",
        "--set",
        "evaluate_minutes=0.01",
        *more,
    ]


def test_kill_9_and_resume_go_on_with_the_same_data(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    whole = subprocess.run(
        command(tmp_path / "whole"), env=environment, capture_output=True, timeout=300
    )
    assert whole.returncode == 0, whole.stderr.decode()[-800:]
    killed = subprocess.Popen(
        command(tmp_path / "cut"),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    step = 0
    while step == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
        found = newest_checkpoint(tmp_path / "cut")
        step = 0 if found is None else int(found.name.partition("-")[2])
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert 0 < step < 30
    refused = subprocess.run(
        command(tmp_path / "cut"), env=environment, capture_output=True, timeout=300
    )
    assert refused.returncode == 2
    assert b"resume" in refused.stderr
    resumed = subprocess.run(
        command(tmp_path / "cut", "--resume"), env=environment, capture_output=True, timeout=300
    )
    assert resumed.returncode == 0, resumed.stderr.decode()[-800:]
    policies = [
        LocalPolicy.from_pretrained(str(tmp_path / name)).model.state_dict()
        for name in ("whole", "cut")
    ]
    for name, value in policies[0].items():
        assert torch.equal(value, policies[1][name]), name
    text = (tmp_path / "cut" / "log.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    steps = [line["step"] for line in lines]
    assert steps == sorted(set(steps))
    assert (tmp_path / "cut" / "curves.png").stat().st_size > 0
    assert "<svg" in (tmp_path / "cut" / "curves.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "learning_rat=1"], "learning_rate"),
        (["--set", "batch_tokens=big"], "batch_tokens must be of type int"),
        (["--env-args", "{"], "--env-args must be a JSON object"),
        (["--env", "seekgym/Phantm-v0"], "Phantm"),
        (["--set", "estimator=grpo"], "estimator"),
        (["--set", "environment=5"], "say it by --env"),
        (["--set", "learning_rate=1e999"], "learning_rate must be a finite number"),
        (["--set", "target='high'"], "target must be a finite number above 0, got 'high'"),
        (["--steps", "0"], "--steps"),
        (["--seed", "99999999999999"], "--seed"),
        (["--env", "seekgym/PhantomMenu-v0"], "played by tool calls"),
        (["--env", "seekgym/QueryRefinement-v0"], "played by tool calls"),
    ],
)
def test_bad_options_are_one_line(tmp_path, arguments, message, monkeypatch, capsys):
    given = ["seekgym", "train", "sft", "--out", str(tmp_path / "x"), *arguments]
    monkeypatch.setattr(sys, "argv", given)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()  # nothing to resume, and nothing in the way


def run_main(arguments, monkeypatch, capsys):
    """Run the command; return its exit code and what it complained of."""
    monkeypatch.setattr(sys, "argv", ["seekgym", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("sft", ["--device", "banana"], "device 'banana' cannot be used"),
        ("sft", ["--env-args", '{"world_seed": 3}'], "leave out ['world_seed']"),
        ("grpo", ["--model", "runs/none"], "there is no such file or folder"),
        ("grpo", ["--model", str(Path(__file__).parent)], "a folder without config.json"),
        ("grpo", ["--set", "average=foo"], "average 'foo'"),
        ("grpo", ["--set", "kl=-1"], "kl must be 0 or more"),
        ("grpo", ["--teacher-turns", "2"], "--teacher-turns needs --teacher"),
    ],
)
def test_a_start_that_failed_can_be_mended(
    tmp_path, method, arguments, message, monkeypatch, capsys
):
    out = ["train", method, "--out", tmp_path / "x"]
    code, complaint = run_main([*out, *arguments], monkeypatch, capsys)
    assert (code, len(complaint.splitlines())) == (2, 1)
    assert message in complaint
    code, complaint = run_main([*out, *arguments, "--minutes", "7"], monkeypatch, capsys)
    assert message in complaint  # and not that the folder holds a run


def test_a_damaged_checkpoint_is_named(warmed_up, tmp_path, monkeypatch, capsys):
    shutil.copytree(warmed_up, tmp_path / "run")
    checkpoint = newest_checkpoint(tmp_path / "run")
    (checkpoint / "state.pt").write_bytes(b"no state")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    del config["method"]
    settings = SFTSettings(**config)
    with pytest.raises(ConfigurationError, match=r"step-\d+ cannot be read .* remove that folder"):
        SFT(settings, RunFolder.begin(tmp_path / "run", settings.record, resume=True))
    code, complaint = run_main(
        ["bench", "--agent", "sb3", "--model", tmp_path / "run", "--env", "seekgym/PhantomMenu-v0"],
        monkeypatch,
        capsys,
    )
    assert code == 2
    assert "holds no policy of train sb3" in complaint


def test_a_run_that_was_over_logs_nothing_twice(warmed_up, tmp_path):
    shutil.copytree(warmed_up, tmp_path / "run")
    before = (tmp_path / "run" / "log.jsonl").read_text()
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    del config["method"]
    settings = SFTSettings(**config)
    SFT(settings, RunFolder.begin(tmp_path / "run", settings.record, resume=True)).train()
    assert (tmp_path / "run" / "log.jsonl").read_text() == before


def test_a_policy_that_was_saved_plays_as_it_was_trained(warmed_up, tmp_path):
    policy = LocalPolicy.from_pretrained(str(warmed_up))  # a run stands for its newest model
    assert (policy.protocol, policy.has_instructions) == ("search-r1", False)
    assert policy.limits.max_new_tokens == 48
    policy.save(tmp_path)
    again = LocalPolicy.from_pretrained(str(tmp_path), max_new_tokens=7)
    assert again.limits.max_new_tokens == 7
    assert again.identity | {"max_new_tokens": 48, "name": ""} == policy.identity | {"name": ""}
    constrained = LocalPolicy.from_pretrained(str(warmed_up), is_constrained=True)
    constrained.save(tmp_path / "constrained")  # a resumed run plays as it did
    assert LocalPolicy.from_pretrained(str(tmp_path / "constrained")).is_constrained
    (tmp_path / "policy.json").write_text("[")
    with pytest.raises(ConfigurationError, match="no options of a policy"):
        LocalPolicy.from_pretrained(str(tmp_path))
