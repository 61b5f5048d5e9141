"""text."""

__all__ = [
    "alt_text",
    "coco_idf",
    "concepts",
    "idf",
    "language",
    "meteor_data",
    "ngrams",
    "object_labels",
    "parse",
    "proposition_store",
    "ptb",
    "scenegraph",
    "spice_jar",
    "stopwords",
    "vectors",
    "wordnet",
    "words",
]
