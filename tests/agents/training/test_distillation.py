"""Distillation: what the teacher says, on which tokens, and that a policy learns from it."""

import json
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from tests.kit.small_models import policy, tokenizer

from seekgym.agents.llm.tiny import tiny_model, world_tokenizer
from seekgym.agents.rollouts.generate import generate
from seekgym.agents.rollouts.trajectory import Segment
from seekgym.agents.training.demonstrations import Demonstrator
from seekgym.agents.training.distillation import (
    Distillation,
    Distiller,
    check_same_tokens,
    chosen,
    restrict,
)
from seekgym.agents.training.divergences import (
    DIVERGENCES,
    drawn_losses,
    forward_kl,
    jensen_shannon,
    reverse_kl,
)
from seekgym.agents.training.grpo import GRPO, GRPOSettings
from seekgym.agents.training.run import RunFolder
from seekgym.agents.training.sft import SFT, SFTSettings
from seekgym.agents.training.teaching import PathTutor, advise, lesson
from seekgym.agents.training.tokens import Episode
from seekgym.agents.training.worlds import Worlds
from seekgym.agents.tutor import TutorAgent
from seekgym.corpora.errors import ConfigurationError
from seekgym.envs.wrappers import TextProtocol

WORLD = Worlds("seekgym/PhantomShort-v0", seed=5).training(0)


class Strayer(TutorAgent):
    """Asks the tutor's questions, but strays: by the task, at the first turn or the second."""

    name = "strayer"

    def act(self, observation, info):
        if info["turn"] == len(self._task.id) % 2:
            name = self._task.proof[0].query
            return self._search_env.search_call(f"occupation of {name}")
        return super().act(observation, info)


@pytest.fixture(scope="module")
def strayed():
    demonstrator = Demonstrator(tokenizer(), agent=Strayer, max_context=2048)
    return generate(demonstrator, WORLD.environment, episodes=12, seed=0, arguments=WORLD.arguments)


@pytest.fixture(scope="module")
def env():
    return TextProtocol(gym.make(WORLD.environment, **WORLD.arguments), "search-r1")


def expected(env, trajectory, turn):
    """What there is to say before a turn, from the proof's sentences and what was read."""
    task = env.unwrapped.all_tasks[trajectory.task_id]
    read = " ".join(played.observation for played in trajectory.turns[:turn])
    for step in task.proof:
        for sentence in step.fact.removesuffix(".").split(". "):
            if sentence not in read:
                return "search", sentence.split(" is ")[0].removeprefix("The ")
    return "answer", task.answers[0]


def test_the_tutor_says_what_is_left_to_say_in_the_states_of_another(strayed, env):
    strays = 0
    for trajectory in strayed:
        replies = advise(trajectory, env)
        assert replies == advise(trajectory, env)
        for number, (turn, reply) in enumerate(zip(trajectory.turns, replies, strict=True)):
            call = env.protocol.decode(reply)
            said = call["name"], next(iter(call["arguments"].values())).strip()
            assert said == expected(env, trajectory, number)
            strays += reply != turn.action
    assert strays >= 12


def test_each_target_follows_exactly_the_tokens_that_the_policy_saw(strayed, env):
    layout = policy().layout
    for trajectory in strayed:
        replies = advise(trajectory, env)
        replies[0] = None
        taught = lesson(trajectory, replies, layout)
        assert len(taught.segments) == len(trajectory.turns) - 1
        pairs = zip(taught.segments, trajectory.turns[1:], replies[1:], strict=True)
        for number, (segment, turn, reply) in enumerate(pairs, start=1):
            place, first, _ = turn.span
            assert segment.ids[:first] == trajectory.segments[place].ids[:first]
            assert tokenizer().decode(segment.ids[first:]) == reply
            assert segment.mask == (0,) * first + (1,) * (len(segment.ids) - first)
            numbers = taught.turns[number - 1]
            assert (numbers[:first] == -1).all()
            assert (numbers[first:] == number).all()


def test_a_query_that_failed_is_not_asked_again(env):
    question, info = env.reset(seed=3)
    query = expected_query = None
    for documents, seen in (((), ""), ((), "[{}]")):
        tutor = PathTutor(env)
        tutor.reset(question, info)
        step = env.unwrapped.task.proof[0]
        given = {**info, "documents": documents}
        query = tutor.advise([question], [], given)
        assert query["name"] == "search"
        tutor.reset(question, info)
        following = tutor.advise([question, seen.format(step.document)], [query], given)
        expected_query = env.unwrapped.reading_call(step.document) if seen else None
        assert following == expected_query


