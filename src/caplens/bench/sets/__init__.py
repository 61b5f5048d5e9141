"""One file per rating set."""

__all__ = [
    "abstract_50s",
    "activitynet_foil",
    "captokeneval",
    "coco_systems",
    "composite",
    "distraction",
    "flickr8k_cf",
    "flickr8k_expert",
    "foil",
    "pascal_50s",
    "pracegover",
    "reference_curve",
    "retrieval",
    "thumb",
    "vatex_eval",
]
