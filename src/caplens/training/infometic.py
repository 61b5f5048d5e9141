"""Train InfoMetIC's network over a frozen encoder (Hu et al., ACL 2023, §3.2).

Coarse steps: contrastive losses on vision recall and text precision over all pairs of a small batch, in which groups of
similar pictures make hard negatives, and hard textual negatives for recall. Fine steps, one in four: word labels from
polluted captions, region labels from the detector's names. Differences from the paper: docs/research/infometic.md.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from caplens.core.types import Vectors
from caplens.metrics.infometic.network import heads_of
from caplens.training.infometic_network import FusionScores, InfoMeticNetwork
from caplens.training.infometic_tensors import MOST_WORDS, CaptionTensors, SplitTensors
from caplens.training.trainer import TrainingRun, optimizer_tensors, restore_optimizer

if TYPE_CHECKING:
    from caplens.training.grounded import Ints
    from caplens.training.pairs import Progress


@dataclass(frozen=True)
class InfoMeticConfig:
    """Everything that changes the result."""

    seed: int = 0
    width: int = 64
    intra_layers: int = 1
    """0: no intra-modality fusion (Table 2, r2)."""
    inter_layers: int = 1
    """0: no inter-modality fusion (r1)."""
    whole_image: bool = True
    """The whole picture takes part in fusion (v_g; r3 without)."""
    hard_textual_negatives: bool = True
    """HTN."""
    fine_grained: bool = True
    """FS."""
    coarse_per_fine: int = 3
    on_cosine: bool = True
    """Contrast the scores together with the encoder's cosine, so that they learn what it misses; False: alone."""
    graded: float = 20.0
    """Weight of the agreement of precision, recall and cosine with how near a caption is to the picture's own captions;
    0: only right or wrong counts."""
    graded_alone: float = 5.0
    """The same for precision and recall without the cosine."""
    at_beta: float = 6.0
    """Weight of words being on their side of β."""
    scale: float = 5.0
    """1/τ at the start; it is learned."""
    batch: int = 12
    group: int = 6
    """Similar pictures that come together; 1 gives random batches."""
    neighbors: int = 30
    fine_batch: int = 64
    steps: int = 2400
    warm_up: int = 40
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    validate_every: int = 100
    patience: int = 6
    """Validations without a better loss before it stops."""


LEAST_ALPHA = 0.1  # β
SHARPNESS = 4.0
"""How steeply a word's loss rises on the wrong side of β."""
FACTORS = tuple(2.0 ** (step / 4) for step in range(-8, 13))
"""Scales of the learned scores that are tried at the end, as multiples of what was learned."""


def new_fusion(projection: Tensor | None, width: int, config: InfoMeticConfig, scale: float) -> InfoMeticNetwork:
    """An untrained network that begins near InfoCLIP: attention as the encoder's cosines, blocks that add little."""
    torch.manual_seed(config.seed)
    fusion = InfoMeticNetwork(width, heads_of(width), config.intra_layers, config.inter_layers, projection)
    with torch.no_grad():
        for name, parameter in fusion.named_parameters():
            if name.endswith(("out_proj.weight", "c_proj.weight")):
                parameter.mul_(0.1)
        for side, share in (("img", 1.0), ("text", 0.5)):  # a caption has fewer words than a picture has regions
            getattr(fusion, f"{side}_att_query").copy_(torch.eye(width) * scale * share / width)
            getattr(fusion, f"{side}_att_key").copy_(torch.eye(width))
        fusion.logit_scale.fill_(math.log(config.scale))
    return fusion


