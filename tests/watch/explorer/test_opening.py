"""The highlights of a page at first, compared with one forward pass for each head, source word and turned row."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

import glassformer as gf
from glassformer.corpus.tasks import CLASSIC
from glassformer.recipes.toml import from_dict
from glassformer.translator import Translator
from glassformer.watch.explorer.examples import partner
from glassformer.watch.explorer.opening import call_rank, openings, token_rank
from glassformer.watch.explorer.payload import payload, recorded_payload, rounded
from glassformer.watch.inspection.changes import Changes, changed
from glassformer.watch.inspection.edits import attentions
from models import EVEN, new_bundle, pair_translator, random_model

SENTENCE = "the cat sees a big black dog ."
SEEDS = [pytest.param({"seed": seed}, marks=pytest.mark.slow) for seed in (6, 7)]


def row_under(model: gf.Transformer, source: list[int], prefix: list[int], **changes: Any) -> torch.Tensor:
    """Return the log probabilities after a prefix under changes, from one forward pass."""
    with torch.no_grad(), changed(model, Changes(**changes)):
        return model(torch.tensor([source]), torch.tensor([[1, *prefix]]))[0, -1].log_softmax(-1)


def weights_of(model: gf.Transformer, source: list[int], output: list[int], name: str) -> torch.Tensor:
    with torch.no_grad(), gf.record(model, f"{name}.weights") as trace:
        model(torch.tensor([source]), torch.tensor([[1, *output[:-1]]]))
    return trace[f"{name}.weights"][0]


def is_word(token: str) -> bool:
    return token != "." and token not in ("<pad>", "<bos>", "<eos>", "<unk>")


def closest(translator: Translator, model: gf.Transformer, source: list[int], output: list[int]) -> tuple[int, int]:
    """Return the row in which the two likeliest words are closest, and the rival there, for a tokenizer of words."""
    calls = []
    for place, word in enumerate(output[:-1] or output):
        row = row_under(model, source, output[:place]).tolist()
        rival = max((id for id in range(2, len(row)) if id != word), key=lambda id: row[id])
        both = translator.bundle.target_tokenizer.tokens([word, rival])
        margin = row[word] - row[rival]
        calls.append((not all(map(is_word, both)), margin < 0, margin, place, rival))
    return min(calls)[3:]


def turn(
    translator: Translator, source: list[int], opening: dict[str, Any], other: tuple[list[int], list[int]] | None = None
) -> dict[str, Any] | None:
    """Try all turned rows one by one; return the row with which the model writes the rival most probably."""
    model, output, row, rival = rounded(translator.model), opening["ids"], opening["row"], opening["rival"]
    word, prefix = output[row], output[:row]
    plain = row_under(model, source, prefix)
    if plain[word] <= plain[rival]:
        return None

    def margin(name: str, head: int) -> float:
        after = row_under(model, source, prefix, ablated={name: [head]})
        return (after[word] - after[rival]).item()

    tokens = translator.bundle.source_tokenizer.tokens(source)
    words = [place for place, token in enumerate(tokens) if is_word(token.removeprefix("▁"))]
    cross = [name for name in attentions(model) if name.endswith("cross_attention")]
    heads = sorted(((name, head) for name in cross for head in range(model.config.heads)), key=lambda one: margin(*one))
    there = {int(weights_of(model, *other, name)[head, row].argmax()) for name, head in heads[:3]} if other else set()
    found: list[tuple[bool, float, dict[str, Any]]] = []
    for name, head in heads[:3]:
        old = int(weights_of(model, source, output, name)[head, row].argmax())
        for new in words:
            after = row_under(model, source, prefix, overrides={name: [(head, row, [0.0] * new + [1.0])]})
            after[:2] = -torch.inf
            if new != old and after.argmax() == rival:
                chances = {"word": after[word].exp().item(), "rival": after[rival].exp().item()}
                places = {"attention": name, "head": head, "from": old, "to": new}
                close = {key: pytest.approx(value, rel=1e-4) for key, value in chances.items()}
                found.append((new in there, chances["rival"], {**places, **close}))
    return max(found, key=lambda one: one[:2])[2] if found else None


def check(translator: Translator, source: list[int], opening: dict[str, Any], other: Any = None) -> None:
    """Compare each number of an opening with one forward pass."""
    model, output, row, rival = rounded(translator.model), opening["ids"], opening["row"], opening["rival"]
    assert list(opening["without"]) == list(attentions(model))
    for name, heads in opening["without"].items():
        assert len(heads) == model.config.heads
        for head, measured in enumerate(heads):
            after = row_under(model, source, output[:row], ablated={name: [head]})
            assert measured["probability"] == pytest.approx(after[output[row]].exp().item(), rel=1e-4)
            assert measured["margin"] == pytest.approx((after[output[row]] - after[rival]).item(), abs=1e-4, rel=1e-5)
    assert opening["turn"] == turn(translator, source, opening, other)


@pytest.mark.parametrize("settings", [{}, {"norm": "pre"}, {"seed": 5, "heads": 2}, *SEEDS])
def test_an_opening_is_what_one_pass_for_each_change_measures(make_translator, settings):
    translator = make_translator(**settings)
    model, [source] = rounded(translator.model), translator.bundle.source_tokenizer.encode_all([SENTENCE])
    source = [*source, 2]
    opening = openings(translator, model, [SENTENCE])[SENTENCE]
    [found] = Translator(translator.bundle, model).translate([SENTENCE])
    assert translator.bundle.target_tokenizer.tokens(opening["ids"]) == list(found.tokens)
    assert (opening["row"], opening["rival"]) == closest(translator, model, source, opening["ids"])
    assert not opening["ofPair"]
    check(translator, source, opening)


def test_some_rows_can_be_turned_and_some_cannot(make_translator):
    translators = [make_translator(seed=seed) for seed in range(5, 11)]
    found = [openings(one, rounded(one.model), [SENTENCE])[SENTENCE] for one in translators]
    assert {one["turn"] is None for one in found} == {True, False}


@pytest.fixture
def of_pair(tmp_path) -> tuple[Translator, list[str]]:
    """Return a random translator of the story's pair, and the two sentences."""
    return pair_translator(tmp_path), [example.source for example in CLASSIC[1:3]]


