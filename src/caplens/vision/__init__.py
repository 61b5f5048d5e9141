"""Pictures and videos: opening them, frames, regions."""

__all__ = ["detector", "fetch", "images", "pictures", "regions", "video"]
