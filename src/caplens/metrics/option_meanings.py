"""What the options of metrics mean, for `caplens metrics NAME` and for the tables of the documentation."""

from __future__ import annotations

import inspect
import re

from caplens.metrics.base import Metric

# What options mean that several metrics share, or whose class says it elsewhere than under "Args:".
MEANINGS = {
    "tokenizer": 'how texts are cut into words: `"ptb"` as coco-caption does, `"whitespace"`, `"13a"`, `"intl"`, '
    '`"char"`, `"zh"`, `"ja-mecab"`, `"ko-mecab"` as sacrebleu does, `"jieba"`, `"fugashi"`, all on lower-cased text, '
    'the code of a language such as `"pt"` for what is taken there, or a function',
    "idf": 'where document frequencies come from: `"corpus"` (these references), a table of `caplens idf build`, '
    "a file of captions, or lists of references",
    "sigma": "width of the Gaussian on the difference in length",
    "k_r": "weight of the repetition penalty, from 0 to 1; the length penalty has the rest",
    "formula": '`"official"` as the authors\' scorer computes it, `"paper"` as the paper prints it',
    "data": "a folder with METEOR's own files; else what `caplens weights fetch meteor` brought",
    "vectors": "word vectors: a name of `caplens weights list`, or a file",
    "text_encoder": "the language model: a name of `caplens weights list`, a hub name, or a folder",
    "against": '`"nearest"` reference, `"centroid"` of all references, or `"both"` (the mean of the two)',
    "layer": "which layer's states are compared; `None` is layer 9 for all-mpnet-base-v2 and the last one for others",
    "baseline": "a csv with LAYER, P, R, F by which scores are rescaled, as bert-score's own package has them",
    "part": '`"f"`, `"precision"` or `"recall"`',
    "prompt": "what stands before every text; `None` is the prompt that the encoder's metric was published with",
    "ridge": "what is added to the diagonals of the covariances",
    "jar": "path of the original program, for the java backend",
    "timeout": "seconds that the java backend may take",
    "memory": "how much memory the java backend may take",
    "parser": "a parser by name (`caplens weights list`) or the folder of a spaCy pipeline",
}
# An option of one metric may mean something else than its namesakes.
OWN_MEANINGS = {
    ("bert-score", "idf"): "whether rare tokens count more, by their frequency in the references",
    ("spice", "backend"): '`"java"` runs the original program instead',
}

_ENTRY = re.compile(r"^    (\w+): (.*?)(?=^    \w+:|^\S|\Z)", re.M | re.S)


def option_meanings(metric: type[Metric]) -> dict[str, str]:
    """Return options with their meanings: what the docstrings say under "Args:", else the tables above."""
    said: dict[str, str] = {}
    for level in metric.__mro__:
        _, _, listed = (inspect.getdoc(level) or "").partition("Args:\n") if level.__doc__ else ("", "", "")
        for name, text in _ENTRY.findall(listed):
            said.setdefault(name, " ".join(text.split()).rstrip(".").replace("``", "`"))
    own = {name: text for (owner, name), text in OWN_MEANINGS.items() if owner == metric.name}
    meanings = {**MEANINGS, **said, **own}
    return {name: meanings.get(name, "") for name in metric.option_defaults()}