@pytest.mark.slow
def test_the_sentences_of_the_pair_light_the_first_word_in_which_they_differ(of_pair):
    translator, pair = of_pair
    model, tokenizer = rounded(translator.model), translator.bundle.source_tokenizer
    found = openings(translator, model, pair)
    outputs = [found[sentence]["ids"] for sentence in pair]
    row = next(place for place, (one, other) in enumerate(zip(*outputs, strict=False)) if one != other)
    sources = [[*tokenizer.encode(sentence), 2] for sentence in pair]
    for here, there in ((0, 1), (1, 0)):
        opening = found[pair[here]]
        assert (opening["row"], opening["rival"], opening["ofPair"]) == (row, outputs[there][row], True)
        check(translator, sources[here], opening, (sources[there], outputs[there]))
    assert openings(translator, model, pair[:1]) == {pair[0]: found[pair[0]]}


@pytest.mark.slow
def test_examples_that_differ_in_one_word_are_a_pair(make_translator):
    translator = make_translator()
    model, examples = rounded(translator.model), [SENTENCE, "a dog sleeps .", SENTENCE.replace("black", "small")]
    alone = openings(translator, model, examples)
    paired = openings(translator, model, examples, examples=examples)
    outputs = [paired[sentence]["ids"] for sentence in examples]
    differing = [at for at, (one, other) in enumerate(zip(outputs[0], outputs[2], strict=False)) if one != other]
    for here, there in ((0, 2), (2, 0)):
        opening = paired[examples[here]]
        assert (opening["row"], opening["rival"]) == (differing[0], outputs[there][differing[0]])
    assert paired[examples[1]] == alone[examples[1]]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [("a b c", "a x c"), ("a x c", "a b c"), ("a b", None), ("a x d", "a x c"), ("c b a", None), ("a b c d", None)],
)
def test_the_partner_of_a_sentence_differs_in_one_word(sentence, expected):
    assert partner(sentence, ["a b c", "a x c", "b a"]) == expected


def biased(translator: Translator, **biases: float) -> Translator:
    """Return a translator whose model adds these biases to the logits of tokens; "others" stands for all others."""
    model, tokenizer = translator.model, translator.bundle.target_tokenizer
    tokens = tokenizer.tokens(range(len(tokenizer)))
    model.output.bias.data[:] = torch.tensor([biases.get(token, biases.get("others", 0.0)) for token in tokens])
    return translator


@pytest.mark.parametrize(
    ("biases", "output"),
    [
        ({"<eos>": 60.0}, ["<eos>"]),
        ({"dort": 60.0, "<eos>": 50.0}, ["dort", "<eos>"]),
        ({"dort": 6e4, "others": -6e4}, ["dort", "<eos>"]),
        ({"▁.": 600.0, "<eos>": 40.0}, ["▁.", "<eos>"]),
    ],
)
def test_shortest_outputs_have_an_opening(make_translator, biases, output):
    translator = biased(make_translator(output_bias=True, extra_length=0), **biases)
    opening = json.loads(json.dumps(payload(translator, "cat"), allow_nan=False))["openings"]["cat"]
    assert translator.bundle.target_tokenizer.tokens(opening["ids"]) == output
    assert opening["row"] == 0
    assert opening["rival"] not in (0, 1, opening["ids"][0])
    check(translator, [*translator.bundle.source_tokenizer.encode("cat"), 2], opening)


