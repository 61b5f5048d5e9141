"""How much of a file is read before caplens stops: generous for real captions, finite for a bomb."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields

from caplens.core.errors import InputError

VARIABLE = "CAPLENS_READ_LIMITS"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_FREE_BYTES = 64_000_000
"""So much may come out of any packed file, however small it is: blank captions pack very well."""


@dataclass(frozen=True)
class ReadLimits:
    """Limits on one file. Pass it to `caplens.read`, or set CAPLENS_READ_LIMITS="rows=50M,total_bytes=20G".

    >>> ReadLimits.parse("rows=50M, depth=200")
    ReadLimits(total_bytes=4000000000, rows=50000000, field_bytes=64000000, depth=200, expansion=100)
    """

    total_bytes: int = 4_000_000_000
    """Bytes of the file, unpacked."""
    rows: int = 10_000_000
    """Rows, lines or members of an archive."""
    field_bytes: int = 64_000_000
    """Bytes of one value, and of one line or record."""
    depth: int = 100
    """Lists and objects inside each other in json."""
    expansion: int = 100
    """How many times its packed size a file may unpack to (beyond 64 MB)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"the limit {field.name} must be a whole number above 0, not {value!r:.40}")

    @classmethod
    def parse(cls, text: str) -> ReadLimits:
        """Limits from words such as ``rows=50M,total_bytes=20G``; the others keep their defaults."""
        names = [field.name for field in fields(cls)]
        values: dict[str, int] = {}
        for word in filter(str.strip, text.split(",")):
            name, _, amount = (part.strip() for part in word.partition("="))
            number = re.fullmatch(r"([0-9]{1,15})([KMGT]?)", amount, re.IGNORECASE | re.ASCII)
            if name not in names or number is None:
                raise InputError(
                    f"{word.strip()!r:.60} is not a limit",
                    where=VARIABLE,
                    remedy=f"write NAME=NUMBER, such as rows=50M; the names are {', '.join(names)}",
                )
            values[name] = int(number[1]) * _UNITS[number[2].upper()]
        return cls(**values)

    @classmethod
    def from_environment(cls) -> ReadLimits:
        """The limits that CAPLENS_READ_LIMITS sets, the defaults without it."""
        return cls.parse(os.environ.get(VARIABLE, ""))

    def exceeded(self, name: str, problem: str, where: str) -> InputError:
        """The refusal of something beyond the limit `name`, with the way to raise it."""
        limit = getattr(self, name)
        return InputError(
            f"{problem} (the limit {name} is {limit:,})",
            where=where,
            remedy=f"if this is as it should be, raise it: {VARIABLE}={name}={limit * 10} "
            f"or read(..., limits=ReadLimits({name}={limit * 10}))",
        )


@dataclass
class Budget:
    """Counts what one file has given so far, and refuses what goes beyond the limits."""

    limits: ReadLimits
    where: str
    packed_bytes: int | None = None
    """How large the packed file is, where it is packed."""
    bytes: int = 0
    rows: int = 0

    def spend_bytes(self, count: int) -> None:
        """Count unpacked bytes."""
        self.bytes += count
        if self.bytes > self.limits.total_bytes:
            raise self.limits.exceeded("total_bytes", "holds too much", self.where)
        if (
            self.packed_bytes is not None
            and self.bytes > _FREE_BYTES
            and self.bytes > self.limits.expansion * self.packed_bytes
        ):
            raise self.limits.exceeded("expansion", "unpacks to far more than its size", self.where)

    def spend_row(self) -> None:
        """Count one row, line or member."""
        self.rows += 1
        if self.rows > self.limits.rows:
            raise self.limits.exceeded("rows", "has too many rows", self.where)

    def check_field(self, length: int, what: str, where: str) -> None:
        """Refuse one value (or line) that is too long."""
        if length > self.limits.field_bytes:
            raise self.limits.exceeded("field_bytes", f"{what} is too long", where)
