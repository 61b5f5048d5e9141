"""The 4-bit file: against transformers on the same numbers, what is refused, and languages that meet in one space."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from caplens.core.errors import InputError, MissingData
from caplens.encoders.packed_e5 import PREFIX, PackedE5
from caplens.encoders.sentence import SentenceEncoder, load_sentence_encoder

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁query", ":", "▁a", "▁d", "og", "▁dog", "▁cat", "s", "▁", "½"]
WIDTH, LAYERS, HEADS, INNER, LONGEST = 32, 2, 4, 64, 16


class Packed:
    """A small random model in the layout of the file, and its tensors as BERT has them."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self.state: dict[str, np.ndarray] = {}
        self._packed: dict[str, bytes] = {}
        self._add("emb.word", "embeddings.word_embeddings.weight", (len(PIECES), WIDTH), packed=True)
        self._add("emb.pos", "embeddings.position_embeddings.weight", (LONGEST, WIDTH))
        self._add("emb.type", "embeddings.token_type_embeddings.weight", (1, WIDTH))
        self._pair("emb.ln", "embeddings.LayerNorm", (WIDTH,))
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            for short, long, shape in (
                ("q", "attention.self.query", (WIDTH, WIDTH)),
                ("k", "attention.self.key", (WIDTH, WIDTH)),
                ("v", "attention.self.value", (WIDTH, WIDTH)),
                ("ao", "attention.output.dense", (WIDTH, WIDTH)),
                ("aln", "attention.output.LayerNorm", (WIDTH,)),
                ("fi", "intermediate.dense", (INNER, WIDTH)),
                ("fo", "output.dense", (WIDTH, INNER)),
                ("oln", "output.LayerNorm", (WIDTH,)),
            ):
                self._pair(f"l{layer}.{short}", f"{name}.{long}", shape)

    def _pair(self, short: str, long: str, shape: tuple[int, ...]) -> None:
        self._add(f"{short}.w", f"{long}.weight", shape, packed=len(shape) == 2)
        self._add(f"{short}.b", f"{long}.bias", shape[:1])

    def _add(self, short: str, long: str, shape: tuple[int, ...], packed: bool = False) -> None:
        if not packed:
            self.state[long] = self._random.normal(0, 0.5, shape).astype(np.float32)
            self._packed[short] = self.state[long].tobytes()
            return
        scales = self._random.uniform(0.02, 0.1, (*shape[:-1], shape[-1] // 32)).astype(np.float16)
        numbers = self._random.integers(0, 16, (*scales.shape, 32))
        self.state[long] = ((numbers - 8) * scales[..., None].astype(np.float32)).reshape(shape).astype(np.float32)
        nibbles = (numbers[..., :16] | numbers[..., 16:] << 4).astype(np.uint8)
        blocks = zip(scales.reshape(-1), nibbles.reshape(-1, 16), strict=True)
        self._packed[short] = b"".join(scale.tobytes() + own.tobytes() for scale, own in blocks)

    def write(self, path: Path) -> Path:
        head = struct.pack("<4sI7ifi", b"E5S1", 1, WIDTH, LAYERS, HEADS, INNER, len(PIECES), LONGEST, 1, 1e-12, 32)
        names = [piece.encode() for piece in PIECES]
        places = np.cumsum([0, *map(len, names)], dtype="<u4")
        scores = -np.arange(len(PIECES), dtype="<f4")
        letters = struct.pack("<IBIII", ord("¾"), 3, ord(" "), ord("a"), ord(" "))
        head += struct.pack("<5iQ", len(names), 0, 2, 1, 3, len(b"".join(names)))
        head += places.tobytes() + scores.tobytes() + b"".join(names) + struct.pack("<iI", 1, len(letters)) + letters
        size = len(head) + 4 + sum(2 + len(short) + 1 + 4 + 16 for short in self._packed)
        directory, place = struct.pack("<i", len(self._packed)), size
        for short, data in self._packed.items():
            directory += struct.pack("<H", len(short)) + short.encode() + struct.pack("<BIQQ", 0, 0, place, len(data))
            place += len(data)
        path.write_bytes(head + directory + b"".join(self._packed.values()))
        return path


def test_states_equal_transformers_on_the_same_numbers(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    made = Packed()
    ours = PackedE5(made.write(tmp_path / "tiny.bin"))
    config = transformers.BertConfig(
        vocab_size=len(PIECES),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INNER,
        max_position_embeddings=LONGEST,
        type_vocab_size=1,
    )
    theirs = transformers.BertModel(config, add_pooling_layer=False).eval()
    theirs.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in made.state.items()}, strict=False)
    tokens = ours.tokenize(["a dog", "cats a  dog"])
    for ids, states in zip(tokens, ours.states(tokens), strict=True):
        with torch.inference_mode():
            expected = theirs(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()
        np.testing.assert_allclose(states, expected, atol=1e-4)


def test_texts_are_prefixed_replaced_and_cut_into_the_likeliest_pieces(tmp_path: Path) -> None:
    encoder = PackedE5(Packed().write(tmp_path / "tiny.bin"))
    pieces = [[PIECES[token] for token in ids] for ids in encoder.tokenize(["a dog", "cats¾dog", f"{PREFIX}a"])]
    start = ["<s>", "▁query", ":"]
    assert pieces[0] == [*start, "▁a", "▁dog", "</s>"]
    assert pieces[1] == [*start, "▁cat", "s", "▁a", "▁dog", "</s>"]
    assert pieces[2] == [*start, "▁a", "</s>"]
    assert encoder.special == {0, 2}
    assert [encoder.fits(text) for text in ("a " * 12, "a " * 13)] == [True, False]


def test_it_makes_sentence_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPLENS_CACHE", str(tmp_path / "cache"))
    vectors = SentenceEncoder(Packed().write(tmp_path / "tiny.bin"), "tiny").encode(["a dog", "a cat", "a dog"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (vectors[0] == vectors[2]).all()
    assert not np.allclose(vectors[0], vectors[1])


@pytest.mark.parametrize("keep", [0, 3, 40, 150, -1])
def test_damaged_files_are_refused(keep: int, tmp_path: Path) -> None:
    path = Packed().write(tmp_path / "tiny.bin")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match="not a file of multilingual-e5-small"):
        PackedE5(path)


def test_languages_meet_in_one_space() -> None:
    try:
        encoder = load_sentence_encoder("multilingual-e5-small")
    except MissingData as missing:
        pytest.skip(str(missing))
    dogs = ["a dog runs on the grass", "um cachorro corre na grama", "一只狗在草地上奔跑", "犬が草の上を走る"]
    others = ["a plate of food on a table", "um prato de comida na mesa", "桌上有一盘食物", "テーブルの上の料理"]
    vectors = encoder.encode([*dogs, *others])
    alike = vectors @ vectors.T
    assert alike[:4, :4].min() > alike[:4, 4:].max()
    assert alike[4:, 4:].min() > alike[:4, 4:].max()
