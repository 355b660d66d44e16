"""The sentences that a page offers: examples, and the two sentences of the page's story."""

import re
from collections.abc import Iterable
from itertools import islice

from glassformer.bundle import Bundle
from glassformer.corpus.tasks import CLASSIC, TASKS
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import UNK_ID

__all__ = ["example_sentences", "frequent_words", "partner", "story_pair"]

EXAMPLES = 5
"""Number of example sentences, and of words in a sentence of frequent words."""
GENDERED = frozenset(["ca", "cs", "de", "es", "fr", "it", "pl", "pt", "ro", "ru", "uk"])
"""Languages, among others, in which "animal" and "street" have different genders and pronouns."""
STORY = CLASSIC[1:3]
"""The two sentences of the page's story: the animal was too tired, or the street too wide."""
SENSES = ("The bat was very expensive.", "The bat was very sick.")
"""A pair of sentences with a word that has two meanings; French has a different word for each meaning."""


def example_sentences(bundle: Bundle) -> list[str]:
    """Return example sentences of the run's task; an empty list for a run that was trained on files."""
    configuration = bundle.configuration
    if configuration.data.task == "english-french":
        known = all(UNK_ID not in bundle.source_tokenizer.encode(sentence) for sentence in SENSES)
        first, *others = (example.source for example in CLASSIC if example not in STORY)
        pairs = [*(example.source for example in STORY), *(SENSES if known else ())]
        return [*pairs, others[0], first, *others[1:]]
    if configuration.data.task in TASKS:
        task = TASKS[configuration.data.task](configuration.run.seed)
        return [example.source for example in task.splits["test"][:EXAMPLES]]
    return []


def story_pair(bundle: Bundle) -> list[str]:
    """Return the story's two sentences, or [] unless the model translates English into a language with genders."""
    data, tokenizer = bundle.configuration.data, bundle.source_tokenizer
    translates = data.source_language == "en" and data.target_language in GENDERED
    cuts_words = tokenizer.to_dict()["kind"] != "characters"  # character models transliterate single words
    pair = [example.source for example in STORY]
    known = all(UNK_ID not in tokenizer.encode(sentence) for sentence in pair)
    return pair if translates and cuts_words and known else []


def partner(sentence: str, sentences: Iterable[str]) -> str | None:
    """Return the first of `sentences` that differs from `sentence` in exactly one word, or None."""
    words = sentence.split(" ")
    return next((one for one in sentences if _differing(words, one.split(" ")) == 1), None)


def _differing(words: list[str], others: list[str]) -> int:
    """Return the number of words that differ; −1 for sentences of different lengths."""
    return sum(map(str.__ne__, words, others)) if len(words) == len(others) else -1


def frequent_words(tokenizer: Tokenizer) -> str:
    """Return the most frequent words of a vocabulary as a sentence, for a run without example sentences."""
    tokens = tokenizer.tokens(range(len(tokenizer)))
    frequent = (id for id, token in enumerate(tokens) if id > UNK_ID and not re.fullmatch("▁|<0x..>", token))
    return tokenizer.decode(list(islice(frequent, EXAMPLES)))
