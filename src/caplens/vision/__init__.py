"""Pictures and videos: opening them, frames, regions."""
