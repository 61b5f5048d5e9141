"""Text as a terminal may show it: nothing in a caption, an id or a file name steers it."""

from __future__ import annotations

import json
import re

# Control characters (the first of every escape sequence is one), line separators, characters that turn the direction
# of the text around them, and halves of characters, which no terminal's encoding has.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_NOT_ASCII = re.compile("[^\x00-\x7f]")


def printable(text: str) -> str:
    r"""Return the text with everything that would steer a terminal written out, line breaks too.

    >>> print(printable("a\x1b]0;title\x07cat\n\u202e"))
    a\x1b]0;title\x07cat\n\u202e
    >>> printable("ein Mädchen, 猫, 😀")
    'ein Mädchen, 猫, 😀'
    """
    return _UNSAFE.sub(_written_out, text)


def printable_json(text: str) -> str:
    r"""Return json with what would steer a terminal as json's own escapes: the same values, safe to look at.

    >>> printable_json('{"id": "\x9b2J"}')
    '{"id": "\\u009b2J"}'
    """
    return _UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)


def ascii_json(text: str) -> str:
    r"""Return json in ascii: the same values, whatever a stream is encoded in.

    >>> ascii_json('{"id": "–🐱"}')
    '{"id": "\\u2013\\ud83d\\udc31"}'
    """
    return _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
