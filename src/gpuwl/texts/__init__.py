"""What gpuwl says to people, by key and language.

A catalogue is a folder of TOML files, one per topic: `en/verify.toml` holds the text of the key
`verify.node_missing` as `node_missing`. English and Korean have the same keys. Names, commands, field
names and the words of others are values, `{name}` in a text, and are never translated.
"""

import functools
import os
import tomllib
from importlib import resources

LANGUAGES = ("en", "ko")
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""In the order in which POSIX looks at them; the first that is set decides."""


class _Chosen:
    language = "en"


def use(language: str) -> None:
    """Speak this language, one of LANGUAGES, from now on."""
    if language not in LANGUAGES:
        raise ValueError(f"no catalogue for {language!r}")
    _Chosen.language = language


def language() -> str:
    """Return the language that is spoken."""
    return _Chosen.language


def of_environment() -> str:
    """Return the language of the environment's locale, English where there is no catalogue for it."""
    named = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")
    return "ko" if named.lower().split(".")[0].split("_")[0] == "ko" else "en"


def text(key: str, /, **values: object) -> str:
    """Return the text of a key such as `verify.node_missing`, with its values put in.

    Raises KeyError for a key that the English catalogue does not have.
    """
    topic, _, name = key.partition(".")
    found = catalogue(_Chosen.language, topic).get(name)
    template = catalogue("en", topic)[name] if found is None else found
    return template.format_map(values) if values else template


@functools.cache
def catalogue(language: str, topic: str) -> dict[str, str]:
    """Return the texts of one topic by name."""
    file = resources.files(__name__).joinpath(language, f"{topic}.toml")
    texts: dict[str, str] = tomllib.loads(file.read_text(encoding="utf-8"))
    return texts