class Losses:
    """The training tasks over one split."""

    def __init__(
        self, fusion: InfoMeticNetwork, tokens: Tensor, side: SplitTensors, config: InfoMeticConfig, scale: float
    ) -> None:
        self.fusion, self.tokens, self.side, self.config, self.scale = fusion, tokens, side, config, scale

    def score(
        self, pictures: Tensor, captions: CaptionTensors, texts: Tensor, pairs: tuple[Tensor, Tensor]
    ) -> FusionScores:
        """Pairs of places in `pictures` and `texts`, which are rows of the split."""
        side = self.side
        images = self.fusion.encode_image(side.regions[pictures], side.boxes[pictures])
        read = self.fusion.encode_text(self.tokens[captions.rows[texts]])
        left, right = pairs
        return self.fusion.score(
            images[left],
            read[right],
            side.whole_images[pictures][left],
            captions.wholes[texts][right],
            side.region_masks[pictures][left],
            captions.masks[texts][right],
        )

    def coarse(self, pictures: Tensor, texts: Tensor, harder: Tensor) -> dict[str, Tensor]:
        """Eq. 5 to 8. `texts` belong to `pictures` row by row; `harder` are captions of theirs that say less, or -1."""
        count = len(pictures)
        hard = (
            torch.nonzero(harder >= 0)[:, 0] if self.config.hard_textual_negatives else torch.zeros(0, dtype=torch.long)
        )
        every = torch.cat([texts, harder[hard]])
        grid = torch.arange(count)
        left = torch.cat([grid.repeat_interleave(count), hard])
        right = torch.cat([grid.repeat(count), torch.arange(count, len(every))])
        scores = self.score(pictures, self.side.captions, every, (left, right))
        made = {}
        cosines = self.cosines(pictures, texts) if self.config.on_cosine else torch.zeros(())
        both = scores.recall + scores.precision
        for name, values in (("recall", scores.recall), ("precision", scores.precision), ("both", both)):
            table = values[: count * count].view(count, count) + cosines
            made[name] = (functional.cross_entropy(table, grid) + functional.cross_entropy(table.T, grid)) / 2
        near = self.nearness(pictures, texts)
        sums = both[: count * count].view(count, count)
        if self.config.graded:
            made["graded"] = self.config.graded * disagreement(sums + self.cosines(pictures, texts), near)
        if self.config.graded_alone:
            made["graded alone"] = self.config.graded_alone * disagreement(sums, near)
        if len(hard):
            own = scores.recall[: count * count].view(count, count).diagonal()[hard]
            made["hard textual negatives"] = functional.softplus(scores.recall[count * count :] - own).mean()
        return made

    def cosines(self, pictures: Tensor, texts: Tensor) -> Tensor:
        """cos(v_g, t_g) / τ of the encoder, every picture with every caption: what InfoMetIC+ adds (eq. 11)."""
        seen = functional.normalize(self.side.encoded_images[pictures], dim=-1)
        return self.scale * seen @ functional.normalize(self.side.captions.encoded[texts], dim=-1).T

    def graded_tables(self, pictures: Tensor, texts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Every picture with every caption: recall and precision, the encoder's cosine, and how near they are."""
        count = len(pictures)
        grid = torch.arange(count)
        scores = self.score(pictures, self.side.captions, texts, (grid.repeat_interleave(count), grid.repeat(count)))
        sums = (scores.recall + scores.precision).view(count, count)
        return sums, self.cosines(pictures, texts), self.nearness(pictures, texts)

    def nearness(self, pictures: Tensor, texts: Tensor) -> Tensor:
        """How near every caption is to what people said about every picture."""
        captions = functional.normalize(self.side.captions.encoded[texts], dim=-1)
        counts = torch.tensor([len(self.side.listed[picture]) for picture in pictures.tolist()])
        return nearness(captions, self.side.captions.owner[texts], self.side.said[pictures], counts, pictures)

    def words(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """α of every word of polluted captions, and their loss (eq. 9), over whole words instead of pieces."""
        captions = self.side.polluted
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
        sided = functional.softplus(-SHARPNESS * beyond)[judged].mean()
        return by_word, terms.mean() + self.config.at_beta * sided

    def regions(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """α of every region (null last) for captions that mention some, and their loss (eq. 10)."""
        captions = self.side.captions
        own = torch.arange(len(texts))
        alphas = self.score(captions.owner[texts], captions, texts, (own, own)).regions
        said = self.side.mentioned[texts][:, 1:]
        terms = torch.where(said, -torch.log(alphas.clamp_min(1e-8)), 0).sum(dim=1) / said.sum(dim=1).clamp_min(1)
        return alphas, terms.mean()

    def fine(self, polluted: Tensor, texts: Tensor) -> dict[str, Tensor]:
        """Eq. 9 and 10."""
        return {"words": self.words(polluted)[1], "regions": self.regions(texts)[1]}


def nearness(captions: Tensor, owners: Tensor, said: Tensor, counts: Tensor, pictures: Tensor) -> Tensor:
    """(pictures, captions): mean cosine of a caption with a picture's captions, itself left out.

    `captions` are unit vectors and `owners` their pictures; `said` has the sum of each picture's captions.
    """
    own = (owners[None] == pictures[:, None]).float()
    return (said @ captions.T - own) / (counts[:, None] - own).clamp_min(1)


def disagreement(scores: Tensor, wanted: Tensor) -> Tensor:
    """1 − Pearson's correlation over all pairs."""
    return 1 - functional.cosine_similarity(
        (scores - scores.mean()).flatten(), (wanted - wanted.mean()).flatten(), dim=0
    )


@dataclass
class Sampler:
    """Draws batches; all of its randomness is one generator."""

    side: SplitTensors
    config: InfoMeticConfig
    generator: torch.Generator
    grounded: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.grounded = np.flatnonzero(self.side.mentioned.any(dim=1).numpy())

    def draw(self, most: int) -> int:
        return int(torch.randint(most, (1,), generator=self.generator))

    def coarse(self) -> tuple[Tensor, Tensor, Tensor]:
        """Pictures in groups of similar ones, a caption of each, and a caption of each that says less (-1 if none)."""
        side, count = self.side, len(self.side.listed)
        chosen: list[int] = []
        while len(chosen) < self.config.batch:
            seed = self.draw(count)
            near = side.neighbors[seed]
            others = [int(near[self.draw(len(near))]) for _ in range(self.config.group - 1)]
            chosen += [picture for picture in dict.fromkeys([seed, *others]) if picture not in chosen]
        chosen = chosen[: self.config.batch]
        texts, harder = [], []
        for picture in chosen:
            rows = side.listed[picture]
            pair = [int(rows[self.draw(len(rows))]) for _ in range(2)]
            pair.sort(key=lambda row: -int(side.captions.semantic_counts[row]))
            counts = side.captions.semantic_counts[pair]
            texts.append(pair[0])
            harder.append(pair[1] if counts[0] > counts[1] else -1)
        return torch.tensor(chosen), torch.tensor(texts), torch.tensor(harder)

    def fine(self) -> tuple[Tensor, Tensor]:
        """Polluted captions, and captions with region labels."""
        size = self.config.fine_batch
        polluted = torch.randint(len(self.side.polluted.rows), (size,), generator=self.generator)
        places = torch.randint(len(self.grounded), (size,), generator=self.generator)
        return polluted, torch.from_numpy(self.grounded)[places]


def train_fusion(
    fusion: InfoMeticNetwork,
    tokens: Vectors,
    train: SplitTensors,
    val: SplitTensors,
    config: InfoMeticConfig,
    scale: float,
    run: TrainingRun,
    progress: Progress,
) -> dict[str, float]:
    """Train in place up to the best validation; goes on from the run's checkpoint."""
    table = fusion.project(torch.from_numpy(tokens))
    generator = torch.Generator().manual_seed(config.seed)
    sampler = Sampler(train, config, generator)
    losses, held_out = (Losses(fusion, table, side, config, scale) for side in (train, val))
    trained = [parameter for parameter in fusion.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=config.weight_decay)
    best = {name: tensor.clone() for name, tensor in fusion.state_dict().items()}
    state = {"step": 0, "best step": 0, "best loss": math.inf}
    saved = run.resume()
    if saved is not None:
        tensors, state = saved
        fusion.load_state_dict({name.removeprefix("now."): t for name, t in tensors.items() if name.startswith("now.")})
        best = {name.removeprefix("best."): t for name, t in tensors.items() if name.startswith("best.")}
        restore_optimizer(optimizer, tensors)
        generator.set_state(tensors["generator"])
    while state["step"] < config.steps:
        if state["step"] - state["best step"] >= config.patience * config.validate_every:
            break
        total = 0.0
        for _ in range(config.validate_every):
            step = state["step"]
            rate = min(1.0, (step + 1) / config.warm_up) * 0.5 * (1 + math.cos(math.pi * step / config.steps))
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate * rate
            fine = config.fine_grained and step % (config.coarse_per_fine + 1) == config.coarse_per_fine
            made = losses.fine(*sampler.fine()) if fine else losses.coarse(*sampler.coarse())
            loss = torch.stack(list(made.values())).sum()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            with torch.no_grad():
                fusion.logit_scale.clamp_(max=math.log(100))
            total += float(loss.detach())
            state["step"] += 1
        reached = validate(held_out, config)
        if reached["loss"] < state["best loss"]:
            state |= {"best loss": reached["loss"], "best step": state["step"]}
            best = {name: tensor.clone() for name, tensor in fusion.state_dict().items()}
        run.log(step=state["step"], train=total / config.validate_every, **reached)
        kept = {f"now.{name}": tensor for name, tensor in fusion.state_dict().items()}
        kept |= {f"best.{name}": tensor for name, tensor in best.items()}
        run.save({**kept, **optimizer_tensors(optimizer), "generator": generator.get_state()}, state)
        progress("steps", int(state["step"]), config.steps)
    fusion.load_state_dict(best)
    if config.graded:
        weigh(held_out, config)
    run.finish()
    return {"steps": state["step"], "best step": state["best step"], **validate(held_out, config)}


def weigh(losses: Losses, config: InfoMeticConfig, batches: int = 40) -> None:
    """Set the scale of the learned scores to what agrees best with grades on validation photos, beside the cosine.

    The encoder knows its training pictures too well: there its cosine needs less help than on others.
    """
    sampler = Sampler(losses.side, config, torch.Generator().manual_seed(2))
    with torch.inference_mode():
        drawn = [losses.graded_tables(*sampler.coarse()[:2]) for _ in range(batches)]
        found = {
            factor: sum(float(disagreement(factor * sums + cosines, near)) for sums, cosines, near in drawn)
            for factor in FACTORS
        }
        losses.fusion.logit_scale.add_(math.log(min(found, key=found.__getitem__)))


def validate(losses: Losses, config: InfoMeticConfig, batches: int = 8) -> dict[str, float]:
    """The same tasks on fixed draws of the validation split, and what the numbers mean for people."""
    sampler = Sampler(losses.side, config, torch.Generator().manual_seed(1))
    sums: dict[str, list[float]] = {}
    with torch.inference_mode():
        for _ in range(batches):
            for name, value in losses.coarse(*sampler.coarse()).items():
                sums.setdefault(name, []).append(float(value))
        polluted, texts = (torch.arange(len(losses.side.polluted.rows))[:256], torch.from_numpy(sampler.grounded)[:256])
        by_word, words = losses.words(polluted)
        _, regions = losses.regions(texts)
    made = {name: float(np.mean(values)) for name, values in sums.items()}
    loss = sum(made.values())
    if config.fine_grained:
        made |= {"words": float(words), "regions": float(regions)}
        loss += (float(words) + float(regions)) / config.coarse_per_fine
    return {"loss": loss, **made, **word_figures(by_word, losses.side.polluted, polluted)}


def word_figures(by_word: Tensor, captions: CaptionTensors, rows: Tensor) -> dict[str, float]:
    """How often the replaced word has the least α of all semantic words, and how many words β judges rightly.

    A replaced word that was cut off the end counts as not found.
    """
    right, wrong = captions.right[rows], captions.wrong[rows]
    found = wrong.any(dim=1) & (
        torch.where(wrong, by_word, torch.inf).amin(dim=1) < torch.where(right, by_word, torch.inf).amin(dim=1)
    )
    agreed = torch.where(right, by_word >= LEAST_ALPHA, by_word < LEAST_ALPHA) & (right | wrong)
    return {
        "replaced word lowest": float(found.float().mean()),
        "words right at β": float(agreed.sum() / (right | wrong).sum()),
    }


def settings(config: InfoMeticConfig) -> dict[str, Any]:
    """For the run's folder and the weights' file."""
    return asdict(config)


def write_weights(fusion: InfoMeticNetwork, path: Path, about: dict[str, Any]) -> None:
    """The network in float16, in the released layout, with what has to be known about it."""
    import json

    from safetensors.torch import save_file

    from caplens.storage.atomic import atomic_path

    tensors = {name: tensor.detach().half().contiguous() for name, tensor in fusion.state_dict().items()}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={"caplens": json.dumps(about)})
