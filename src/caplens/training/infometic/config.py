"""Settings of InfoMetIC's training."""

from __future__ import annotations

from dataclasses import dataclass


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
    corrupted: int = 2
    """Captions of a training picture in which a word is replaced."""
    steps: int = 2400
    warm_up: int = 40
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    validate_every: int = 100
    patience: int = 6
    """Validations without a better loss before it stops."""
