"""Which files a run goes through."""

from __future__ import annotations

from pathlib import Path

import pytest

from caplens.core.errors import InputError
from caplens.scale.shards import Shard, choose_part, expand_braces, find_shards


def names(shards: list[Shard]) -> list[str]:
    return [shard.name for shard in shards]


def test_globs_braces_folders_and_files_give_the_same_shards(folder: Path) -> None:
    by_folder = find_shards(folder)
    assert names(by_folder) == [f"part-{number:03d}" for number in range(5)]
    assert find_shards(str(folder / "part-*.jsonl")) == by_folder
    assert find_shards(str(folder / "part-{000..004}.jsonl")) == by_folder
    assert find_shards(sorted(folder.iterdir())) == by_folder
    assert find_shards([folder / "part-000.jsonl", str(folder / "part-00*.jsonl")]) == by_folder  # each once


def test_braces_count_down_and_a_file_may_have_them_in_its_name(tmp_path: Path) -> None:
    assert expand_braces("{2..0}") == ["2", "1", "0"]
    assert expand_braces("plain") == ["plain"]
    odd = tmp_path / "x{1,2}.jsonl"
    odd.write_text("{}")
    assert [shard.location for shard in find_shards(odd)] == [str(odd)]
    with pytest.raises(InputError, match="more than 10,000,000 shards"):
        expand_braces("{00000000..99999999}.tar")


def test_a_folder_offers_its_data_only(folder: Path) -> None:
    (folder / "README.md").write_text("no captions")
    (folder / ".hidden.jsonl").write_text("{}")
    assert len(find_shards(folder)) == 5


@pytest.mark.parametrize("pattern", ["nothing-*.jsonl", "nothing.jsonl", "nothing-{1..3}.jsonl"])
def test_what_is_not_there_is_named(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(InputError, match="nothing"):
        find_shards(str(tmp_path / pattern))


def test_an_address_is_opened_only_if_allowed() -> None:
    with pytest.raises(InputError, match="--allow-urls"):
        find_shards("s3://bucket/part-*.tar")


def test_parts_share_the_shards_out(folder: Path) -> None:
    every = find_shards(folder)
    parts = [choose_part(every, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(names([shard for part in parts for shard in part])) == names(every)
    for wrong in ("0/3", "4/3", "1", "a/b", "-1/3"):
        with pytest.raises(InputError, match="is no part"):
            choose_part(every, wrong)
