"""bench."""

__all__ = [
    "agreement",
    "base",
    "custom_ratings",
    "data",
    "page",
    "plots",
    "published",
    "run",
    "score_store",
    "sets",
    "statistics",
]
