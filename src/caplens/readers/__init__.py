"""Files to CaptionSet: one reader per layout, chosen by the file's name and content."""

from __future__ import annotations

from caplens.readers.html import PageImage, page_images
from caplens.readers.join import read, read_references
from caplens.readers.limits import ReadLimits

__all__ = ["PageImage", "ReadLimits", "page_images", "read", "read_references"]
