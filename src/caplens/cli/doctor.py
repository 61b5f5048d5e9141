"""`caplens doctor`: is this installation whole, and what is missing for which metric."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from caplens.cli._show import JsonTarget, show_table, write_json
from caplens.core.optional import PACKAGES, install_command


def command(
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every file of the weights that are here and check its sum.")
    ] = False,
    json: JsonTarget = None,
) -> None:
    """Check this installation: versions, optional packages, native kernels, caches. Exit code 1 if it is broken.

    Example: caplens doctor --verify
    """
    findings = [*_versions(), _kernels(), *_weights(verify), *_caches()]
    write_json(json, {"ok": all(finding["state"] != "broken" for finding in findings), "findings": findings})
    rows = [[finding["state"], finding["what"], finding["detail"]] for finding in findings]
    show_table(json, ["state", "what", "detail"], rows)
    if any(finding["state"] == "broken" for finding in findings):
        raise typer.Exit(1)


def _found(state: str, what: str, detail: str) -> dict[str, Any]:
    return {"state": state, "what": what, "detail": detail}


def _versions() -> list[dict[str, Any]]:
    import platform
    import re
    from importlib.metadata import PackageNotFoundError, requires, version

    findings = [_found("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    needed = [re.split(r"[^\w.-]", line)[0] for line in requires("caplens") or () if "extra ==" not in line]
    for name in ("caplens", *needed):
        try:
            findings.append(_found("ok", name, version(name)))
        except PackageNotFoundError:
            findings.append(_found("broken", name, f"not installed: pip install {name}"))
    for package in PACKAGES.values():
        if installed := package.version():
            findings.append(_found("ok", package.name, installed))
        else:
            hint = f"only needed for {package.purpose}: {install_command([package])}"
            findings.append(_found("absent", package.name, hint))
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


def _weights(verify: bool) -> list[dict[str, Any]]:
    from caplens.storage import weights

    findings = []
    problems = weights.verify_all(thorough=verify)
    for name, model in weights.models().items():
        if problem := problems.get(name):
            findings.append(_found("broken", f"weights: {name}", problem))
            continue
        path = weights.find(name)
        detail = f"{model.what}: {weights.fetch_command(name)}" if path is None else str(path)
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
