from unicodedata import normalize

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from glassformer.errors import ConfigError, DataError
from glassformer.evaluation.metrics import (
    METRICS,
    bleu,
    chrf,
    exact_match,
    score_texts,
    sentence_scores,
    word_error,
)

word = st.sampled_from(["the", "cat", "dog.", "a", "Sat", "don't", "x,y", "é"])
sentence = st.lists(word, max_size=9).map(" ".join)
corpus = st.lists(st.tuples(sentence, sentence), min_size=1, max_size=7)
symbols = st.lists(st.sampled_from("abc"), min_size=1, max_size=7)


def edits(a: list[str], b: list[str]) -> int:
    """Return the Levenshtein distance by its definition."""
    if not a or not b:
        return len(a) + len(b)
    return min(edits(a[1:], b) + 1, edits(a, b[1:]) + 1, edits(a[1:], b[1:]) + (a[0] != b[0]))


@given(corpus)
def test_bleu_and_chrf_equal_sacrebleus(pairs) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    assert bleu(hypotheses, references).value == pytest.approx(
        sacrebleu.corpus_bleu(hypotheses, [references]).score, abs=1e-9
    )
    assert chrf(hypotheses, references).value == pytest.approx(
        sacrebleu.corpus_chrf(hypotheses, [references]).score, abs=1e-9
    )


@given(corpus, st.sampled_from(sorted(METRICS)))
def test_the_unicode_form_of_texts_changes_no_score(pairs, metric) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    apart = (
        [normalize("NFD", f"{text} é") for text in hypotheses],
        [normalize("NFD", f"{text} é") for text in references],
    )
    whole = METRICS[metric]([f"{text} é" for text in hypotheses], [f"{text} é" for text in references])
    assert (
        METRICS[metric](apart[0], apart[1]) == METRICS[metric](apart[0], [f"{text} é" for text in references]) == whole
    )


@given(corpus)
def test_scores_of_single_sentences_equal_sacrebleus(pairs) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    expected = [sacrebleu.sentence_bleu(one, [other]).score for one, other in pairs]
    assert sentence_scores(hypotheses, references, "bleu") == pytest.approx(expected, abs=1e-9)
    expected = [sacrebleu.sentence_chrf(one, [other]).score for one, other in pairs]
    assert sentence_scores(hypotheses, references, "chrf") == pytest.approx(expected, abs=1e-9)
    assert sentence_scores(["a b", "a"], ["a c", ["b", "a"]], "per") == [50, 0]
    with pytest.raises(ConfigError, match="did you mean 'bleu'"):
        sentence_scores(hypotheses, references, "belu")


CHINESE, JAPANESE, THAI = "猫在地毯上睡觉。", "猫はマットの上で寝ていました。", "แมวนอนหลับอยู่บนพรม"
KOREAN, FRENCH = "고양이가 깔개 위에서 잤다.", "Le chat dormait sur le tapis."


