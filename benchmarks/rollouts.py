"""Tokens that a language model draws per second while it plays, against the usual ways.

A small model is taught, in seconds, to search whatever it reads: so every side plays the same
number of turns, draws the same number of tokens and ends with a context of about 2,000. In the
same run, in turns:

- ``LocalPolicy``: one growing key-value cache an episode;
- ``generate`` of transformers, which reads each turn's whole context again (left-padded batch);
- the multi-turn generation of trl's GRPO trainer: only its ``_generate``, no training.

Then Ray with two workers against one. Sides alternate, every figure is a median, and the load of
the machine stands beside, since others may use it.

Run: python benchmarks/rollouts.py  (needs torch, transformers and trl; Ray for the last part)
"""

import argparse
import contextlib
import copy
import importlib.resources
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from trl import GRPOConfig, GRPOTrainer

import seekgym  # noqa: F401 - registers the environments
from seekgym.agents.llm import LocalPolicy
from seekgym.agents.llm.context import get_compaction
from seekgym.agents.llm.formats import Format
from seekgym.agents.llm.talk import Limits, Talk
from seekgym.agents.llm.tiny import tiny_model, world_tokenizer
from seekgym.agents.policy import Policy
from seekgym.agents.rollouts.generate import EnvironmentPool, generate, rollout_plans
from seekgym.agents.rollouts.running import RunningEpisode
from seekgym.agents.rollouts.trajectory import Trajectory
from seekgym.envs.wrappers import TextProtocol

THREADS, ROUNDS, EPISODES = 2, 3, (16, 4)
TURNS = 6
ENVIRONMENT = "seekgym/Phantom-50-v0"
ARGUMENTS = {"max_turns": TURNS, "max_observation_chars": 1_050, "k": 2}
HEAD, TAIL = '<tool_call>{"name": "search", "arguments": {"query": "', '"}}</tool_call>'
# no token comes twice, so that each tells the next: that is taught in a moment
QUERY = (
    " the mother of father sister brother wife husband friend daughter son occupation hobby date "
    "birth gender river harbour timber silk salt soup comet paper kite map moss amber"
)
CALL = f"{HEAD}{QUERY}{TAIL}"
TURN_END = "<|im_end|>"
MAX_CONTEXT, MAX_NEW_TOKENS, TEMPERATURE = 4096, 64, 0.25
MODELS = {"1.1M": {"width": 128, "layers": 4}, "11M": {"width": 320, "layers": 8}}
LESSONS, LESSON_ROWS, LESSON_TOKENS = 80, 4, 32  # what stands before a reply is cut to these


@dataclass(frozen=True)
class Round:
    """What one side did in one round; ``context`` is the longest at the end, in tokens."""

    seconds: float
    turns: int
    sampled: int
    context: int


class ReencodingPolicy(Policy):
    """The rival: plays the same batch with ``generate``, each turn on the whole context."""

    name = "generate"
    protocol = "hermes"

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.layout = Format(tokenizer)
        self.limits = Limits(MAX_CONTEXT, MAX_NEW_TOKENS, get_compaction("drop-oldest"))

    def play(self, episodes: Iterator[RunningEpisode]) -> Iterator[Trajectory]:
        """Play all episodes in one batch."""
        talks = [Talk(episode, self.layout, self.limits) for episode in episodes]
        while talks:
            running = []
            for talk, reply in zip(talks, self._replies(talks), strict=True):
                for token in reply:
                    talk.take(token, 0.0)
                trajectory = talk.end(self.layout.text(reply), is_cut=False)
                if trajectory is None:
                    running.append(talk)
                else:
                    yield trajectory
            talks = running

    def _replies(self, talks: Sequence[Talk]) -> list[list[int]]:
        width = max(len(talk.ids) for talk in talks)
        ids = torch.zeros(len(talks), width, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, talk in enumerate(talks):
            ids[row, width - len(talk.ids) :] = torch.tensor(talk.ids)
            mask[row, width - len(talk.ids) :] = 1
        ends = self.tokenizer.convert_tokens_to_ids([TURN_END, TAIL])
        with torch.inference_mode():
            written = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=MAX_NEW_TOKENS,
                do_sample=True,
                temperature=TEMPERATURE,
                top_k=0,
                eos_token_id=ends,
                pad_token_id=self.tokenizer.pad_token_id,
            )[:, width:].tolist()
        return [_until(reply, ends) for reply in written]


class ToolEnvironment:
    """The same environment as trl's trainer wants it: tools are methods."""

    def __init__(self, env: gym.Env[Any, Any], seed: int) -> None:
        self._env, self._seed = env, seed

    def reset(self, **row: Any) -> str:
        """Return the question."""
        question: str = self._env.reset(seed=self._seed)[0]
        return question

    def search(self, query: str) -> str:
        """Find articles by words.

        Args:
            query: What to look for.
        """
        return self._call("search", query=query)

    def read(self, document_id: str) -> str:
        """Read an article.

        Args:
            document_id: Which one.
        """
        return self._call("read", document_id=document_id)

    def answer(self, text: str) -> str:
        """Answer the question and end.

        Args:
            text: The answer.
        """
        return self._call("answer", text=text)

    def _call(self, name: str, **arguments: str) -> str:
        observation: str = self._env.step({"name": name, "arguments": arguments})[0]
        return observation


