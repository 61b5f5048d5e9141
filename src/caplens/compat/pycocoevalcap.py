"""The interface of pycocoevalcap (and of the little of pycocotools that it needs), with caplens behind it.

    from caplens.compat.pycocoevalcap import COCO, COCOEvalCap

    coco = COCO("captions_val2014.json")
    evaluation = COCOEvalCap(coco, coco.loadRes("results.json"))
    evaluation.evaluate()
    evaluation.eval["CIDEr"], evaluation.imgToEval[42]["Bleu_4"]

Scorers get captions that are already tokenized, as there: `compute_score({id: [references]}, {id: [caption]})`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.errors import CaplensWarning, InputError, as_caplens_error
from caplens.core.workspace import Workspace
from caplens.metrics import find_metric
from caplens.metrics.base import Result
from caplens.text.ptb import tokenize_in_file_order

Texts = Mapping[Any, list[str]]
Annotations = Mapping[Any, Sequence[Mapping[str, Any]]]


class Captioned(Protocol):
    """What COCOEvalCap asks of its two arguments; pycocotools' COCO has it."""

    imgToAnns: Any

    def getImgIds(self) -> Sequence[Any]: ...


class COCO:
    """Captions of a COCO annotation file, by image."""

    def __init__(self, annotation_file: str | os.PathLike[str] | None = None) -> None:
        self.dataset: dict[str, Any] = {}
        if annotation_file is not None:
            self.dataset = json.loads(Path(annotation_file).read_text(encoding="utf-8"))
            if not isinstance(self.dataset, dict) or "annotations" not in self.dataset:
                raise InputError("no 'annotations' in it", where=str(annotation_file), remedy="give COCO annotations")
        self.createIndex()

    def createIndex(self) -> None:
        """Sort the annotations by image."""
        self.anns: dict[Any, dict[str, Any]] = {}
        self.imgToAnns: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
        for place, annotation in enumerate(self.dataset.get("annotations", [])):
            self.anns[annotation.get("id", place)] = annotation
            self.imgToAnns[annotation["image_id"]].append(annotation)
        images = self.dataset.get("images")
        self.imgs: dict[Any, Any] = (
            dict.fromkeys(self.imgToAnns) if images is None else {image["id"]: image for image in images}
        )

    def getImgIds(self) -> list[Any]:
        return list(self.imgs)

    def loadRes(self, results: str | os.PathLike[str] | list[dict[str, Any]]) -> COCO:
        """Results as captions of the same images."""
        where = "" if isinstance(results, list) else os.fspath(results)
        rows = results if isinstance(results, list) else json.loads(Path(results).read_text(encoding="utf-8"))
        unknown = {row["image_id"] for row in rows} - set(self.imgs)
        if unknown:
            raise InputError(f"results for unknown images, {min(unknown)!r} among them", where=where)
        loaded = COCO()
        known = {row["image_id"] for row in rows}
        loaded.dataset = {
            "images": [image or {"id": key} for key, image in self.imgs.items() if key in known],
            "annotations": [{**row, "id": number} for number, row in enumerate(rows, 1)],
        }
        loaded.createIndex()
        return loaded


class PTBTokenizer:
    """Tokens as pycocoevalcap gets them from Java, which reads all captions as lines of one file."""

    def tokenize(self, captions_for_image: Annotations) -> dict[Any, list[str]]:
        """{id: [{"caption": text}, …]} to {id: [tokens joined by spaces, …]}."""
        keys = [key for key, rows in captions_for_image.items() for _ in rows]
        texts = [row["caption"] for rows in captions_for_image.values() for row in rows]
        tokenized: dict[Any, list[str]] = {}
        for key, text in zip(keys, tokenize_in_file_order(texts), strict=True):
            tokenized.setdefault(key, []).append(text)
        return tokenized


class Scorer:
    """One caplens metric, or several, behind `compute_score`."""

    metrics: ClassVar[tuple[str, ...]]
    title: ClassVar[str]

    def __init__(self, **options: Any) -> None:
        self.options = options

    def method(self) -> str:
        """What COCOEvalCap calls it while it works."""
        return self.title

    def results(self, gts: Texts, res: Texts) -> list[Result]:
        """The results of `metrics` on captions that are already tokenized."""
        work = Workspace(_caption_set(gts, res))
        results = []
        for name in self.metrics:
            metric = find_metric(name)
            options = {**self.options, **({"tokenizer": "whitespace"} if "tokenizer" in metric.options() else {})}
            results.append(metric(**options).result(work))
        return results

    def compute_score(self, gts: Texts, res: Texts, verbose: int = 0) -> tuple[Any, Any]:
        """Corpus score and one score per image, in the order of `gts`."""
        (result,) = self.results(gts, res)
        return np.float64(result.score), result.scores