def test_another_world_is_refused_and_so_are_tasks_without_a_proof(strayed):
    other = Worlds("seekgym/PhantomShort-v0", seed=6).training(0)
    made = TextProtocol(gym.make(other.environment, **other.arguments), "search-r1")
    strange = replace(strayed[0], task_id=next(iter(made.unwrapped.all_tasks)).id)
    with pytest.raises(ConfigurationError, match="does not play again"):
        advise(strange, made)
    bare = gym.make("seekgym/QA-v0")
    question, info = bare.reset(seed=0)
    tutor = PathTutor(bare)
    tutor.reset(question, info)
    with pytest.raises(ConfigurationError, match="has no proof"):
        tutor.advise([question], [], info)


@pytest.mark.parametrize(
    ("changes", "turns"),
    [
        ({}, {0, 2, 3}),
        ({"turns": 2}, {0, 2}),
        ({"choice": "differing"}, {2, 3}),
        ({"choice": "differing", "turns": 1}, {3}),
    ],
)
def test_the_budget_of_turns(changes, turns):
    settings = Distillation(**changes)
    assert chosen([True, False, True, True], [0.0, 9.0, 0.5, 0.7], settings) == turns


def test_only_the_tokens_of_the_chosen_turns_count():
    segment = Segment(tuple(range(6)), (0, 1, 1, 0, 1, 1), (0.0,) * 6)
    numbers = np.array([-1, 0, 0, -1, 1, 1])
    episode = Episode((segment,), (numbers,), (np.zeros(6),))
    assert restrict(episode, frozenset({1})).segments[0].mask == (0, 0, 0, 0, 1, 1)
    assert restrict(episode, frozenset()).drawn == 0


def test_the_weight_falls_over_the_run():
    linear = Distillation(weight=0.8, weight_end=0.2)
    assert [linear.weight_at(t) for t in (0, 0.25, 0.5, 1)] == pytest.approx([0.8, 0.65, 0.5, 0.2])
    cosine = replace(linear, schedule="cosine")
    half = 0.2 + 0.6 * (1 + np.cos(np.pi * 0.25)) / 2
    assert [cosine.weight_at(t) for t in (0, 0.25, 1)] == pytest.approx([0.8, half, 0.2])


@pytest.mark.parametrize(
    "changes",
    [
        {"weight": 1.1},
        {"weight_end": -0.1},
        {"turns": 0},
        {"schedule": "step"},
        {"choice": "last"},
        {"divergence": "revers"},
    ],
)
def test_wrong_settings_are_refused(changes):
    with pytest.raises(ConfigurationError, match=next(iter(changes))):
        Distillation(**changes)


