"""How a run's texts are rewritten before they are translated, if they are written unlike its training texts."""

from collections.abc import Iterator

from glassformer.bundle import Bundle
from glassformer.text.habits import Habits
from glassformer.text.splitting import has_letter
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.vocabulary import SPECIALS
from glassformer.translating.copying import letterless
from glassformer.translating.framing import within_marks
from glassformer.translating.joining import joining
from glassformer.translating.recasing import recasing
from glassformer.translating.rewriting import Rewrite

__all__ = ["plain_rewrites", "reads_sentences"]


def plain_rewrites(bundle: Bundle, *, whole: bool) -> Iterator[Rewrite]:
    """Yield the ways in which a run's texts are rewritten, in their order.

    `whole` says that texts must stay whole, because other models score whole outputs.
    """
    habits = bundle.habits or Habits()
    if not whole:
        yield within_marks
        if habits.splits:
            yield joining(bundle.configuration.data.source_language)
            yield within_marks  # each sentence of a list in one line has a mark of its own
        yield recasing(bundle, habits)
    if habits.copies and _reads_letters(bundle.source_tokenizer):
        yield letterless


def reads_sentences(bundle: Bundle) -> bool:
    """Return whether a run reads sentences, not words or numbers; without habits, characters are those of words."""
    tokenizer = bundle.source_tokenizer
    reads_words = bundle.habits.reads_words if bundle.habits else tokenizer.kind == "characters"
    return not reads_words and _reads_letters(tokenizer)


def _reads_letters(tokenizer: Tokenizer) -> bool:
    """Return whether a vocabulary has letters, unlike the vocabulary of a task with numbers."""
    return any(has_letter(token) for id in range(len(SPECIALS), len(tokenizer)) for token in tokenizer.tokens([id]))