class _GeneratedError(Exception):
    """Leaves trl's step once it has generated: the rest is not measured."""


class TimedTrainer(GRPOTrainer):
    """trl's trainer, with a clock around its generation."""

    seconds = 0.0
    generated: Any = None

    def _generate(self, prompts: list[Any]) -> Any:
        start = time.perf_counter()
        self.generated = super()._generate(prompts)
        self.seconds = time.perf_counter() - start
        raise _GeneratedError


def make_tokenizer() -> PreTrainedTokenizerBase:
    """Return a tokenizer with the control tokens and the chat template of Qwen 3."""
    tokenizer = world_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", TURN_END]})
    tokenizer.add_tokens([HEAD, TAIL])
    tokenizer.eos_token = TURN_END
    template = importlib.resources.files("trl") / "chat_templates" / "qwen3.jinja"
    tokenizer.chat_template = template.read_text()
    return tokenizer


def teach(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Teach a model to write ``CALL`` as every reply, whatever stands before it."""
    layout = Format(tokenizer)
    env = TextProtocol(gym.make(ENVIRONMENT, **ARGUMENTS), "hermes")
    question, info = env.reset(seed=0)
    text = layout.start(info["system_prompt"], question) + layout.observation(env.step(CALL)[0])
    before_reply = layout.observation("")[1:]  # what stands between two replies
    reply = [*layout.plain(CALL), layout.observation("")[0]]
    labels = torch.tensor([-100] * (LESSON_TOKENS + len(before_reply)) + reply)
    generator = torch.Generator().manual_seed(0)
    # attention is made weak and stays so: what was read long ago changes nothing
    for name, weights in model.named_parameters():
        if "self_attn" in name:
            weights.requires_grad_(False).mul_(0.1)
    learning = [weights for weights in model.parameters() if weights.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=1.0)
    model.train()
    for step in range(LESSONS):
        pace = min(1.0, step / 10) * (1 - step / LESSONS)
        optimizer.param_groups[0]["lr"] = pace * 0.3 / model.config.hidden_size
        starts = torch.randint(
            len(text) - LESSON_TOKENS, (LESSON_ROWS,), generator=generator
        ).tolist()
        rows = [text[start : start + LESSON_TOKENS] + before_reply + reply for start in starts]
        model(torch.tensor(rows), labels=labels.expand(LESSON_ROWS, -1)).loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
        optimizer.zero_grad()
    model.eval()


def make_model(size: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a taught model."""
    tokenizer = make_tokenizer()
    model, _ = tiny_model(**MODELS[size], tokenizer=tokenizer)
    teach(model, tokenizer)
    return model, tokenizer


def make_local(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    episodes: int,
    *,
    threads: int | None = None,
) -> LocalPolicy:
    """Return our policy; in a worker it is given its share of the threads."""
    if threads is not None:
        torch.set_num_threads(threads)
    return LocalPolicy(
        model,
        tokenizer,
        max_context=MAX_CONTEXT,
        max_new_tokens=MAX_NEW_TOKENS,
        temperature=TEMPERATURE,
        batch_size=episodes,
    )


def _until(reply: list[int], ends: Sequence[int]) -> list[int]:
    """Return a reply up to its end."""
    length = next((place + 1 for place, token in enumerate(reply) if token in ends), len(reply))
    return reply[:length]


def play(policy: Policy, env: gym.Env[Any, Any], episodes: int) -> Round:
    """Let a policy play one batch."""
    start = time.perf_counter()
    played = generate(policy, env, episodes=episodes)
    seconds = time.perf_counter() - start
    return Round(
        seconds,
        turns=sum(len(trajectory.turns) for trajectory in played),
        sampled=sum(int(trajectory.usage["sampled_tokens"]) for trajectory in played),
        context=max(len(trajectory.segments[-1].ids) for trajectory in played),
    )


def play_with_trl(trainer: TimedTrainer) -> Round:
    """Let trl's trainer generate for one batch."""
    rows = list(trainer.train_dataset) * trainer.args.per_device_train_batch_size
    with contextlib.suppress(_GeneratedError):
        trainer._generate_and_score_completions(rows)
    prompts, completions, masks, messages, *_ = trainer.generated
    return Round(
        trainer.seconds,
        turns=sum(message["role"] == "assistant" for each in messages for message in each),
        sampled=sum(map(sum, masks)),
        context=max(len(p) + len(c) for p, c in zip(prompts, completions, strict=True)),
    )


def make_trainer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    env: gym.Env[Any, Any],
    episodes: int,
) -> TimedTrainer:
    """Return trl's trainer, on the same episodes."""
    pool = EnvironmentPool(env)
    seeds = iter([plan.seed for plan in rollout_plans(episodes)])
    settings = GRPOConfig(
        output_dir=os.path.join(tempfile.gettempdir(), "seekgym-rollouts"),
        per_device_train_batch_size=episodes,
        num_generations=episodes,
        max_completion_length=MAX_CONTEXT // 2,
        max_tool_calling_iterations=TURNS - 1,
        temperature=TEMPERATURE,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # trl calls its environments experimental
        return TimedTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=lambda completions, **_: [0.0] * len(completions),
            args=settings,
            train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": ""}]}]),
            environment_factory=lambda: ToolEnvironment(pool.take(), next(seeds)),
        )


