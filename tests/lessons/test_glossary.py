"""lessons/glossary.md: the words are there, each with its synonyms, and the code has the names that it refers to."""

import functools
import importlib
import re

import pytest

from minigrad.commands import lessons as course

PAGE = course.FOLDER / "glossary.md"
WORDS = (
    "node leaf tape sweep cotangent vjp retain boundary body replay segment schedule slot rematerialisation "
    "forecast policy budget eviction offload peak release"
)
PLACES = ("PyTorch", "JAX", "Elsewhere", "In the code")


def entries() -> dict:
    """word -> (what it is, place -> what it is called there)."""
    found = {}
    for entry in PAGE.read_text("utf-8").split("\n## ")[1:]:
        word, _, rest = entry.partition("\n")
        meaning, *lines = re.split(r"\n- ", rest)
        found[word] = meaning.strip(), dict([line.strip().split(": ", 1) for line in lines])
    return found


def test_all_the_words_are_there_in_the_order_of_a_dictionary():
    assert set(WORDS.split()) <= set(entries())
    assert list(entries()) == sorted(entries())


@pytest.mark.parametrize("word", entries())
def test_each_word_is_explained_in_a_few_sentences_and_has_its_names_elsewhere(word):
    meaning, places = entries()[word]
    assert 1 <= len(re.findall(r"[.](?=\s|$)", meaning)) <= 3 and len(meaning.split()) < 70
    assert tuple(places) == PLACES and all(places.values())


@pytest.mark.parametrize("word", entries())
def test_the_code_has_the_names_that_the_word_refers_to(word):
    references = entries()[word][1]["In the code"].split("; ")
    for reference in references:
        file, names = re.fullmatch(r"`([\w/]+)\.py`: ((?:`[\w.]+`(?:, )?)+)", reference).groups()
        module = importlib.import_module(file.replace("/", "."))
        for name in re.findall(r"`([\w.]+)`", names):
            thing = functools.reduce(getattr, name.split("."), module)
            assert getattr(thing, "__module__", module.__name__) == module.__name__, f"{name} is defined elsewhere"
