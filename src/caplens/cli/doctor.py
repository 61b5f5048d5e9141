"""`caplens doctor`: is this installation whole, and what is missing for which metric."""

from __future__ import annotations

from typing import Any

import typer

from caplens.cli._show import JsonTarget, show_table, write_json

# Optional package to the extra that brings it and what it is for.
OPTIONAL = {
    "torch": ("clip", "encoders, learned metrics"),
    "transformers": ("clip", "CLIP and BERT encoders"),
    "onnxruntime": ("onnx", "exported encoders"),
    "av": ("video", "reading videos"),
    "msgpack": ("parse", "SPICE"),
    "pandas": ("table", "to_pandas, parquet"),
    "pyarrow": ("table", "parquet"),
}
CORE = ("numpy", "scipy", "Pillow", "typer", "rich", "jinja2", "safetensors")


def command(json: JsonTarget = None) -> None:
    """Check this installation: versions, optional packages, native kernels, caches. Exit code 1 if it is broken."""
    findings = [*_versions(), _kernels(), *_weights(), *_caches()]
    write_json(json, {"ok": all(found["state"] != "broken" for found in findings), "findings": findings})
    rows = [[found["state"], found["what"], found["detail"]] for found in findings]
    show_table(json, ["state", "what", "detail"], rows)
    if any(found["state"] == "broken" for found in findings):
        raise typer.Exit(1)


def _found(state: str, what: str, detail: str) -> dict[str, Any]:
    return {"state": state, "what": what, "detail": detail}


def _versions() -> list[dict[str, Any]]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    findings = [_found("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    for name in ("caplens", *CORE):
        try:
            findings.append(_found("ok", name, version(name)))
        except PackageNotFoundError:
            findings.append(_found("broken", name, f"not installed: pip install {name}"))
    for name, (extra, use) in OPTIONAL.items():
        try:
            findings.append(_found("ok", name, version(name)))
        except PackageNotFoundError:
            findings.append(_found("absent", name, f"only needed for {use}: pip install 'caplens[{extra}]'"))
    findings.append(_found("ok", "java", "not needed"))
    return findings


def _kernels() -> dict[str, Any]:
    """The compiled part loads and gives the right answer to a small question."""
    try:
        from caplens.evaluation.evaluate import evaluate

        score = evaluate(["A dog swims."], [["a dog swims"]], metrics=["rouge-l"])["rouge-l"].score
    except ImportError as error:
        return _found("broken", "native kernels", f"{error}; reinstall caplens")
    if score != 1.0:
        return _found("broken", "native kernels", f"rouge-l of equal captions is {score}; reinstall caplens")
    return _found("ok", "native kernels", "self-check passed")


def _weights() -> list[dict[str, Any]]:
    from caplens.storage import weights

    findings = []
    for name, model in weights.models().items():
        path = weights.find(name)
        detail = f"{model.what}: caplens weights fetch {name}" if path is None else str(path)
        findings.append(_found("absent" if path is None else "ok", f"weights: {name}", detail))
    return findings


def _caches() -> list[dict[str, Any]]:
    from caplens.storage.paths import cache_folder

    folder = cache_folder()
    if not folder.is_dir():
        return [_found("ok", "cache", f"{folder} (empty)")]
    sizes: dict[str, int] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            top = path.relative_to(folder).parts[0]
            sizes[top] = sizes.get(top, 0) + path.stat().st_size
    return [
        _found("ok", f"cache: {name}", f"{size / 1e6:.1f} MB in {folder / name}")
        for name, size in sorted(sizes.items())
    ]
