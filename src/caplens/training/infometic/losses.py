"""InfoMetIC's losses, and the batches they are computed on.

Coarse steps: contrastive losses on vision recall and text precision over all pairs of a small batch, in which groups of
similar pictures make hard negatives, and hard textual negatives for recall. Fine steps, one in four: word labels from
captions with a replaced word, region labels from the detector's names. docs/research/infometic.md says what differs
from the paper and why.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from caplens.metrics.infometic.explained import LEAST_ALPHA
from caplens.training.infometic.config import InfoMeticConfig
from caplens.training.infometic.data import Ints
from caplens.training.infometic.network import FusionScores, InfoMeticNetwork
from caplens.training.infometic.tensors import MOST_WORDS, CaptionTensors, SplitTensors

SHARPNESS = 4.0
"""How steeply a word's loss rises on the wrong side of β."""


class Losses:
    """The losses over one split."""

    def __init__(
        self, network: InfoMeticNetwork, tokens: Tensor, split: SplitTensors, config: InfoMeticConfig, scale: float
    ) -> None:
        self.network, self.tokens, self.split, self.config, self.scale = network, tokens, split, config, scale

    def score(
        self, pictures: Tensor, captions: CaptionTensors, texts: Tensor, pairs: tuple[Tensor, Tensor]
    ) -> FusionScores:
        """Score pairs of positions in `pictures` and `texts`, which are rows of the split."""
        split = self.split
        images = self.network.encode_image(split.regions[pictures], split.boxes[pictures])
        read = self.network.encode_text(self.tokens[captions.rows[texts]])
        left, right = pairs
        return self.network.score(
            images[left],
            read[right],
            split.whole_images[pictures][left],
            captions.wholes[texts][right],
            split.region_masks[pictures][left],
            captions.masks[texts][right],
        )

    def coarse(self, pictures: Tensor, texts: Tensor, harder: Tensor) -> dict[str, Tensor]:
        """Return eq. 5 to 8 by name.

        `texts` belong to `pictures` row by row; `harder` are captions of theirs that say less, or -1.
        """
        count = len(pictures)
        hard = (
            torch.nonzero(harder >= 0)[:, 0] if self.config.hard_textual_negatives else torch.zeros(0, dtype=torch.long)
        )
        every = torch.cat([texts, harder[hard]])
        grid = torch.arange(count)
        truth = grid.to(self.tokens.device)
        left = torch.cat([grid.repeat_interleave(count), hard])
        right = torch.cat([grid.repeat(count), torch.arange(count, len(every))])
        scores = self.score(pictures, self.split.captions, every, (left, right))
        losses = {}
        cosines = self.cosines(pictures, texts) if self.config.on_cosine else 0.0
        both = scores.recall + scores.precision
        for name, values in (("recall", scores.recall), ("precision", scores.precision), ("both", both)):
            table = values[: count * count].view(count, count) + cosines
            losses[name] = (functional.cross_entropy(table, truth) + functional.cross_entropy(table.T, truth)) / 2
        similarity = self.reference_similarity(pictures, texts)
        sums = both[: count * count].view(count, count)
        if self.config.graded:
            losses["graded"] = self.config.graded * pearson_loss(sums + self.cosines(pictures, texts), similarity)
        if self.config.graded_alone:
            losses["graded alone"] = self.config.graded_alone * pearson_loss(sums, similarity)
        if len(hard):
            own = scores.recall[: count * count].view(count, count).diagonal()[hard]
            losses["hard textual negatives"] = functional.softplus(scores.recall[count * count :] - own).mean()
        return losses

    def cosines(self, pictures: Tensor, texts: Tensor) -> Tensor:
        """Return the encoder's cos(v_g, t_g) / τ, every picture with every caption: what InfoMetIC+ adds (eq. 11)."""
        images = functional.normalize(self.split.encoded_images[pictures], dim=-1)
        return self.scale * images @ functional.normalize(self.split.captions.encoded[texts], dim=-1).T

    def graded_tables(self, pictures: Tensor, texts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return recall and precision, the encoder's cosine, and reference similarity of every picture and caption."""
        count = len(pictures)
        grid = torch.arange(count)
        scores = self.score(pictures, self.split.captions, texts, (grid.repeat_interleave(count), grid.repeat(count)))
        sums = (scores.recall + scores.precision).view(count, count)
        return sums, self.cosines(pictures, texts), self.reference_similarity(pictures, texts)

    def reference_similarity(self, pictures: Tensor, texts: Tensor) -> Tensor:
        """Return how near every caption is to what people said about every picture."""
        captions = functional.normalize(self.split.captions.encoded[texts], dim=-1)
        counts = torch.tensor([len(self.split.captions_of[picture]) for picture in pictures.tolist()])
        owners, sums = self.split.captions.owner[texts], self.split.caption_sums[pictures]
        return reference_similarity(captions, owners, sums, counts.to(sums.device), pictures.to(sums.device))

    def words(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Return α of every word of corrupted captions, and their loss (eq. 9), over whole words instead of pieces."""
        captions = self.split.corrupted
        pictures = captions.owner[texts]
        own = torch.arange(len(texts))
        alphas = self.score(pictures, captions, texts, (own, own)).words
        places = functional.one_hot(captions.words[texts], MOST_WORDS + 1).float()
        by_word = (alphas[:, None] @ places)[:, 0, :MOST_WORDS]
        right = captions.right[texts]
        counts = right.sum(dim=1) + 1  # the replaced word is semantic too
        terms = torch.where(right, -torch.log(by_word.clamp_min(1e-8)), 0).sum(dim=1) / counts
        if not self.config.at_beta:
            return by_word, terms.mean()
        judged = right | captions.wrong[texts]
        beyond = torch.where(right, 1, -1) * torch.log(by_word.clamp_min(1e-8) / LEAST_ALPHA)
        sided = torch.where(judged, functional.softplus(-SHARPNESS * beyond), 0).sum() / judged.sum()
        return by_word, terms.mean() + self.config.at_beta * sided

    def regions(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Return α of every region (null last) for captions that mention some, and their loss (eq. 10)."""
        captions = self.split.captions
        own = torch.arange(len(texts))
        alphas = self.score(captions.owner[texts], captions, texts, (own, own)).regions
        mentioned = self.split.mentioned[texts][:, 1:]
        terms = torch.where(mentioned, -torch.log(alphas.clamp_min(1e-8)), 0).sum(dim=1) / mentioned.sum(
            dim=1
        ).clamp_min(1)
        return alphas, terms.mean()

    def fine(self, corrupted: Tensor, texts: Tensor) -> dict[str, Tensor]:
        """Return eq. 9 and 10 by name."""
        return {"words": self.words(corrupted)[1], "regions": self.regions(texts)[1]}


def reference_similarity(captions: Tensor, owners: Tensor, sums: Tensor, counts: Tensor, pictures: Tensor) -> Tensor:
    """Return (pictures, captions): mean cosine of a caption with a picture's captions, itself left out.

    `captions` are unit vectors and `owners` their pictures; `sums` has the sum of each picture's captions.
    """
    own = (owners[None] == pictures[:, None]).float()
    return (sums @ captions.T - own) / (counts[:, None] - own).clamp_min(1)


def pearson_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Return 1 − Pearson's correlation over all pairs."""
    return 1 - functional.cosine_similarity(
        (scores - scores.mean()).flatten(), (targets - targets.mean()).flatten(), dim=0
    )


@dataclass
class Sampler:
    """Draws batches; all of its randomness is one generator."""

    split: SplitTensors
    config: InfoMeticConfig
    generator: torch.Generator
    with_regions: Ints = field(init=False)
    """Rows of captions that mention a region."""

    def __post_init__(self) -> None:
        self.with_regions = np.flatnonzero(self.split.mentioned.any(dim=1).cpu().numpy())

    def draw(self, most: int) -> int:
        """Return a number below `most`."""
        return int(torch.randint(most, (1,), generator=self.generator))

    def coarse(self) -> tuple[Tensor, Tensor, Tensor]:
        """Draw pictures in groups of similar ones, a caption of each, and one of each that says less (-1 if none)."""
        split, count = self.split, len(self.split.captions_of)
        chosen: list[int] = []
        while len(chosen) < self.config.batch:
            seed = self.draw(count)
            near = split.neighbors[seed]
            others = [int(near[self.draw(len(near))]) for _ in range(self.config.group - 1)]
            chosen += [picture for picture in dict.fromkeys([seed, *others]) if picture not in chosen]
        chosen = chosen[: self.config.batch]
        texts, harder = [], []
        for picture in chosen:
            rows = split.captions_of[picture]
            pair = [int(rows[self.draw(len(rows))]) for _ in range(2)]
            pair.sort(key=lambda row: -int(split.captions.semantic_counts[row]))
            counts = split.captions.semantic_counts[pair]
            texts.append(pair[0])
            harder.append(pair[1] if counts[0] > counts[1] else -1)
        return torch.tensor(chosen), torch.tensor(texts), torch.tensor(harder)

    def fine(self) -> tuple[Tensor, Tensor]:
        """Draw corrupted captions, and captions with region labels."""
        size = self.config.fine_batch
        corrupted = torch.randint(len(self.split.corrupted.rows), (size,), generator=self.generator)
        rows = torch.randint(len(self.with_regions), (size,), generator=self.generator)
        return corrupted, torch.from_numpy(self.with_regions)[rows]
