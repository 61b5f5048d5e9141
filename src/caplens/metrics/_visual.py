"""What metrics that look at pictures or videos share: their encoder, its options, and vectors made once per run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from caplens.core.captions import CaptionSet
from caplens.core.errors import MissingData
from caplens.core.workspace import Workspace
from caplens.metrics import _options as options
from caplens.metrics._sentences import parts_note
from caplens.metrics.base import Metric, Resources
from caplens.text.sentences import TextParts

if TYPE_CHECKING:
    from caplens.core.types import Vectors
    from caplens.encoders.base import Encoder, TokenVectors
    from caplens.encoders.embedder import Embedder, FrameEmbeddings, ImageEmbeddings


class VisualMetric(Metric):
    """A metric over an image-text encoder.

    Args:
        encoder: ``embedded``, a CLIP backbone such as ``ViT-B-32``, an `Encoder`, or ``auto``: CLIP ViT-B/32 where its
            weights are on this machine, else caplens's own embedded encoder, with a note that says so.
        weights: other weights for that encoder: a path or a name.
        allow_pickle: read pickled weight files, with weights_only.
        allow_urls: fetch pictures that are given as URLs.
        device: where the encoder computes: cpu, cuda, cuda:1, mps; auto is a GPU where there is one.
        dtype: float32, bfloat16 or float16.
        batch_size: pictures at a time.
    """

    english_only = True  # unless its encoder says otherwise
    heads: ClassVar[str] = "contrastive"
    """Which of the embedded encoder's projections this metric uses."""

    def __init__(
        self,
        encoder: str | Encoder = "auto",
        weights: str | os.PathLike[str] | None = None,
        allow_pickle: bool = False,
        allow_urls: bool = False,
        device: str = "auto",
        dtype: str = "float32",
        batch_size: int | None = None,
    ) -> None:
        self.encoder = options.encoder(encoder)
        self.weights = None if weights is None else options.path("weights", weights, "path or a name of weights")
        self.allow_pickle = options.flag("allow_pickle", allow_pickle)
        self.allow_urls = options.flag("allow_urls", allow_urls)
        self.device, self.dtype, self.batch_size = options.placement(device, dtype, batch_size)

    def get_encoder(self) -> Encoder:
        """The encoder itself; loaded once per process."""
        from caplens.encoders.load import load_encoder

        return load_encoder(
            self.encoder,
            self.weights,
            heads=self.heads,
            allow_pickle=self.allow_pickle,
            device=self.device,
            dtype=self.dtype,
            batch_size=self.batch_size,
        )

    def embedder(self, work: Workspace) -> Embedder:
        """The encoder with its cache and the wishes of this run."""
        from caplens.encoders.embedder import Embedder
        from caplens.vision.pictures import pictures_of

        return Embedder(
            self.get_encoder(),
            strict=work.strict,
            allow_urls=self.allow_urls,
            progress=lambda *state: work.progress(*state),
            pictures=pictures_of(work),
        )

    def seen(self, work: Workspace) -> ImageEmbeddings:
        """A vector per picture."""
        images = work.captions.images
        if images is None:
            raise MissingData(f"{self.name} looks at pictures and none were given: pass images= or --images DIR")
        key = ("image vectors", self.get_encoder().fingerprint, self.allow_urls)
        return work.get_or_compute(key, lambda: self.embedder(work).images(images))

    def watched(self, work: Workspace, frames: str) -> FrameEmbeddings:
        """Frame vectors per video."""
        from caplens.vision.video import Sampling

        videos = work.captions.videos
        if videos is None:
            raise MissingData(f"{self.name} looks at videos and none were given: pass videos= or --videos DIR")
        sampling = Sampling.parse(frames)
        key = ("frame vectors", self.get_encoder().fingerprint, str(sampling), self.allow_urls)
        return work.get_or_compute(key, lambda: self.embedder(work).videos(videos, sampling))

    def text_vectors(self, work: Workspace, texts: Sequence[str], prompt: str = "") -> Vectors:
        """A vector per text behind the prompt; one that is too long for the encoder has the mean of its parts'."""
        key = ("text vectors", self.get_encoder().fingerprint, prompt, tuple(texts))
        parts = self.text_parts(work, texts, prompt)
        return work.get_or_compute(
            key, lambda: parts.mean_vectors(self.embedder(work).texts([prompt + part for part in parts.texts]))
        )

    def distinct_texts(
        self, work: Workspace, texts: Sequence[str], prompt: str = ""
    ) -> tuple[Vectors, NDArray[np.int64]]:
        """A vector per distinct text, and the number of every text among them: rating sets repeat theirs."""
        row_of: dict[str, int] = {}
        which = np.array([row_of.setdefault(text, len(row_of)) for text in texts], np.int64)
        return self.text_vectors(work, list(row_of), prompt), which

    def token_vectors(self, work: Workspace, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors per text; a text that is too long for the encoder has the tokens of all its parts."""
        key = ("token vectors", self.get_encoder().fingerprint, tuple(texts))
        return work.get_or_compute(key, lambda: self._token_vectors(work, texts))

    def _token_vectors(self, work: Workspace, texts: Sequence[str]) -> list[TokenVectors]:
        from caplens.encoders.base import TokenVectors

        parts = self.text_parts(work, texts)
        read = self.embedder(work).tokens(parts.texts)
        return [TokenVectors.joined(read[start:end]) for start, end in zip(parts.starts, parts.ends, strict=True)]

    def text_parts(self, work: Workspace, texts: Sequence[str], prompt: str = "") -> TextParts:
        """Texts in parts that the encoder reads whole behind a prompt: most are one part, long ones their sentences."""
        encoder = self.get_encoder()
        key = ("text parts", encoder.fingerprint, prompt, tuple(texts))
        return work.get_or_compute(key, lambda: TextParts.of(texts, lambda part: encoder.fits(prompt + part)))

    def fell_back(self) -> bool:
        """Whether CLIP was looked for and not found."""
        return self.encoder == "auto" and self.get_encoder().name.startswith("embedded")

    @property
    def label(self) -> str:
        """The paper's metric runs over CLIP; over another encoder, its numbers are others."""
        from caplens.encoders.embedded import edition_of

        edition = edition_of(self.get_encoder().name)
        return f"{self.name} over {edition}" if edition else self.name

    def language_note(self, captions: CaptionSet) -> str | None:
        return super().language_note(captions) if self.get_encoder().english_only else None

    def notes(self, captions: TextParts | None = None) -> tuple[str, ...]:
        """What the reader should know about the encoder, and about captions that it read in parts."""
        notes = []
        if self.fell_back():
            notes.append(
                "no CLIP weights are on this machine, so caplens's own encoder was used: the numbers do not compare "
                "with published ones (--encoder embedded, encoder='embedded': this is meant)"
            )
        if captions is not None and captions.cut:
            notes.append(parts_note(captions, self.get_encoder().context_length))
        return tuple(notes)

    def resources(self) -> Resources:
        return {"encoder": self.get_encoder().fingerprint}

    def signature_parts(self) -> tuple[tuple[str, str], ...]:
        encoder = self.get_encoder()
        return (("encoder", encoder.identity), *encoder.place.parts)
