"""What a set of scores means: evaluate, compare, explain."""

__all__ = [
    "check",
    "compare",
    "details",
    "evaluate",
    "explain",
    "pages",
    "reference_support",
    "resampling",
    "results",
    "tabular",
]
