"""Small random language models in the published layout, for tests of everything that reads one."""

from __future__ import annotations

import json
from pathlib import Path

WORDS = [
    "a",
    "an",
    "the",
    "dog",
    "cat",
    "man",
    "woman",
    "on",
    "in",
    "with",
    "red",
    "blue",
    "runs",
    "sits",
    "ball",
    "grass",
    "two",
    "##s",
    "##ing",
    "un",
    "##known",
    "walk",
    ".",
    ",",
]


def write_tiny_model(folder: Path, kind: str, seed: int = 0) -> Path:
    """A two-layer BERT or MPNet with random weights and a word-piece vocabulary."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

    folder.mkdir(parents=True)
    start, end, pad, unknown = (
        ("[CLS]", "[SEP]", "[PAD]", "[UNK]") if kind == "bert" else ("<s>", "</s>", "<pad>", "[UNK]")
    )
    # MPNet's padding index is 1; BERT's is 0.
    special = [pad, start, end, unknown] if kind == "bert" else [start, pad, end, unknown]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}", special_tokens=[(start, vocabulary[start]), (end, vocabulary[end])]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"cls_token": start, "sep_token": end, "pad_token": pad, "unk_token": unknown, "model_max_length": 40}
    (folder / "tokenizer_config.json").write_text(json.dumps({**names, "tokenizer_class": "PreTrainedTokenizerFast"}))
    torch.manual_seed(seed)
    sizes = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    if kind == "bert":
        model = BertModel(
            BertConfig(vocab_size=len(vocabulary), max_position_embeddings=40, initializer_range=0.4, **sizes)
        )
    else:
        model = MPNetModel(
            MPNetConfig(vocab_size=len(vocabulary), max_position_embeddings=42, initializer_range=0.4, **sizes)
        )
    for name, parameter in model.named_parameters():  # biases and norms too, so that a forgotten one is seen
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, 1.0 if "LayerNorm.weight" in name else 0.0, 0.2)
    model.save_pretrained(folder)
    return folder
