"""How InfoMetIC's network is trained (Hu et al., ACL 2023, §3.2): data, tensors, losses, and the training itself."""

from caplens.training.infometic.config import InfoMeticConfig
from caplens.training.infometic.training import fit, train

__all__ = ["InfoMeticConfig", "fit", "train"]
