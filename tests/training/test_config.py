"""Settings of a training from a file and from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from caplens.core.errors import InputError
from caplens.training.config import read_config


@dataclass(frozen=True)
class Config:
    epochs: int = 10
    learning_rate: float = 0.5
    monotone: bool = False
    reward: str = "cider-r"
    baseline: Literal["greedy", "mean"] = "mean"


def test_a_file_changes_the_defaults_and_options_change_the_file(tmp_path: Path) -> None:
    settings = tmp_path / "s.toml"
    settings.write_text('epochs = 3\nlearning_rate = 1\nbaseline = "greedy"\n')
    assert read_config(None, Config) == Config()
    assert read_config(settings, Config) == Config(epochs=3, learning_rate=1.0, baseline="greedy")
    assert read_config(settings, Config, {"epochs": 7, "reward": "bleu"}) == Config(7, 1.0, False, "bleu", "greedy")
    assert type(read_config(settings, Config).learning_rate) is float


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("epoch = 3", "no setting 'epoch'; there are: epochs"),
        ('epochs = "x"', "which is no int"),
        ("epochs = true", "which is no int"),
        ("monotone = 1", "which is no bool"),
        ('baseline = "best"', "baseline is 'best'; choose from greedy, mean"),
        ("=", "not a toml file"),
    ],
)
def test_what_is_refused(content: str, message: str, tmp_path: Path) -> None:
    settings = tmp_path / "s.toml"
    settings.write_text(content)
    with pytest.raises(InputError, match=message) as refused:
        read_config(settings, Config)
    assert refused.value.where == str(settings)


def test_options_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--option: there is no setting 'epoch'"):
        read_config(None, Config, {"epoch": 3})
    with pytest.raises(InputError, match="no such file"):
        read_config(tmp_path / "nowhere.toml", Config)
