"""`caplens idf`: document frequencies for the CIDEr family, counted once and kept in a file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caplens.cli._arguments import AllowUrls
from caplens.cli._shards import Engine, Workers
from caplens.cli._show import JsonTarget, progress_bar, say, write_json

if TYPE_CHECKING:
    from caplens.text.idf import IdfTable

app = typer.Typer(help="Count document frequencies for the CIDEr family.", no_args_is_help=True)


@app.callback()
def _verbs() -> None:
    """Count document frequencies for the CIDEr family."""


@app.command("build")
def build(
    captions: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTIONS",
            help="References: COCO annotations, jsonl, csv, parquet, json by id; or shards (globs, {00..99}).",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", metavar="FILE", help="The table to write (.safetensors).")],
    tokenizer: Annotated[str, typer.Option(metavar="NAME", help="ptb, as coco-caption does, or whitespace.")] = "ptb",
    engine: Engine = "local",
    workers: Workers = None,
    allow_urls: AllowUrls = False,
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
    if len(captions) == 1 and Path(captions[0]).is_file():
        table = build_idf(read_references(captions[0]).values(), tokenizer)
    else:
        table = _count_shards(captions, tokenizer, output, engine, workers, allow_urls)
    table.save(output)
    write_json(json, {"table": str(output), "images": table.images, "ngrams": len(table), "checksum": table.checksum})
    say(json, f"{output}: {len(table):,} n-grams of {table.images:,} images, checksum {table.checksum}")


def _count_shards(
    captions: list[str], tokenizer: str, output: Path, engine: str, workers: int | None, allow_urls: bool
) -> IdfTable:
    """The table of all shards, counted one by one and added up; what was counted before a kill is beside the output."""
    from caplens.scale.engines import make_engine
    from caplens.scale.evaluate import build_shared_idf
    from caplens.scale.plan import Reading
    from caplens.scale.shards import find_shards
    from caplens.text.idf import IdfTable

    shards = find_shards(captions, allow_urls=allow_urls)
    folder = output.with_name(f"{output.stem}.parts")
    with progress_bar() as progress, make_engine(engine, workers).start(len(shards)) as pool:
        made = build_shared_idf(shards, pool, Reading(), tokenizer, folder, progress)
    table = IdfTable.load(made)
    shutil.rmtree(folder)
    return table
