"""Which column is which: by any sensible name, in any spelling, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from caplens.core.errors import InputError

# Of several that are there, the first is taken: they tell the same picture in different words.
ID_NAMES = ("id", "image_id", "video_id", "key", "img_id", "cocoid", "uid", "sample_id")
GROUP_NAMES = ("image_id", "video_id", "img_id", "cocoid")
IMAGE_NAMES = (
    *("image", "image_path", "file_name", "filename", "img", "img_path", "image_file", "image_name", "filepath"),
    *("file_path", "picture", "photo", "path", "file", "src", "url", "image_url", "img_url", "coco_url"),
)
VIDEO_NAMES = ("video", "video_path", "video_file", "video_name", "video_url")
# Of these there may be one: two captions differ, and only the user knows which is to be judged.
CAPTION_NAMES = (
    *("caption", "captions", "candidate", "cand", "prediction", "pred", "predicted_caption", "generated_caption"),
    *("generated_text", "hypothesis", "hyp", "alt", "alt_text", "alttext", "alternative_text", "description", "text"),
    *("output", "response", "answer"),
)
REFERENCES_NAMES = (
    *("references", "refs", "reference", "ref", "reference_captions", "ground_truth", "ground_truths", "gt", "gts"),
    *("sentences",),
)
_NUMBERED_REFERENCE = re.compile(r"(reference|ref)_?[0-9]+|reference_[a-z]", re.ASCII)


@dataclass(frozen=True)
class ColumnChoice:
    """The columns that the user has named; the others are found by their names."""

    caption: str | None = None
    image: str | None = None
    id: str | None = None
    required: bool = True
    """Whether the columns must be there; in a second file they may be called otherwise."""


@dataclass(frozen=True)
class Columns:
    """The name that each column has in a file; None where there is no such column."""

    id: str | None = None
    group: str | None = None
    """The picture's id where a caption has an id of its own beside it."""
    caption: str | None = None
    references: str | None = None
    numbered_references: tuple[str, ...] = ()
    image: str | None = None
    video: str | None = None

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        single = (self.id, self.group, self.caption, self.references, self.image, self.video)
        return list(dict.fromkeys([name for name in single if name is not None] + list(self.numbered_references)))


def plain_name(name: str) -> str:
    """A column's name without its spelling.

    >>> plain_name(" Alt Text"), plain_name("image-id")
    ('alt_text', 'image_id')
    """
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def find_columns(names: Sequence[str], choice: ColumnChoice, where: str) -> Columns:
    """The columns of a table or record whose columns have these names; `where` is for messages.

    >>> columns = find_columns(["Filename", "Alt Text"], ColumnChoice(), "alt.csv")
    >>> columns.image, columns.caption
    ('Filename', 'Alt Text')
    """
    key = tuple(names)
    try:
        # Records of a file mostly look alike. Very wide ones are not worth the memory.
        return _find_columns(key, choice) if len(key) <= _MOST_REMEMBERED else _find_columns.__wrapped__(key, choice)
    except InputError as error:
        raise InputError(error.problem, where=where, remedy=error.remedy) from None


_MOST_REMEMBERED = 64


@lru_cache(maxsize=64)
def _find_columns(names: tuple[str, ...], choice: ColumnChoice) -> Columns:
    by_plain_name: dict[str, list[str]] = {}
    for name in names:
        by_plain_name.setdefault(plain_name(name), []).append(name)

    def all_of(known: Sequence[str]) -> list[str]:
        return [name for plain in known for name in by_plain_name.get(plain, ())]

    def first_of(known: Sequence[str]) -> str | None:
        return next(iter(all_of(known)), None)

    def chosen(name: str | None, option: str) -> str | None:
        if name is None:
            return None
        matches = [name] if name in names else by_plain_name.get(plain_name(name), [])
        if len(matches) == 1:
            return matches[0]
        if choice.required:
            raise InputError(f"no column {name!r}, only {listed(names)}", remedy=f"check --{option}-column")
        return None

    caption = chosen(choice.caption, "caption")
    if caption is None:
        captions = all_of(CAPTION_NAMES)
        if len(captions) > 1:
            raise InputError(
                f"{listed(captions, ' and ')} both look like the caption",
                remedy=f"choose one: --caption-column {captions[0]} (caption_column={captions[0]!r})",
            )
        caption = next(iter(captions), None)
    numbered = tuple(name for name in names if name != caption and _NUMBERED_REFERENCE.fullmatch(plain_name(name)))
    references = [name for name in all_of(REFERENCES_NAMES) if name != caption]
    if len(references) + bool(numbered) > 1:
        raise InputError(
            f"{listed([*references, *numbered], ' and ')} both look like the references",
            remedy="keep one of them, or give the references in a file of their own",
        )
    own_id = chosen(choice.id, "id") or first_of(ID_NAMES)
    group = first_of(GROUP_NAMES)
    return Columns(
        id=own_id,
        group=None if group == own_id else group,
        caption=caption,
        references=next(iter(references), None),
        numbered_references=numbered,
        image=chosen(choice.image, "image") or first_of(IMAGE_NAMES),
        video=first_of(VIDEO_NAMES),
    )


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """A few names for a message.

    >>> listed(["a", "b"], " and ")
    "'a' and 'b'"
    """
    shown = separator.join(repr(name[:60]) for name in names[:8])
    return (shown or "none") + (f" and {len(names) - 8} more" if len(names) > 8 else "")
