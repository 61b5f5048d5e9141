"""Identities: equal for what gives equal results, different for everything else, and local where no name tells."""

from __future__ import annotations

import gc
import importlib
import pickle
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from caplens.storage.identity import Identity, callable_name

SPLITTER = """
class Splitter:
    def __init__(self, mark): self.mark = mark
    def cut(self, text): return text.split(self.mark)
_own = Splitter(" ")
cut = _own.cut
def words(text): return text.split()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    (tmp_path / "splitter_for_tests.py").write_text(SPLITTER)
    monkeypatch.syspath_prepend(tmp_path)
    import splitter_for_tests  # type: ignore[import-not-found]

    monkeypatch.setitem(sys.modules, "splitter_for_tests", splitter_for_tests)
    yield splitter_for_tests
    sys.modules.pop("splitter_for_tests", None)


VALUES = [
    None, True, 1, 2.5, "1", b"1", Path("1"), [1], [1, 2], [2, 1], {"a": 1}, {"a": 2}, {"b": 1}, {1}, [[1], 2],
    [1, [2]], np.zeros(2), np.zeros(3), np.zeros(2, np.float32), np.ones(2), str.split, str.lower, str, int,
    float("nan"), Identity.of("a"),
]  # fmt: skip


def test_different_values_have_different_identities_and_equal_ones_the_same() -> None:
    texts = [Identity.of(value).text for value in VALUES]
    assert len(set(texts)) == len(texts)
    copies = [Identity.of(pickle.loads(pickle.dumps(value))) for value in VALUES]
    assert copies == [Identity.of(value) for value in VALUES]
    assert all(identity.lasting for identity in copies)


def test_the_order_of_a_mapping_does_not_matter() -> None:
    assert Identity.of({"a": 1, "b": [2]}) == Identity.of({"b": [2], "a": 1})
    assert Identity.of(np.float64(0.5)) == Identity.of(0.5)


def test_another_process_writes_the_same() -> None:
    code = (
        "from caplens.storage.identity import Identity; print(Identity.of({'b': {2.5, 'x'}, 'a': [str.split]}).digest)"
    )
    digests = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert digests == {Identity.of({"a": [str.split], "b": {"x", 2.5}}).digest + "\n"}


def nameless() -> list[Callable[[str], list[str]]]:
    class Splitter:
        def __init__(self, mark: str) -> None:
            self.mark = mark

        def __call__(self, text: str) -> list[str]:
            return text.split(self.mark)

    return [
        lambda text: text.split(),
        lambda text: text.lower().split(),
        Splitter(" "),
        Splitter("-"),
        Splitter(".").__call__,
        partial(str.split, sep="-"),
        partial(str.split, sep="+"),
    ]


def test_what_has_no_name_equals_only_itself_and_does_not_last() -> None:
    functions = nameless()
    identities = [Identity.of(function) for function in functions]
    assert not any(identity.lasting for identity in identities)
    assert len(set(identities)) == len(functions)
    assert len({callable_name(function) for function in functions}) == len(functions)
    assert identities == [Identity.of(function) for function in functions]
    assert not Identity.of({"options": [1, functions[0]]}).lasting
    again = [Identity.of(function) for function in nameless()]
    assert not {*again} & {*identities}


def test_an_object_in_the_place_of_a_dead_one_is_another() -> None:
    seen = set()
    for _ in range(100):
        seen.add(Identity.of(lambda text: text.split()))
        gc.collect(0)
    assert len(seen) == 100


def test_a_method_is_the_same_at_every_look() -> None:
    class Splitter:
        def cut(self, text: str) -> list[str]:
            return text.split()

    one, other = Splitter(), Splitter()
    assert Identity.of(one.cut) == Identity.of(one.cut)
    assert callable_name(one.cut) == callable_name(one.cut) != callable_name(other.cut)


def test_a_function_is_its_name_and_its_code(module: types.ModuleType) -> None:
    name = callable_name(module.words)
    assert name == "splitter_for_tests.words"
    before = Identity.of(module.words)
    assert before.lasting
    assert callable_name(module.cut) == "splitter_for_tests.Splitter.cut"
    assert Identity.of(module.cut).lasting
    assert not Identity.of(module.Splitter("-").cut).lasting
    Path(str(module.__file__)).write_text(SPLITTER.replace("text.split()", "text.lower().split()") + "# longer")
    assert Identity.of(module.words) == before  # what was imported still runs
    importlib.reload(module)
    assert Identity.of(module.words).text != before.text
    assert callable_name(module.words) == name


def test_a_name_of_the_main_program_means_something_else_in_every_run(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from caplens.storage.identity import Identity\ndef words(text): return text.split()\n"
        "print(Identity.of(words).lasting)"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_an_object_may_say_what_it_is() -> None:
    class Encoder:
        def __init__(self, identity: object) -> None:
            self.identity = identity

    assert Identity.of(Encoder("a@1")) == Identity.of(Encoder("a@1")) != Identity.of(Encoder("a@2"))
    assert Identity.of(Encoder("a@1")).lasting
    assert not Identity.of(Encoder(Identity.of(lambda: 1))).lasting
    assert Identity.of(Encoder(lambda: "a@1")) == Identity.of(Encoder("a@1"))
    assert not Identity.of(Encoder(None)).lasting
