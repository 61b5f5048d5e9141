"""How the learned metrics get their weights; every training is a `TrainingRun`: resumable, with a curve."""