class Bleu(Scorer):
    """BLEU-1 to BLEU-n: two lists with one entry per n."""

    title = "Bleu"

    def __init__(self, n: int = 4) -> None:
        if not 1 <= n <= 4:
            raise InputError(f"Bleu({n})", remedy="n goes from 1 to 4")
        super().__init__()
        self.metrics = tuple(f"bleu-{k}" for k in range(1, n + 1))  # type: ignore[misc]

    def compute_score(self, gts: Texts, res: Texts, verbose: int = 0) -> tuple[list[float], list[list[float]]]:
        results = self.results(gts, res)
        return [result.score for result in results], [result.scores.tolist() for result in results]


class Rouge(Scorer):
    """ROUGE-L."""

    title = "Rouge"
    metrics = ("rouge-l",)

    def __init__(self) -> None:
        super().__init__()


class Cider(Scorer):
    """CIDEr-D, which goes by the name of CIDEr here."""

    title = "CIDEr"
    metrics = ("cider-d",)

    def __init__(self, test: None = None, refs: None = None, n: int = 4, sigma: float = 6.0) -> None:
        if n != 4:
            raise InputError(f"Cider(n={n})", remedy="n-grams go up to 4")
        super().__init__(sigma=sigma)


class CiderR(Scorer):
    """CIDEr-R."""

    title = "CIDEr-R"
    metrics = ("cider-r",)


class Meteor(Scorer):
    """METEOR: the scores per image are a list."""

    title = "METEOR"
    metrics = ("meteor",)

    def compute_score(self, gts: Texts, res: Texts, verbose: int = 0) -> tuple[float, list[float]]:
        (result,) = self.results(gts, res)
        return result.score, result.scores.tolist()


class Spice(Scorer):
    """SPICE: the scores per image are dicts by category, each with "f", NaN where the references have nothing of it."""

    title = "SPICE"
    metrics = ("spice",)

    def compute_score(self, gts: Texts, res: Texts, verbose: int = 0) -> tuple[float, list[dict[str, Any]]]:
        (result,) = self.results(gts, res)
        scores = []
        for score, detail in zip(result.scores.tolist(), result.details or [], strict=True):
            categories = {"Cardinality" if name == "Count" else name: f for name, f in detail["categories"].items()}
            scores.append({name: {"f": np.nan if f is None else f} for name, f in {"All": score, **categories}.items()})
        return result.score, scores


class COCOEvalCap:
    """Evaluate the captions of `cocoRes` against those of `coco`; the numbers land in `eval` and `imgToEval`."""

    scorers: ClassVar[list[tuple[Callable[[], Scorer], list[str]]]] = [
        (Bleu, ["Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4"]),
        (Meteor, ["METEOR"]),
        (Rouge, ["ROUGE_L"]),
        (Cider, ["CIDEr"]),
        (Spice, ["SPICE"]),
    ]

    def __init__(self, coco: Captioned, cocoRes: Captioned) -> None:
        self.coco, self.cocoRes = coco, cocoRes
        self.evalImgs: list[dict[str, Any]] = []
        self.eval: dict[str, float] = {}
        self.imgToEval: dict[Any, dict[str, Any]] = {}
        self.params: dict[str, Any] = {"image_id": coco.getImgIds()}

    def evaluate(self) -> None:
        """Run every scorer; one that lacks its data is left out with a warning."""
        ids = self.params["image_id"]
        tokenizer = PTBTokenizer()
        gts = tokenizer.tokenize({key: self.coco.imgToAnns[key] for key in ids})
        res = tokenizer.tokenize({key: self.cocoRes.imgToAnns[key] for key in ids})
        for make, names in self.scorers:
            try:
                score, scores = make().compute_score(gts, res)
            except Exception as error:
                if isinstance(error, InputError) and error.where == WHERE:
                    raise  # the captions are wrong, not the scorer
                warnings.warn(f"{names[0]} was left out: {as_caplens_error(error)}", CaplensWarning, stacklevel=2)
                continue
            for name, whole, each in zip(
                names, *([[score], [scores]] if len(names) == 1 else [score, scores]), strict=True
            ):
                self.setEval(whole, name)
                self.setImgToEvalImgs(each, gts, name)
        self.setEvalImgs()

    def setEval(self, score: float, method: str) -> None:
        self.eval[method] = score

    def setImgToEvalImgs(self, scores: Sequence[Any] | NDArray[np.float64], imgIds: Any, method: str) -> None:
        for key, score in zip(imgIds, scores, strict=True):
            self.imgToEval.setdefault(key, {"image_id": key})[method] = score

    def setEvalImgs(self) -> None:
        self.evalImgs = list(self.imgToEval.values())


WHERE = "gts and res"


def _caption_set(gts: Texts, res: Texts) -> CaptionSet:
    if gts.keys() != res.keys():
        odd = next(iter(gts.keys() ^ res.keys()))
        raise InputError(f"image {odd!r} is in only one of them", where=WHERE, remedy="give both for every image")
    for key, captions in res.items():
        if len(captions) != 1:
            raise InputError(f"image {key!r} has {len(captions)} captions to judge", where=WHERE, remedy="give one")
    return CaptionSet(
        ids=[str(row) for row in range(len(gts))],  # keys may be 1 and "1", which are two images here
        candidates=[res[key][0] for key in gts],
        references=list(gts.values()),
    )
