"""How the learned metrics get their weights: one loop (`trainer`), and one file or folder per model."""

__all__ = ["captioner", "composite", "encoder", "infometic", "nneval", "pac"]
