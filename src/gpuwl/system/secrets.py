"""The values that no stream and no file may show, and the last filter that sees to it.

Whoever reads a secret makes it known here. What nobody made known is told by its form.
"""

import re

HIDDEN = "[hidden]"
_SHORTEST = 6
"""Characters; a shorter value would hide half of every text, and is no secret."""
_known: set[str] = set()

_FORMS = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*-----|\Z)  # PEM
    | (?<=://)[^/@\s'"]+(?=@)                                # name and password of an address
    | (?<=[Bb]earer\ )[^\s'",]+ | (?<=[Bb]asic\ )[A-Za-z0-9+/=]{6,}
    | \beyJ[\w-]{8,}\.[\w-]+\.[\w-]*                         # a JSON web token
    | (?:[A-Za-z0-9+/]{60,}={0,2}[\s\\n]*)+                  # base64 of certificates and keys
    """,
    re.VERBOSE | re.DOTALL,
)


def know(*values: str | bytes) -> None:
    """Make values known, each line of theirs by itself."""
    for value in values:
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        parts = [text, *text.splitlines()]
        _known.update(part for part in parts if len(part) >= _SHORTEST and "-----" not in part)


def hidden(text: str) -> str:
    """Return a text without secrets."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
        escaped = repr(value)[1:-1]
        if escaped != value:
            text = text.replace(escaped, HIDDEN)
    return _FORMS.sub(HIDDEN, text)
