"""`caplens explain`: which words of one caption are wrong, and what it leaves out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from caplens.cli._arguments import (
    BatchSize,
    Device,
    Dtype,
    Options,
    read_options,
)
from caplens.cli._show import JsonTarget, say, say_as_it_is, tell, write_json
from caplens.core.details import PARTLY, Details, Missing, Word
from caplens.core.errors import InputError
from caplens.core.terminal_text import printable

if TYPE_CHECKING:
    from caplens.evaluation.explain import Explanation

QUESTIONS = {
    "precision": "are its words right?",
    "recall": "does it say what is there?",
    "overall": "overall",
}
MOST_MISSING = 12
RED, YELLOW, PLAIN = "\x1b[1;4;31m", "\x1b[33m", "\x1b[0m"


def command(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[PICTURE] CAPTION", help="The caption in quotes, behind its picture if there is one."),
    ],
    reference: Annotated[
        list[str] | None,
        typer.Option("--reference", metavar="TEXT", help="A caption that somebody wrote; may be repeated."),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(
            "--references",
            "-r",
            metavar="FILE",
            help="A file of references: text with one per line, or any layout of score.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with the picture, its regions and the words.")
    ] = None,
    option: Options = None,
    device: Device = None,
    dtype: Dtype = None,
    batch_size: BatchSize = None,
    json: JsonTarget = None,
) -> None:
    """Say which words of a caption are wrong and what it leaves out, by its picture, by references, or by both.

    Example: caplens explain photo.jpg "a cat on the beach" --reference "a dog at the sea"
    """
    from caplens.evaluation.explain import explain

    if len(words) > 2:
        raise InputError(f"{len(words)} words for a picture and a caption", remedy="put the caption into quotes")
    text, image = words[-1], words[0] if len(words) == 2 else None
    if image is None and Path(text).suffix and os.path.exists(text):
        raise InputError("there is no caption", where=text, remedy=f'write: caplens explain {text} "a caption"')
    cited = [*(reference or []), *(_read(references, image) if references is not None else [])]
    explanation = explain(text, image, cited, **read_options(option, device=device, dtype=dtype, batch_size=batch_size))
    write_json(json, explanation.to_dict())
    if html is not None:
        explanation.to_html(html)
    colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in _lines(explanation, colored):
        say_as_it_is(json, line)
    if html is not None:
        say(json, f"wrote {html}")
    for note in (*explanation.notes, *(note for view in explanation.views for note in view.notes)):
        tell(f"note: {note}")


def _read(path: Path, image: str | None) -> list[str]:
    """The references of one caption: all lines of a text file, or the entry of the picture in any other layout."""
    from caplens.readers import read_references

    if path.suffix == ".txt":
        try:
            return [line.strip() for line in path.read_text("utf-8").splitlines() if line.strip()]
        except UnicodeDecodeError:
            raise InputError("is not text in UTF-8", where=str(path)) from None
    by_id = read_references(path)
    names = [] if image is None else [image, Path(image).name, Path(image).stem]
    references = next((by_id[name] for name in names if name in by_id), None)
    if references is None and len(by_id) == 1:
        references = next(iter(by_id.values()))
    if references is None:
        reason = "no picture says which to take" if image is None else f"{Path(image).stem!r} is not among them"
        raise InputError(
            f"there are references of {len(by_id)} pictures and {reason}",
            where=str(path),
            remedy="name the picture after its id, or give --reference TEXT",
        )
    return references


def _lines(explanation: Explanation, colored: bool) -> Iterator[str]:
    """What the terminal shows, printable but for our own colors."""
    for number, view in enumerate(explanation.views):
        if number:
            yield ""
        yield printable(f"{view.title}:")
        yield ""
        yield f"  {mark(explanation.caption, view.details, colored)}"
        yield ""
        yield from (printable(f"  {line}") for line in _facts(view.details))


def _facts(details: Details) -> Iterator[str]:
    if "note" in details:
        yield details["note"]
    percentiles = details.get("percentiles", {})
    for key, question in QUESTIONS.items():
        if key in percentiles:
            yield f"{question:28}better than {100 * percentiles[key]:.0f} % of captions by people"
        elif key in details:
            yield f"{question:28}{_answer(details.get(key))}"
    words = details.get("words", [])
    wrong = [word["text"] for word in words if word.get("status") == "wrong"]
    close = [_close(word) for word in words if word.get("status") in PARTLY]
    missing = [_left_out(item) for item in details.get("missing", [])]
    if len(missing) > MOST_MISSING:
        missing[MOST_MISSING:] = [f"and {len(missing) - MOST_MISSING} more"]
    for title, entries in (("not supported", wrong), ("close", close), ("left out", missing)):
        if entries:
            yield f"{title + ':':15}{', '.join(dict.fromkeys(entries))}"


def _answer(value: object) -> str:
    """
    >>> _answer(0.5), _answer(-3.25), _answer(None)
    ('50 %', '-3.25', 'cannot be said')
    """
    if not isinstance(value, int | float):
        return "cannot be said"
    return f"{100 * value:.0f} %" if 0 <= value <= 1 else f"{value:.3g}"


def _close(word: Word) -> str:
    """
    >>> _close({"text": "hat", "status": "synonym", "match": "cap"})
    'hat (synonym: cap)'
    """
    why = word.get("note") or word.get("status", "")
    return f"{word['text']} ({why}{': ' + word['match'] if 'match' in word else ''})"


def _left_out(item: Missing) -> str:
    return f"{item['text']} ({item['note']})" if item.get("note") else item["text"]


def mark(caption: str, details: Details, colored: bool) -> str:
    """The caption with wrong words red and close ones yellow; without color [wrong] and (close).

    >>> mark("A cat, asleep.", {"words": [{"text": "a"}, {"text": "cat", "status": "wrong"}]}, colored=False)
    'A [cat], asleep.'
    """
    wrong, close = ((RED, PLAIN), (YELLOW, PLAIN)) if colored else (("[", "]"), ("(", ")"))
    caption = printable(" ".join(caption.split()))
    lower, parts, start = caption.lower(), [], 0
    for word in details.get("words", []):
        place = lower.find(word["text"].lower(), start)
        # Words of another form than in the caption, as some metrics have them, stay unmarked.
        if place < 0 or len(lower) != len(caption) or any(map(str.isalnum, caption[start:place])):
            continue
        end = place + len(word["text"])
        status = word.get("status")
        before, after = wrong if status == "wrong" else close if status in PARTLY else ("", "")
        parts += [caption[start:place], before, caption[place:end], after]
        start = end
    return "".join([*parts, caption[start:]])
