"""How the learned composite, `caplens-score`, is trained: its captions, its model, the training itself; no torch."""

from caplens.training.composite.config import CompositeConfig
from caplens.training.composite.data import CompositeData, load_data
from caplens.training.composite.model import fit, held_out
from caplens.training.composite.training import train

__all__ = ["CompositeConfig", "CompositeData", "fit", "held_out", "load_data", "train"]
