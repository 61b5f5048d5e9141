"""`caplens caption`: say what is in pictures, in a file that `caplens score` reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.cli._arguments import BatchSize, Device
from caplens.cli._show import JsonTarget, progress_bar, say, show_table, tell, write_json


def command(
    images: Annotated[list[Path], typer.Argument(metavar="PICTURES...", help="Pictures, or folders of pictures.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE.jsonl", help="Write captions for `caplens score`.")
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(
            "--references", "-r", metavar="FILE", help="References to put beside the captions, in any layout."
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A captioner of `caplens train captioner`.", show_default="the one that comes along"
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which of those that come along: embedded-strong sees more, embedded is quicker.",
            show_default="embedded-strong if its weights are here",
        ),
    ] = None,
    beam: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Captions kept while searching; 1 is greedy.")] = 3,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first picture that cannot be read.")] = False,
    device: Device = None,
    batch_size: BatchSize = None,
    json: JsonTarget = None,
) -> None:
    """Caption pictures with a small captioner that knows the kind of pictures in Flickr8k.

    Example: caplens caption photos --output captions.jsonl
    """
    from caplens.captioning.captioner import Captioner
    from caplens.captioning.files import caption_files, picture_files, picture_ids, shipped_captioner
    from caplens.core.errors import InputError
    from caplens.core.plain_json import json_text
    from caplens.encoders.load import load_encoder
    from caplens.readers import read_references
    from caplens.storage.atomic import refuse_overwriting, write_atomically

    pictures = picture_files(images)
    refuse_overwriting([output, json], pictures)  # the verb was given their folder
    known = {} if references is None else read_references(references)
    if weights is not None and encoder is not None:
        raise InputError("--weights names a captioner, and --encoder another", remedy="give one of the two")
    captioner = shipped_captioner(encoder) if weights is None else Captioner.load(weights)
    with progress_bar() as progress:
        sees = load_encoder(captioner.spec.encoder, device=device or "auto", batch_size=batch_size)
        captioned = caption_files(captioner, pictures, beam=beam, strict=strict, progress=progress, encoder=sees)
    for picture, reason in captioned.failures.items():
        tell(f"{picture} was not captioned: {reason}")
    if not captioned.pictures:
        raise InputError("none of the pictures can be read")
    ids = picture_ids(captioned.pictures, known)
    if references is not None and not set(ids) & set(known):
        raise InputError(f"none of the pictures is in it (first id: {ids[0]!r})", where=str(references))

    def rows(target: Path | None) -> list[dict[str, Any]]:
        """Paths are relative to the file they stand in, as `caplens score` reads them."""
        base = None if target is None else target.absolute().parent
        return [
            {
                "id": name,
                "caption": caption,
                **({"references": known[name]} if name in known else {}),
                "image": os.path.abspath(path) if base is None else os.path.relpath(path, base),
            }
            for name, caption, path in zip(ids, captioned.captions, captioned.pictures, strict=True)
            if references is None or name in known
        ]

    if output is not None:
        write_atomically(output, "".join(json_text(row) + "\n" for row in rows(output)))
    write_json(json, rows(None if json in (None, "-") else Path(str(json))))
    show_table(json, ["picture", "caption"], [[row["id"], row["caption"]] for row in rows(None)])
    if output is not None:
        say(json, f"wrote {output}; judge it with: caplens score {output}")