def test_words_come_before_pieces_and_pieces_before_punctuation(make_translator):
    words = make_translator(target="le chien noir . l'eau !").bundle.target_tokenizer
    ranks = {token: token_rank(words, id) for id, token in enumerate(words.tokens(range(len(words))))}
    assert {token for token, rank in ranks.items() if rank == 0} == {"<pad>", "<bos>", "<eos>", "<unk>", "▁.", "▁!"}
    assert {rank for rank in ranks.values() if rank} == {2}


def test_words_that_differ_in_case_alone_are_no_close_call(make_translator):
    words = make_translator(target="Le le la chien").bundle.target_tokenizer
    capital, small, le, dog = words.encode("Le le la chien")
    assert (call_rank(words, capital, small), call_rank(words, capital, le), call_rank(words, le, dog)) == (0, 2, 2)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_piece_begins_a_word_if_it_begins_with_a_space(kind, tmp_path):
    lines = ["the black cats sleep .", "black cats see the cat !", "cats and cat , the end"]
    tokenizer = {"kind": kind, "vocab_size": 44, "joint": True}
    configuration = from_dict({"data": {"source": "a.tsv"}, "tokenizer": tokenizer, "model": EVEN})
    pieces = new_bundle(tmp_path / "run", configuration, lines, lines).target_tokenizer
    for id, token in enumerate(pieces.tokens(range(len(pieces)))):
        letters = id > 3 and any(map(str.isalnum, token))
        assert token_rank(pieces, id) == (0 if not letters else 2 if token[0] == "▁" else 1), token


def test_characters_are_words_of_their_own(tmp_path):
    lines = ["cat .", "a dog !"]
    configuration = from_dict({"data": {"source": "a.tsv"}, "tokenizer": {"kind": "characters"}, "model": EVEN})
    bundle = new_bundle(tmp_path / "run", configuration, lines, lines)
    translator = Translator(bundle, random_model(**bundle.model_config.to_dict()))
    opening = openings(translator, rounded(translator.model), ["a cat ."])["a cat ."]
    tokens = bundle.target_tokenizer.tokens(range(len(bundle.target_tokenizer)))
    ranks = {token: token_rank(bundle.target_tokenizer, id) for id, token in enumerate(tokens)}
    assert (ranks["c"], ranks["."], ranks["▁"]) == (2, 0, 0)
    assert opening["row"] < len(opening["ids"])


def test_a_recorded_page_lights_its_sentence_and_knows_the_rival(make_translator):
    translator = make_translator(target=" ".join(f"w{number}" for number in range(300)), extra_length=3)
    page = recorded_payload(translator, SENTENCE)
    assert page["openings"] == openings(translator, translator.model, [SENTENCE])
    assert str(page["openings"][SENTENCE]["rival"]) in page["target"]["tokens"]


def test_sentences_that_are_too_long_or_too_much_work_are_left_out(make_translator):
    translator = make_translator()
    model, long = rounded(translator.model), "the cat " * 600
    assert list(openings(translator, model, [long, SENTENCE])) == [SENTENCE]
    assert openings(translator, model, [SENTENCE], most_work=1e3) == {}
    assert list(openings(translator, model, ["the cat", SENTENCE], most_work=1e7)) == ["the cat"]


@pytest.mark.slow
def test_an_example_that_a_damaged_model_cannot_translate_is_left_out(of_pair):
    translator, pair = of_pair
    [wide] = {*translator.bundle.source_tokenizer.encode(pair[1])} - {
        *translator.bundle.source_tokenizer.encode(pair[0])
    }
    translator.model.source.tokens.weight.data[wide] = torch.nan
    shown = payload(translator, "the animal slept")
    assert list(shown["openings"]) == ["the animal slept", *shown["examples"][2:]]


@pytest.mark.slow
def test_the_page_has_openings_of_its_sentence_and_the_examples(of_pair):
    translator, _ = of_pair
    shown = payload(translator, "the animal slept")
    assert list(shown["openings"]) == ["the animal slept", *shown["examples"]]
    assert shown["languages"] == {"source": "en", "target": "fr"}
    served = payload(translator, "the animal slept", host="api")
    assert served["openings"] == {"the animal slept": shown["openings"]["the animal slept"]}


@pytest.mark.slow
def test_a_served_page_does_not_wait_for_much_work(make_translator):
    translator = make_translator(d_model=256, d_ff=1024, encoder_layers=6, decoder_layers=6, extra_length=0)
    assert payload(translator, SENTENCE, host="api")["openings"] == {}


def test_the_page_has_the_label_smoothing_of_the_training_if_there_was_one(make_translator):
    translator = make_translator()
    assert payload(translator)["label_smoothing"] == translator.bundle.configuration.training.label_smoothing == 0.1
    imported = replace(translator.bundle, origin="opus")
    assert payload(Translator(imported, translator.model))["label_smoothing"] == 0
