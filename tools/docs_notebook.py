"""Execute docs/guide/notebook.ipynb and write it as a page: notebook.md beside it, with its plots as png files.

Run from the repository: ``python -m tools.docs_notebook``. The notebook's cells are the source; outputs are made here.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "guide" / "notebook.ipynb"


def execute(path: Path = NOTEBOOK) -> Any:
    """Return the notebook with the outputs that its cells have today."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata = {}  # times of execution, which differ from run to run
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":  # warnings name paths of the machine
                raise SystemExit(f"a cell warns:\n{cell.source}\n\n{output.text}")
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def as_page(notebook: Any) -> tuple[str, dict[str, bytes]]:
    """Return the page as Markdown, and its pictures by file name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                name = f"notebook-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                title = re.sub(r"\W+", " ", cell.source.splitlines()[-1]).strip()
                parts.append(f"![{title}]({name})")
            elif "text/html" in data:
                parts.append(re.sub(r"<style.*?</style>\s*", "", data["text/html"].strip(), flags=re.DOTALL))
            elif text := data["text/plain"].strip():
                parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n", pictures


def main() -> None:
    import nbformat

    notebook = execute()
    nbformat.write(notebook, NOTEBOOK)
    page, pictures = as_page(notebook)
    NOTEBOOK.with_suffix(".md").write_text(page, "utf-8", newline="\n")
    for name, data in pictures.items():
        NOTEBOOK.with_name(name).write_bytes(data)
    print(f"{len(notebook.cells)} cells, {len(pictures)} pictures: {NOTEBOOK.with_suffix('.md')}")


if __name__ == "__main__":
    main()
