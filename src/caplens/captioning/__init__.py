"""A small captioner that says what is in pictures, and any metric as a reward to train one with."""

__all__ = ["aoanet", "captioner", "decode", "files", "reward", "vocabulary"]
