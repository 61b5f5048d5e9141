"""InfoMetIC (Hu et al., ACL 2023): the metric, its network, inference, region features and human percentiles."""

from caplens.metrics.infometic.metric import InfoMetic, InfoMeticPlus, InfoMeticPrecision, InfoMeticRecall

__all__ = ["InfoMetic", "InfoMeticPlus", "InfoMeticPrecision", "InfoMeticRecall"]
