"""What every room builds on: captions, errors, progress, signatures, types."""

__all__ = [
    "captions",
    "details",
    "errors",
    "layers",
    "optional",
    "plain_json",
    "progress",
    "signature",
    "tables",
    "terminal_text",
    "types",
    "workspace",
]