def pair(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [2 * torch.randn(5, 7, generator=generator, dtype=torch.float64) for _ in range(2)]


def test_divergences_are_those_of_a_second_derivation():
    student, teacher = pair()
    p, q = (torch.distributions.Categorical(logits=logits) for logits in (student, teacher))
    kl = torch.distributions.kl_divergence
    torch.testing.assert_close(forward_kl(student, teacher), kl(q, p))
    torch.testing.assert_close(reverse_kl(student, teacher), kl(p, q))
    mixture = torch.distributions.Categorical(probs=0.3 * q.probs + 0.7 * p.probs)
    found = jensen_shannon(student, teacher, beta=0.3)
    torch.testing.assert_close(found, 0.3 * kl(q, mixture) + 0.7 * kl(p, mixture))
    near = jensen_shannon(student, teacher, beta=1e-6) / 1e-6
    torch.testing.assert_close(near, kl(q, p), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergences_by_finite_differences(name):
    student, teacher = pair(1)
    divergence = DIVERGENCES[name]
    assert torch.autograd.gradcheck(lambda x: divergence(x, teacher), student.requires_grad_())
    assert (divergence(student, teacher) > 0).all()
    torch.testing.assert_close(divergence(teacher, teacher), torch.zeros(5).double())


def test_the_policy_gradient_is_in_the_mean_that_of_the_reverse_divergence():
    student, teacher = pair(2)
    student.requires_grad_()
    log_probs, known = student.log_softmax(-1), teacher.log_softmax(-1)
    old = log_probs.detach()
    mean = (old.exp() * drawn_losses(log_probs, known, old)).sum()
    torch.testing.assert_close(mean, reverse_kl(student, teacher).sum())
    (found,) = torch.autograd.grad(mean, student)
    (wanted,) = torch.autograd.grad(reverse_kl(student, teacher).sum(), student)
    torch.testing.assert_close(found, wanted)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teachers")
    policy().save(folder / "same")
    policy(tiny_model(width=64, layers=1, tokenizer=tokenizer(), seed=9)[0]).save(folder / "other")
    return folder


@pytest.mark.parametrize("divergence", [*DIVERGENCES, "drawn"])
def test_a_teacher_that_is_the_policy_teaches_nothing_and_another_does(
    strayed, folders, divergence
):
    learner = policy()
    sizes = []
    for name in ("same", "other"):
        distiller = Distiller(Distillation(str(folders / name), divergence=divergence), learner)
        lessons = distiller.lessons(strayed[:3], WORLD)
        assert [each.drawn for each in lessons] == [
            sum(sum(segment.mask) for segment in trajectory.segments) for trajectory in strayed[:3]
        ]
        lessons = [each.scored(learner.model, 1.0) for each in lessons]
        learner.model.zero_grad()
        loss = distiller.learn(lessons, learner.model, weight=1.0, tokens=1024)
        gradients = [p.grad.abs().max() for p in learner.model.parameters() if p.grad is not None]
        learner.model.zero_grad()
        sizes.append((abs(loss), float(max(gradients))))
    assert max(sizes[0]) < 1e-5
    assert min(sizes[1]) > 1e-4


def test_the_turns_of_a_model_are_those_of_the_largest_divergence(strayed, folders):
    learner = policy()
    settings = Distillation(str(folders / "other"), turns=1, choice="differing")
    distiller = Distiller(settings, learner)
    whole = Distiller(replace(settings, turns=None), learner).lessons(strayed[:1], WORLD)[0]
    means = {
        number: distiller.losses([restrict(whole, frozenset({number}))], learner.model)
        .detach()
        .mean()
        for number in range(len(strayed[0].turns))
    }
    (taught,) = distiller.lessons(strayed[:1], WORLD)
    kept = {int(n) for turns in taught.turns for n in turns if n >= 0}
    assert kept == {max(means, key=means.get)}


def test_a_teacher_of_other_tokens_is_refused():
    with pytest.raises(ConfigurationError, match="policy's tokenizer"):
        check_same_tokens(tokenizer(), world_tokenizer(vocabulary=500), "big")


@pytest.fixture(scope="module")
def blue(tmp_path_factory):
    """Questions whose answer is always blue, of a model that was shown red as often."""
    folder = tmp_path_factory.mktemp("blue")
    documents = [
        {"id": f"d{n}", "title": f"sky {n}", "text": "It is red. It is blue."} for n in range(20)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    arguments = {}
    for name, answers in (("both", ("red", "blue")), ("blue", ("blue",))):
        tasks = [
            {
                "id": f"{n}",
                "question": f"What is the colour of sky {n}?",
                "answers": [answers[n % len(answers)]],
                "evidence": [f"d{n}"],
                "proof": [{"query": f"sky {n}", "document": f"d{n}"}],
            }
            for n in range(20)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(t) + "\n" for t in tasks))
        arguments[name] = {
            "corpus": str(folder / "corpus.jsonl"),
            "tasks": str(folder / f"{name}.jsonl"),
            "k": 1,
        }
    settings = SFTSettings(
        "seekgym/QA-v0",
        arguments["both"],
        width=64,
        layers=2,
        steps=160,
        evaluation_episodes=4,
        read_steps=0,
        warmup_steps=5,
        demonstrations=32,
        batch_tokens=512,
        evaluate_minutes=9.0,
    )
    SFT(settings, RunFolder.begin(folder / "sft", settings.record, resume=False)).train()
    return str(folder / "sft"), arguments["blue"]


def taught_run(folder, blue, **changes):
    model, arguments = blue
    options = {
        "steps": 4,
        "questions": 4,
        "group_size": 4,
        "learning_rate": 1e-3,
        "evaluation_episodes": 8,
        "evaluate_minutes": 9.0,
        "distillation": Distillation(weight=1.0, weight_end=1.0),
        **changes,
    }
    settings = GRPOSettings("seekgym/QA-v0", model, arguments, **options)
    return GRPO(settings, RunFolder.begin(folder, settings.record, resume=True), device="cpu")


def test_a_policy_learns_from_the_tutor_in_a_few_steps(blue, tmp_path):
    trainer = taught_run(tmp_path / "run", blue, steps=16)
    found = trainer.train()
    records = trainer.folder.records()
    losses = [record["distillation_loss"] for record in records if "distillation_loss" in record]
    rewards = [record["reward"] for record in records if "reward" in record]
    assert np.mean(rewards[:3]) < 0.6
    assert np.mean(rewards[-3:]) > 0.8
    assert found.exact_match >= 0.9
    assert np.mean(losses[-3:]) < 0.75 * np.mean(losses[:3])


def test_a_resumed_run_keeps_the_schedule(blue, tmp_path):
    options = {"distillation": Distillation(weight=1.0, turns=1), "evaluate_minutes": 1e-6}
    whole = taught_run(tmp_path / "whole", blue, **options)
    whole.train()

    def stop(record):
        if record["step"] == 2 and "held_out_f1" in record:
            raise KeyboardInterrupt

    cut = taught_run(tmp_path / "cut", blue, **options)
    with pytest.raises(KeyboardInterrupt):
        cut.train(stop)
    cut.folder.close()
    resumed = taught_run(tmp_path / "cut", blue, **options)
    assert resumed.step == 2
    resumed.train()
    weights = [r["distillation_weight"] for r in resumed.folder.records() if "reward" in r]
    assert weights == [1.0, 0.75, 0.5, 0.25]
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
