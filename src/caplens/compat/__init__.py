"""The interfaces of other tools over caplens: change one import and keep the script."""

__all__ = ["evaluate", "inspect_ai", "lmms_eval", "loggers", "pycocoevalcap", "torchmetrics"]
