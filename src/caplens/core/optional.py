"""The one gate for optional packages: which are installed, what each is for, and the command that gets it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from caplens.core.errors import MissingData


@dataclass(frozen=True)
class Package:
    """A package that only some features need."""

    module: str
    """The name it is imported by."""
    purpose: str
    """What it is for, as `caplens doctor` says it."""
    extras: tuple[str, ...] = ()
    """The extras of caplens that bring it, the one to suggest first; none: it is installed by its own name."""
    distribution: str = ""
    """The name it is installed by, where that is not the module's."""

    @property
    def name(self) -> str:
        """Return the name it is installed by."""
        return self.distribution or self.module

    def version(self) -> str | None:
        """Return the version that is installed here, or None."""
        if not available(self.module):
            return None
        try:
            return importlib.metadata.version(self.name)
        except importlib.metadata.PackageNotFoundError:  # copied onto the path by hand
            return "of unknown version"


PACKAGES = {
    package.module: package
    for package in (
        Package("onnxruntime", "pictures in the embedded encoder", ("embedded", "onnx", "int8", "train")),
        Package(
            "tokenizers",
            "the embedded encoder, BERTScore, sentence similarity",
            ("sentence", "embedded", "clip", "train", "generate"),
        ),
        Package("ai_edge_litert", "finding objects in pictures", ("regions", "embedded", "train"), "ai-edge-litert"),
        Package("msgpack", "SPICE, telling nouns and verbs apart", ("parse", "embedded", "train")),
        Package("av", "reading videos", ("video",)),
        Package("pandas", "to_pandas", ("table", "ray")),
        Package("pyarrow", "reading parquet, results of shards", ("table", "shards", "ray")),
        Package("fsspec", "shards at s3:// and other addresses", ("shards", "ray")),
        Package("ray", "shards on many machines", ("ray",)),
        Package("torch", "CLIP from the hub, training", ("clip", "train", "generate")),
        Package("transformers", "CLIP and other models from the hub", ("clip", "train", "generate")),
        Package("huggingface_hub", "downloading models from the hub", ("clip", "train", "generate")),
        Package("ftfy", "CLIP's tokenizer", ("clip", "train", "generate")),
        Package("onnx", "the embedded encoder in 8-bit numbers", ("int8",)),
        Package("matplotlib", "plots, learning curves of trainings", ("train",)),
        Package("diffusers", "drawing pictures to train on", ("generate",)),
        Package("sacrebleu", "tokenizers for other languages", ("languages",)),
        Package("snowballstemmer", "METEOR in other languages", ("languages",)),
        Package("jieba", "Chinese words", ("languages",)),
        Package("fugashi", "Japanese words", ("languages",)),
        Package("unidic_lite", "Japanese words", ("languages",), distribution="unidic-lite"),
        Package("httpx", "asking language models to judge", ("judge",)),
        Package("fastapi", "caplens serve", ("serve",)),
        Package("uvicorn", "caplens serve", ("serve",)),
        Package("open_clip", "CLIP's ResNet backbones", distribution="open_clip_torch"),
        Package("torchmetrics", "caplens.compat.torchmetrics"),
        Package("evaluate", "metrics as modules of Hugging Face evaluate"),
        Package("datasets", "metrics as modules of Hugging Face evaluate"),
        Package("inspect_ai", "scorers of Inspect"),
        Package("wandb", "logging results to Weights & Biases"),
        Package("mlflow", "logging results to MLflow"),
        Package("tensorboard", "logging results to TensorBoard"),
    )
}


def available(module: str) -> bool:
    """Say whether a package is installed, without importing it.

    >>> available("numpy"), available("no_such_package")
    (True, False)
    """
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # put into sys.modules by hand, as tests do
        return True


def check(*modules: str, purpose: str) -> None:
    """Raise `MissingData` with the one command that gets all of these packages, unless they are installed."""
    missing = [PACKAGES[module] for module in modules if not available(module)]
    if missing:
        raise lacking(purpose, [package.name for package in missing], install_command(missing))


def require(path: str, *others: str, purpose: str) -> Any:
    """Import an optional package, a module of it, or something in that module, and return it.

    Args:
        path: ``torch``, ``onnxruntime.quantization``, ``transformers:CLIPModel``.
        others: what must load as well.
        purpose: who needs it, as the message for those who lack it begins: "CLIP", "reading videos".
    """
    check(*(re.split("[.:]", module)[0] for module in (path, *others)), purpose=purpose)
    first, *_ = (_load(module, purpose) for module in (path, *others))
    return first


def _load(path: str, purpose: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        imported = importlib.import_module(module)
        return getattr(imported, attribute) if attribute else imported
    except Exception as error:  # a package that does not fit its neighbors may fail in any way
        package = PACKAGES[module.partition(".")[0]]
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise MissingData(
            f"{purpose} needs {package.name}, which is installed but does not load here ({reason}): "
            f"{install_command([package], upgrade=True)}"
        ) from error


def install_command(packages: Iterable[Package], *, upgrade: bool = False) -> str:
    """Return the command that installs these packages: by one extra that has them all, if there is one.

    >>> install_command([PACKAGES["tokenizers"]]), install_command([PACKAGES["tokenizers"], PACKAGES["onnxruntime"]])
    ("pip install 'caplens[sentence]'", "pip install 'caplens[embedded]'")
    """
    packages = list(packages)
    shared = [extra for extra in packages[0].extras if all(extra in package.extras for package in packages)]
    if shared:
        requirements = f"'caplens[{shared[0]}]'"
    else:
        requirements = " ".join(
            f"'caplens[{package.extras[0]}]'" if package.extras else package.name for package in packages
        )
    return f"pip install {'--upgrade ' if upgrade else ''}{requirements}"


def lacking(purpose: str, needed: Sequence[str], command: str) -> MissingData:
    """Return the error that says what is needed and how to get it; for data and weights as for packages.

    >>> str(lacking("SPICE", ["wordnet-3.0", "msgpack"], "caplens weights fetch wordnet-3.0"))
    'SPICE needs wordnet-3.0 and msgpack: caplens weights fetch wordnet-3.0'
    """
    listed = " and ".join([", ".join(needed[:-1]), needed[-1]] if len(needed) > 1 else needed)
    return MissingData(f"{purpose} needs {listed}: {command}")