@pytest.mark.parametrize(
    ("references", "language", "tokenizer"),
    [
        ([CHINESE], "", "zh"),
        ([CHINESE, FRENCH], "", "zh"),
        ([JAPANESE, "猫"], "", "char"),
        ([THAI], "", "char"),
        (["ແມວນອນຢູ່ເທິງພົມ"], "", "char"),
        ([KOREAN], "", "13a"),
        ([FRENCH], "", "13a"),
        ([FRENCH * 9, "東京"], "", "13a"),
        (["…", "42"], "", "13a"),
        ([FRENCH], "zh", "zh"),
        ([FRENCH], "zh-Hant-TW", "zh"),
        (["猫"], "ja", "char"),
        ([FRENCH], "th", "char"),
        ([CHINESE], "ko", "13a"),
        ([CHINESE], "fr", "13a"),
        (["māo zài dìtǎn shàng"], "zh-Latn-pinyin", "13a"),
        (["кошка"], "zh-Cyrl", "13a"),
        *(([CHINESE], code, "zh") for code in ("zh-CN", "zh_TW", "zh-Hans", "ZH", "cmn", "zho", "yue")),
        *(([JAPANESE], code, "char") for code in ("ja-JP", "jpn")),
        *(([THAI], code, "char") for code in ("th-TH", "tha")),
        *(([KOREAN], code, "13a") for code in ("ko-KR", "kor")),
        (["我用Python和PyTorch写了一个翻译模型。", "版本2.0发布了"], "", "zh"),
        (["貓在地毯上睡覺。"], "", "zh"),
        (["コンピューター", "テスト"], "", "char"),
        (["東京都知事", "猫です"], "", "char"),
        (["ကြောင်ကကော်ဇောပေါ်မှာအိပ်နေတယ်။"], "", "char"),
        (["ឆ្មាកំពុងដេកលើព្រំ។"], "", "char"),
        (["大統領이 서울에서 말했다. 고양이가 잤다."], "", "13a"),
        (["Le mot 猫 veut dire chat en chinois."], "", "13a"),
        (["القطة نائمة على السجادة."], "", "13a"),
        (["बिल्ली कालीन पर सो रही थी।"], "hi", "13a"),
    ],
)
def test_bleu_cuts_texts_as_their_language_or_their_script_asks_for(references, language, tokenizer) -> None:
    hypotheses = [
        reference.replace("猫", "狗").replace("แมว", "หมา").replace("chat", "chien") for reference in references
    ]
    expected = sacrebleu.metrics.BLEU(tokenize=tokenizer).corpus_score(hypotheses, [references])
    [found] = score_texts(hypotheses, references, metrics=["bleu"], language=language)
    assert found.value == pytest.approx(expected.score)
    assert f"|tok:{tokenizer}|" in found.signature
    single = [
        sacrebleu.metrics.BLEU(tokenize=tokenizer, effective_order=True).sentence_score(one, [other]).score
        for one, other in zip(hypotheses, references, strict=True)
    ]
    assert sentence_scores(hypotheses, references, "bleu", language) == pytest.approx(single)


@given(st.lists(st.tuples(sentence, sentence, sentence), min_size=1, max_size=7))
def test_scores_with_several_references_equal_sacrebleus(rows) -> None:
    hypotheses, first, second = map(list, zip(*rows, strict=True))
    references = [list(pair) for pair in zip(first, second, strict=True)]
    expected = sacrebleu.corpus_bleu(hypotheses, [first, second]).score
    assert bleu(hypotheses, references).value == pytest.approx(expected, abs=1e-9)


def test_a_fixed_corpus_has_sacrebleus_score_and_signature() -> None:
    hypotheses = ["The cat sat on the mat.", "A dog sleeps in the sun."]
    references = ["The cat sat on the mat.", "The dog is sleeping in the sun."]
    score = bleu(hypotheses, references)
    assert score.name == "BLEU"
    assert score.value == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score, abs=1e-9)
    assert score.signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    assert chrf(hypotheses, references).name == "chrF2"


def test_lines_may_have_different_numbers_of_references() -> None:
    score = bleu(["the cat sat here", "x"], [["the cat sat here", "b"], ["x"]])
    assert score.value == pytest.approx(100)
    assert "nrefs:var" in score.signature


def test_exact_match_counts_lines_that_equal_any_reference() -> None:
    score = exact_match(["K AE1 T", "D AO1 G", "x"], [["K AA1 T", "K AE1 T"], ["D AO1"], ["X", "y"]])
    assert (score.name, score.value) == ("exact", pytest.approx(100 / 3))


def test_exact_match_ignores_white_space() -> None:
    assert exact_match(["a b"], [" a\u00a0 b "]).value == 100
    assert exact_match(["a b"], ["ab"]).value == 0


@given(st.lists(st.tuples(symbols, symbols), min_size=1, max_size=5))
def test_error_rate_is_the_edit_distance_per_symbol_of_the_references(pairs) -> None:
    hypotheses, references = ([" ".join(line) for line in side] for side in zip(*pairs, strict=True))
    expected = 100 * sum(edits(a, b) for a, b in pairs) / sum(len(b) for _, b in pairs)
    assert METRICS["per"](hypotheses, references).value == pytest.approx(expected, abs=1e-9)