def compare(sides: Mapping[str, Callable[[], Round]], rounds: int) -> None:
    """Let the sides play in turns; print a line for each, the first one against the others."""
    played: dict[str, list[Round]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            one = side()
            if number:  # the first round warms up
                played[name].append(one)
    ours = None
    for name, results in played.items():
        seconds = statistics.median(result.seconds for result in results)
        rate = statistics.median(result.sampled / result.seconds for result in results)
        ours = ours or rate
        last = results[-1]
        print(
            f"  {name:34}{rate:9,.0f}{seconds:9.2f}{last.turns:7}{last.sampled:9,}"
            f"{last.context:9,}   {ours / rate:5.2f} x",
            flush=True,
        )
    if len({result.turns for results in played.values() for result in results}) > 1:
        print("  the sides did not play the same turns: these ratios say nothing")
    print(f"  load average {os.getloadavg()[0]:.1f}, {torch.get_num_threads()} threads")


def compare_models(size: str, episodes: int, rounds: int) -> None:
    """Print the table of one model and one batch."""
    model, tokenizer = make_model(size)
    parameters = sum(each.numel() for each in model.parameters())
    env = gym.make(ENVIRONMENT, **ARGUMENTS)
    local = make_local(model, tokenizer, episodes)
    trainer = make_trainer(copy.deepcopy(model), tokenizer, env, episodes)
    print(f"\n{parameters:,} parameters, {episodes} episodes")
    compare(
        {
            "LocalPolicy": partial(play, local, env, episodes),
            "generate, whole context each turn": partial(
                play, ReencodingPolicy(model, tokenizer), env, episodes
            ),
            "trl, generation of GRPOTrainer": partial(play_with_trl, trainer),
        },
        rounds,
    )


def compare_workers(episodes: int, rounds: int) -> None:
    """Print Ray with two workers against one, each worker on one thread."""
    try:
        import ray  # noqa: F401 - an extra

        from seekgym.agents.rollouts.cluster import RayWorkers
    except ImportError as error:
        print(f"\nRay is left out: {error}")
        return
    model, tokenizer = make_model("1.1M")
    piece = episodes // 2
    policy = partial(make_local, model, tokenizer, piece, threads=1)
    print(f"\nRay, {episodes} episodes in pieces of {piece}, a thread a worker")
    seconds: dict[int, list[float]] = {1: [], 2: []}
    played = {}
    with contextlib.ExitStack() as stack:
        clusters = {
            count: stack.enter_context(RayWorkers(count, episodes=piece)) for count in (2, 1)
        }
        for number in range(rounds + 1):
            for count, cluster in clusters.items():
                start = time.perf_counter()
                played[count] = generate(
                    policy, ENVIRONMENT, arguments=ARGUMENTS, episodes=episodes, workers=cluster
                )
                if number:
                    seconds[count].append(time.perf_counter() - start)
    one, two = (statistics.median(seconds[count]) for count in (1, 2))
    print(f"  two workers {two:.2f} s, one worker {one:.2f} s: {one / two:.2f} x")
    print(f"  the same trajectories: {played[1] == played[2]}")
    print(f"  load average {os.getloadavg()[0]:.1f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure rollouts of language models.")
    parser.add_argument("--threads", type=int, default=THREADS, help="of torch")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="after one that warms up")
    parser.add_argument("--episodes", type=int, nargs="*", default=EPISODES, help="in a batch")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--ray", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore", FutureWarning)  # of transformers, about trl's settings
    print("medians; a ratio says how many times as many tokens per second LocalPolicy draws")
    columns = (
        f"{'tokens/s':>9}{'seconds':>9}{'turns':>7}{'sampled':>9}{'context':>9}   ours against"
    )
    print(f"  {'':34}{columns}")
    for size in arguments.models:
        for episodes in arguments.episodes:
            compare_models(size, episodes, arguments.rounds)
    if arguments.ray:
        compare_workers(2 * max(arguments.episodes, default=8), arguments.rounds)


if __name__ == "__main__":
    main()
