"""The pages of imported runs: sentencepiece models with a normalisation of their own, and sources without an end."""

from cuts import trained
from glassformer.text.vocabulary import SPECIALS, Vocabulary
from glassformer.text.words import WordTokenizer
from glassformer.watch.explorer.payload import payload, recorded_payload

IDS = "() => glassformer.app.result.current.sourceIds"
AS_IT_IS = {"split": False, "recase": False, "protect": False}
"""The page shows what the model does with a text as it is."""
TRANSLATED = "(text) => glassformer.app.translate(text).then(({ text }) => text)"
TEXTS = ["the ﬁsh sleeps", ">>fra<< the cat", "½ cat\u3000dog", "the black cat sleeps ."]


def of_words(**settings):
    words = ["the", "black", "cat", "sleeps", ".", "and", "le", "chat", "noir", "dort"]
    return WordTokenizer(Vocabulary((*SPECIALS, *words)), **settings)


def test_a_page_cuts_texts_as_the_imported_models_do(explore, make_translator):
    """Check one kind of tokenizer on a page; `web/tests/tokenizers.test.ts` checks all kinds."""
    tokenizer = trained("marian unigram")
    translator = make_translator(tokenizers=(tokenizer, tokenizer), tie_embeddings=True)
    page = explore(translator, TEXTS[0])
    assert page.evaluate(IDS) == [*tokenizer.encode(TEXTS[0]), tokenizer.eos_id]
    assert page.evaluate("glassformer.parity") <= 1e-4
    for text in TEXTS:
        expected = translator.translate([text], beam_size=3, **AS_IT_IS)[0].text
        assert page.evaluate(TRANSLATED, text) == expected


def test_a_source_without_an_end_is_followed_by_padding(explore, make_translator):
    translator = make_translator(tokenizers=(of_words(with_bos=True, with_eos=False), of_words()))
    for data in (payload, recorded_payload):
        page = explore(translator, "the black cat", data=data)
        assert page.evaluate(IDS) == [1, 4, 5, 6, 0]
    page = explore(translator, "the black cat")
    assert page.evaluate("glassformer.parity") <= 1e-4
    text = "the cat and the cat"
    assert page.evaluate(TRANSLATED, text) == translator.translate([text], **AS_IT_IS)[0].text
