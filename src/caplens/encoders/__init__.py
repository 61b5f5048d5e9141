"""encoders."""

__all__ = [
    "base",
    "bert",
    "clip",
    "clip_layouts",
    "clip_resnet",
    "clip_tokens",
    "embedded",
    "embedder",
    "load",
    "onnx",
    "roi_pooling",
    "sentence",
    "tokens",
]
