"""encoders."""

__all__ = [
    "base",
    "bert",
    "clip",
    "clip_layouts",
    "clip_resnet",
    "clip_tokens",
    "clip_vision",
    "embedded",
    "embedder",
    "load",
    "onnx",
    "onnx_graph",
    "roi_pooling",
    "sentence",
    "tokens",
]
