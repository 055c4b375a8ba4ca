"""The catalogues: the same keys and values in every language, and Korean that is Korean."""

import string
from importlib import resources

import pytest

from gpuwl import texts

TOPICS = sorted(
    file.name.removesuffix(".toml")
    for file in resources.files("gpuwl.texts").joinpath("en").iterdir()
    if file.name.endswith(".toml")
)


@pytest.fixture(autouse=True)
def english_again() -> object:
    yield
    texts.use("en")


def names(template: str) -> set[str]:
    if template.lstrip().startswith(("gpuwl ", "eval ", "KUBECONFIG=", "kubectl ")):
        return set()  # examples and commands are shown as they are
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def values(template: str) -> set[str]:
    try:
        return names(template)
    except ValueError:  # a text that is shown as it is may hold a brace
        return set()


@pytest.mark.parametrize("topic", TOPICS)
def test_both_languages_have_the_same_keys_and_values(topic: str) -> None:
    english, korean = (texts.catalogue(language, topic) for language in texts.LANGUAGES)
    assert list(english) == list(korean)
    differing = [key for key in english if values(english[key]) != values(korean[key])]
    assert differing == []


@pytest.mark.parametrize("topic", TOPICS)
def test_korean_is_not_english(topic: str) -> None:
    korean = texts.catalogue("ko", topic)
    english = texts.catalogue("en", topic)
    same = [
        key
        for key in korean
        if korean[key] == english[key] and not key.endswith("_examples") and " " in korean[key]
    ]
    assert same == []


def test_a_locale_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    assert texts.of_environment() == "en"
    for value, language in {"ko_KR.UTF-8": "ko", "ko": "ko", "kok_IN": "en", "C": "en"}.items():
        monkeypatch.setenv("LANG", value)
        assert texts.of_environment() == language
    monkeypatch.setenv("LANG", "ko_KR.UTF-8")
    monkeypatch.setenv("LC_ALL", "C")
    assert texts.of_environment() == "en"


def test_values_are_put_in_and_a_language_without_a_catalogue_is_refused() -> None:
    assert texts.text("lab.needs_step", what="x", step=3) == "x (step 3)"
    texts.use("ko")
    assert texts.text("lab.needs_step", what="x", step=3) == "x (3단계)"
    with pytest.raises(ValueError, match="no catalogue"):
        texts.use("fr")
    with pytest.raises(KeyError):
        texts.text("lab.nothing")
