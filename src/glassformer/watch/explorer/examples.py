"""The sentences that a page offers: examples, and the two of its story."""

import re
from itertools import islice

from glassformer.bundle import Bundle
from glassformer.corpus.tasks import CLASSIC, TASKS
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import UNK_ID

__all__ = ["example_sentences", "frequent_words", "story_pair"]

EXAMPLES = 5
"""Number of example sentences, and of words in a sentence of frequent words."""
GENDERED = frozenset(["ca", "cs", "de", "es", "fr", "it", "pl", "pt", "ro", "ru", "uk"])
"""Languages, among others, in which "animal" and "street" have different genders and pronouns."""
STORY = CLASSIC[1:3]
"""The two sentences of the page's story: the animal was too tired, or the street too wide."""


def example_sentences(bundle: Bundle) -> list[str]:
    """Return sentences of the run's task; none for a run on files."""
    configuration = bundle.configuration
    if configuration.data.task == "english-french":
        others = (example for example in CLASSIC if example not in STORY)
        return [example.source for example in (*STORY, *others)]  # a pronoun can be asked about at once
    if configuration.data.task in TASKS:
        task = TASKS[configuration.data.task](configuration.run.seed)
        return [example.source for example in task.splits["test"][:EXAMPLES]]
    return []


def story_pair(bundle: Bundle) -> list[str]:
    """Return the two sentences of the story if the model translates them into a language with genders, or none."""
    data, tokenizer = bundle.configuration.data, bundle.source_tokenizer
    translates = data.source_language == "en" and data.target_language in GENDERED
    cuts_words = tokenizer.to_dict()["kind"] != "characters"  # models of characters transliterate words
    pair = [example.source for example in STORY]
    known = all(UNK_ID not in tokenizer.encode(sentence) for sentence in pair)
    return pair if translates and cuts_words and known else []


def frequent_words(tokenizer: Tokenizer) -> str:
    """Return the most frequent words of a vocabulary as a sentence, for a run without example sentences."""
    tokens = tokenizer.tokens(range(len(tokenizer)))
    frequent = (id for id, token in enumerate(tokens) if id > UNK_ID and not re.fullmatch("▁|<0x..>", token))
    return tokenizer.decode(list(islice(frequent, EXAMPLES)))
