"""`caplens idf`: document frequencies for the CIDEr family, counted once and kept in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from caplens.cli._show import JsonTarget, say, write_json

app = typer.Typer(help="Count document frequencies for the CIDEr family.", no_args_is_help=True)


@app.callback()
def _verbs() -> None:
    """Count document frequencies for the CIDEr family."""


@app.command("build")
def build(
    captions: Annotated[
        Path,
        typer.Argument(metavar="CAPTIONS", help="References: COCO annotations, jsonl, csv, parquet or json by id."),
    ],
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The table to write (.safetensors).")],
    tokenizer: Annotated[str, typer.Option(metavar="NAME", help="ptb, as coco-caption does, or whitespace.")] = "ptb",
    json: JsonTarget = None,
) -> None:
    """Count in how many images' references every n-gram occurs; use it with `idf=TABLE`.

    Example: caplens idf build captions_train2014.json --output coco.safetensors
    """
    from caplens.core.errors import InputError
    from caplens.readers import read_references
    from caplens.text.idf import build_idf

    if output.suffix != ".safetensors":
        raise InputError("an idf table is a .safetensors file", where=str(output), remedy="name it so")
    table = build_idf(read_references(captions).values(), tokenizer)
    table.save(output)
    write_json(json, {"table": str(output), "images": table.images, "ngrams": len(table), "checksum": table.checksum})
    say(json, f"{output}: {len(table):,} n-grams of {table.images:,} images, checksum {table.checksum}")
