"""bench."""

__all__ = [
    "agreement",
    "base",
    "custom_ratings",
    "data",
    "hub_files",
    "outside_scores",
    "page",
    "plots",
    "published",
    "results",
    "run",
    "score_store",
    "sets",
    "statistics",
]
