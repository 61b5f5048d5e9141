"""The content of captions as an identity: their texts, and the bytes of their pictures and videos."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence
from pathlib import PurePath

from caplens.core.captions import CaptionSet, Media, media_name
from caplens.core.errors import InputError
from caplens.storage.digests import content_digest
from caplens.storage.identity import Identity

COLUMNS = frozenset({"references", "image", "video"})


def content_identity(captions: CaptionSet, columns: Collection[str] = COLUMNS) -> Identity:
    """Return what the captions say and, of the columns named, what they are judged against.

    Ids are names and count for nothing. A picture counts with its file name, by which files of boxes know it, and with
    which rows share it, but not with its folder. A picture at an address may be another tomorrow: that does not last.
    """
    digest = hashlib.sha256()
    lasting = True

    def add(text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)

    def add_media(column: Sequence[Media | None]) -> bool:
        numbers: dict[object, int] = {}
        contents: dict[object, str | None] = {}
        for media in column:
            if media is None:
                add("none")
                continue
            key = media_name(media) if isinstance(media, str | os.PathLike) else id(media)
            if key not in numbers:
                numbers[key] = len(numbers)
                contents[key] = _media_digest(media)
            add(f"{numbers[key]} {PurePath(media_name(media)).name} {contents[key]}")
        return None not in contents.values()

    for text in captions.candidates:
        add(text)
    if "references" in columns:
        add(f"references {captions.references is not None}")
        for texts in captions.references or ():
            add(f"{len(texts)} references")
            for text in texts:
                add(text)
    for name, column in (("image", captions.images), ("video", captions.videos)):
        if name in columns:
            add(f"{name} {column is not None}")
            lasting = add_media(column or ()) and lasting
    return Identity(f"captions {len(captions)} {digest.hexdigest()}", lasting)


def _media_digest(media: Media) -> str | None:
    """The digest of a picture's bytes, or what is wrong with it; None for what cannot be known without fetching it."""
    if "://" in media_name(media):
        return None
    try:
        if isinstance(media, str | os.PathLike):
            return content_digest(media)
        with media.open() as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except (OSError, ValueError, InputError) as error:  # ValueError: a null byte in the path
        return f"unreadable {type(error).__name__}"
