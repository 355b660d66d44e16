from hypothesis import given
from hypothesis import strategies as st

from glassformer.text.splitting import split_sentences

LANGUAGES = st.sampled_from(["en", "fr", "de", "es", "ja", "hi", "ar", "hy", "zh-Hans", "pt-BR", "xx", ""])


@given(
    text=st.text(st.characters(blacklist_categories=[])) | st.text("aA.?! \n\r\"'“”()。…\u2028é1😀"), language=LANGUAGES
)
def test_joined_sentences_are_the_text(text: str, language: str) -> None:
    assert "".join(split_sentences(text, language)) == text


def test_abbreviations_and_numbers_end_no_sentence() -> None:
    text = "Dr. Smith came at 3.5 metres. He left.  Why? Nobody knows…"
    assert split_sentences(text, "en-GB") == [
        "Dr. Smith came at 3.5 metres. ",
        "He left.  ",
        "Why? ",
        "Nobody knows…",
    ]
    german = ["Am 3. Mai kam er z. B. nach Hause. ", "Dann ging er."]
    assert split_sentences("".join(german), "de") == german
    assert split_sentences("これは文です。これも。", "ja") == ["これは文です。", "これも。"]