@given(corpus.filter(lambda pairs: any(reference for _, reference in pairs)))
def test_exact_match_and_error_rate_agree_on_perfect_outputs_and_stay_in_range(pairs) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    exact, rate = exact_match(hypotheses, references).value, METRICS["wer"](hypotheses, references).value
    most = sum(max(len(line.split()) for line in pair) for pair in pairs)
    assert 0 <= exact <= 100
    assert 0 <= rate <= 100 * most / sum(len(line.split()) for line in references) + 1e-9
    assert (exact == 100) == (rate == 0)
    assert METRICS["wer"](references, references).value == 0


@given(st.lists(st.tuples(word, word), min_size=1))
def test_the_error_rate_of_one_word_lines_is_100_minus_exact_match(pairs) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    assert METRICS["wer"](hypotheses, references).value == pytest.approx(
        100 - exact_match(hypotheses, references).value
    )


def test_a_word_that_equals_no_reference_is_wrong() -> None:
    outputs = ["R EH D", "R  IY D", "R IY", "K AE T", "D"]
    several = [["R IY D", "R EH D"], ["R IY D", "R EH D"], ["R IY D", "R EH D"], ["K AE T"], ["D AO G"]]
    score = word_error(outputs, several)
    assert (score.name, score.value) == ("WER (whole words)", pytest.approx(40))
    # To become right, the third word needs one edit, and the last word two edits.
    assert METRICS["per"](outputs, several).value == pytest.approx(100 * 3 / 15)


@given(corpus)
def test_word_error_is_100_minus_exact_match(pairs) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    assert word_error(hypotheses, references).value == pytest.approx(100 - exact_match(hypotheses, references).value)


def test_the_two_metrics_called_wer_have_different_names() -> None:
    whole, within = (METRICS[name](["a b c"], ["a b d"]) for name in ("word_error", "wer"))
    assert (whole.value, within.value) == (100, pytest.approx(100 / 3))
    assert whole.name != within.name
    assert ("unit:line" in whole.signature, "unit:word" in within.signature) == (True, True)


@pytest.mark.parametrize("metric", list(METRICS))
def test_more_references_never_make_a_word_worse(metric: str) -> None:
    one = METRICS[metric](["a b c d e"], [["a b c d x"]]).value
    two = METRICS[metric](["a b c d e"], [["a b c d x", "a b c d e"]]).value
    assert two >= one if METRICS[metric].higher_is_better else two <= one
    assert METRICS[metric].meaning


def test_the_closest_reference_counts_in_any_order() -> None:
    references = ["a b c d", "a x", "a b"]
    for several in (references, references[::-1]):
        assert METRICS["wer"](["a b c"], [several]).value == pytest.approx(100 / 4)


@pytest.mark.parametrize(("metric", "name", "value"), [("wer", "WER", 50), ("per", "PER", 50), ("cer", "CER", 20)])
def test_each_metric_has_its_unit(metric: str, name: str, value: float) -> None:
    score = METRICS[metric](["ab  ce"], ["ab cd"])
    assert (score.name, score.value) == (name, pytest.approx(value))


def test_evaluate_returns_the_scores_in_the_requested_order() -> None:
    scores = score_texts(["a b c d"], ["a b c d"], metrics=["exact", "wer", "bleu", "chrf", "per", "cer"])
    assert [score.name for score in scores] == ["exact", "WER", "BLEU", "chrF2", "PER", "CER"]
    assert [score.value for score in scores] == pytest.approx([100, 0, 100, 100, 0, 0])
    assert [score.name for score in score_texts(["a"], ["a"])] == ["BLEU", "chrF2", "exact"]


def test_an_unknown_metric_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'blue' \(did you mean 'bleu'\?\)"):
        score_texts(["a"], ["a"], metrics=["blue"])


@pytest.mark.parametrize("metric", list(METRICS))
@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (["a"], ["a", "b"], "1 hypotheses and 2 references"),
        ([], [], "at least one line"),
        (["a", "b"], [["a"], []], "line 2: expected at least one reference"),
    ],
)
def test_inputs_that_cannot_be_scored_are_an_error(metric: str, hypotheses, references, message: str) -> None:
    with pytest.raises(DataError, match=message):
        METRICS[metric](hypotheses, references)


def test_references_without_words_have_no_error_rate() -> None:
    with pytest.raises(DataError, match="blank lines only"):
        METRICS["wer"](["a"], [" "])
