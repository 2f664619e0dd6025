"""Menus: choices made of what was seen, in words and in numbers, on every text environment."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.env_checker import check_env as check_env_sb3
from stable_baselines3.common.vec_env import DummyVecEnv

from seekgym.agents import OracleAgent, RandomAgent
from seekgym.agents.rollouts import play, replay
from seekgym.corpora import ConfigurationError
from seekgym.envs import GrepEnv, PhantomEnv, QAEnv, SearchEnv, WebEnv
from seekgym.envs.leads import find_leads, relation_words
from seekgym.envs.menu_tools import AccessMenu, AssignMenu, BrowseMenu, ProseMenu, ShellMenu
from seekgym.envs.summaries import Sentence
from seekgym.envs.wrappers import Features, Menu
from seekgym.envs.wrappers.features import CHOICE_FEATURES, EPISODE_FEATURES

MENU_IDS = ["seekgym/PhantomMenu-v0", "seekgym/KnowledgeGraphMenu-v0", "seekgym/QAMenu-v0"]
TEXT = [
    ("seekgym/QA-v0", {}),
    ("seekgym/Phantom-50-v0", {}),
    ("seekgym/KnowledgeGraphEasy-v0", {}),
    ("seekgym/TeamLeader-v0", {"world": "phantom:people=50"}),
    ("seekgym/Grep-v0", {"corpus": "phantom:people=50"}),
    ("seekgym/Web-v0", {"site": "phantom:people=50"}),
]


@pytest.fixture(scope="module")
def phantom():
    return gym.make("seekgym/PhantomMenu-v0")


def opened(env_id, arguments, size=24):
    return Features(Menu(gym.make(env_id, **arguments), size=size))


@pytest.mark.parametrize("env_id", MENU_IDS)
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_checkers_of_both_libraries_pass_without_a_warning(env_id):
    check_env(gym.make(env_id))
    check_env_sb3(gym.make(env_id))


@pytest.mark.parametrize(("env_id", "arguments"), TEXT)
def test_a_menu_reaches_evidence_and_answers_in_every_text_environment(env_id, arguments):
    env = opened(env_id, arguments)
    kinds, errors, seen = set(), set(), 0
    for seed in range(6):
        env.reset(seed=seed)
        for _ in range(4):
            choices = env.menu.choices()
            kinds |= {choice.kind for choice in choices}
            going = [n for n, c in enumerate(choices) if c.kind in ("open", "search")]
            if not going:
                break
            _, _, terminated, truncated, info = env.step(going[seed % len(going)])
            errors.add(info["error"])
            if terminated or truncated:
                break
        else:
            seen += info["action_mask"].sum() > 3
    assert errors == {None}
    assert {"answer", "search", "stop"} <= kinds
    assert seen


def test_an_episode_can_be_read_and_played_by_hand(phantom):
    task = next(t for t in phantom.unwrapped.tasks if t.kind == "chain" and t.hops == 2)
    observation, info = phantom.reset(seed=0, options={"task": task.id})
    labels = phantom.get_wrapper_attr("labels")
    assert labels() == [f"search {task.proof[0].query}", "stop unknown"]
    assert info["text"] == f"{task.question}\n\nChoices:\n0. {labels()[0]}\n1. stop unknown"
    phantom.step(0)
    assert labels() == sorted(labels())
    phantom.step(labels().index(f"search {task.proof[1].query}"))
    _, reward, terminated, _, info = phantom.step(labels().index(f"answer {task.answers[0]}"))
    assert (reward, terminated, info["exact_match"], labels()) == (1.0, True, 1.0, [])
    assert observation.shape == phantom.observation_space.shape


@pytest.mark.parametrize("action", [24, -1, 2, 1.5, None, "0", {"name": "search"}, np.zeros(2)])
def test_what_is_no_choice_costs_a_turn_and_says_what_would_be_right(phantom, action):
    phantom.reset(seed=0)
    _, reward, terminated, truncated, info = phantom.step(action)
    assert (info["error"], info["turn"], reward, terminated) == ("no_choice", 1, 0.0, False)
    assert "choose a number from 0 to 1." in info["text"]
    assert not truncated


def test_masks_are_seen_through_the_wrappers_of_trainers(phantom):
    phantom.reset(seed=0)
    assert get_action_masks(phantom).tolist() == [True] * 2 + [False] * 22
    vector = DummyVecEnv([lambda: gym.make("seekgym/PhantomMenu-v0")] * 2)
    vector.reset()
    assert np.sum(get_action_masks(vector)) == 4


def test_what_was_asked_is_not_offered_again_in_other_words():
    env = opened("seekgym/QA-v0", {"max_turns": 20})
    env.reset(seed=1)
    asked = set()
    for _ in range(10):
        choice = next(c for c in env.menu.choices() if c.kind == "search")
        words = frozenset(choice.call["arguments"]["query"].lower().split())
        assert words not in asked
        asked.add(words)
        env.step(env.menu.choices().index(choice))


def test_a_restored_episode_has_its_menu_and_its_features(phantom):
    features = phantom.get_wrapper_attr("features")
    labels = phantom.get_wrapper_attr("labels")
    phantom.reset(seed=3)
    phantom.step(0)
    state, was, shown = phantom.unwrapped.snapshot(), labels(), features()
    phantom.step(next(n for n, label in enumerate(was) if label.startswith("search")))
    assert labels() != was
    phantom.unwrapped.restore(state)
    assert labels() == was
    assert np.array_equal(features(), shown)


def test_test_worlds_are_others_than_training_worlds():
    train = gym.make("seekgym/PhantomMenu-v0").unwrapped
    test = gym.make("seekgym/PhantomMenu-v0", split="test", world_seed=3).unwrapped
    names = [{d.title for d in env.corpus} for env in (train, test)]
    assert not names[0] & names[1]


def test_the_oracle_wins_on_phantom_and_chance_does_not(phantom):
    env = gym.make("seekgym/PhantomMenu-v0", split="test", world_seed=5)
    oracle, random = (
        [play(env, agent(env), seed=seed).total_reward for seed in range(60)]
        for agent in (OracleAgent, RandomAgent)
    )
    assert sum(oracle) / 60 > 0.95
    assert sum(random) / 60 < 0.25


def test_an_episode_of_a_menu_is_recorded_in_words_and_played_again(phantom):
    trajectory = play(phantom, RandomAgent(phantom), seed=2)
    assert "Choices:" in trajectory.question
    assert all(isinstance(turn.observation, str) for turn in trajectory.turns)
    assert replay(trajectory) == []


@given(place=st.integers(0, 23), seed=st.integers(0, 50))
def test_features_say_the_same_of_a_choice_wherever_it_stands(place, seed):
    env = opened("seekgym/Phantom-50-v0", {})
    observation, _ = env.reset(seed=seed)
    observation, *_ = env.step(0)
    width = len(CHOICE_FEATURES)
    rows = observation[len(EPISODE_FEATURES) :].reshape(24, width)
    has_choice = place < len(env.menu.choices())
    assert bool(rows[place, :4].sum()) == has_choice
    assert has_choice or not rows[place].any()


def test_progress_follows_the_question_innermost_first():
    question = "Who is the brother of the friend of Ann Lee?"
    sentences = {
        Sentence("Ann Lee", "The friend of Ann Lee is Bo Mae."): 1,
        Sentence("Ann Lee", "The brother of Ann Lee is Cy Fox."): 1,
        Sentence("Bo Mae", "The brother of Bo Mae is Di Gil."): 2,
    }
    leads = {lead.text: lead for lead in find_leads(question, sentences)}
    progress = {name: lead.progress for name, lead in leads.items()}
    assert progress == {"Di Gil": 1.0, "Bo Mae": 0.5, "Cy Fox": 0.0, "Ann Lee": 0.0}
    assert (leads["Ann Lee"].is_asked, leads["Bo Mae"].turn) == (True, 1)
    assert [relation_words(question, used) for used in range(3)] == ["friend", "brother", ""]


@given(text=st.text(max_size=300))
@pytest.mark.parametrize("tools", [ProseMenu, AccessMenu, AssignMenu, BrowseMenu, ShellMenu])
def test_any_observation_can_be_read(tools, text):
    for observation in (text, f"1. [x] {text}", f'{{"id": "{text}", "title": "b", "text": "'):
        reading = tools().read(observation)
        assert isinstance(reading.sentences, tuple)


def test_documents_that_were_cut_and_later_parts_can_be_opened():
    reading = ProseMenu().read(
        "1. [a] One\ntext … [cut: read it for the rest]\n\n2. [b] Two\nwhole text"
    )
    assert [(link.title, link.address) for link in reading.links] == [("One", "a")]
    (link,) = ProseMenu().read("[a] One (page 1 of 2)\nThe end is near.").links
    assert ProseMenu().open(link) == {
        "name": "read",
        "arguments": {"document_id": "a", "page": 2},
    }


class NoTools(QAEnv):
    menu_tools = None


def test_wrong_uses_are_refused():
    with pytest.raises(ConfigurationError, match="NoTools does not say how a menu speaks"):
        Menu(NoTools())
    with pytest.raises(ConfigurationError, match="size must be a whole number of at least 4"):
        Menu(QAEnv(), size=3)
    with pytest.raises(ConfigurationError, match="Features wraps a Menu, got QAEnv"):
        Features(QAEnv())


def test_every_text_environment_says_how_a_menu_speaks():
    assert SearchEnv.menu_tools is None
    for kind in (QAEnv, PhantomEnv, GrepEnv, WebEnv):
        assert kind.menu_tools is not None
