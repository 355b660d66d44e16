"""Each sentence of the explorer's page is true of the page's model, as PyTorch's values show."""

import itertools
import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.truth.checks import CHECKS, GENERAL
from benchmarks.truth.claims import Claim, differs, differs_in_times, read
from benchmarks.truth.seen import Model
from benchmarks.truth.visit import KINDS, Visit, opened

import glassformer as gf
from cuts import trained
from glassformer.training.snapshots import Snapshots
from glassformer.watch.explorer.module import strings
from glassformer.watch.inspection import MISTAKES

WORDS = ["the", "cat", "sees", "a", "big", "black", "dog", "and", "sleeps", "."]


def sentences(count: int) -> list[str]:
    """Return sentences of a random model's words; one has a word that the model does not know."""
    chance = random.Random(3)
    made = [" ".join(chance.choices(WORDS, k=chance.randint(3, 9))) for _ in range(count - 1)]
    return [*made, "the cat sees a xylophone ."]


def of_pieces(make: Callable[..., gf.Translator]) -> gf.Translator:
    tokenizer = trained("marian unigram")
    return make(tokenizers=(tokenizer, tokenizer), tie_embeddings=True, norm="pre", extra_length=3)


def with_snapshots(make: Callable[..., gf.Translator]) -> gf.Translator:
    translator = make(seed=6, extra_length=3)
    for step in (8, 16):
        early = make(seed=step, name=f"early-{step}").model
        Snapshots(translator.bundle.folder / "snapshots", keep=3).save(early, step)
    return translator


MODELS: dict[str, Callable[[Callable[..., gf.Translator]], gf.Translator]] = {
    "post-norm, words, snapshots": with_snapshots,
    "pre-norm, pieces": of_pieces,
    "learned positions": lambda make: make(positions="learned", extra_length=3),
}
FIRST = next(iter(MODELS))
"""The first model's page has most kinds of sentences; `make test-all` also checks the pages of the others."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "count"), [(FIRST, 6), *(pytest.param(one, 10, marks=pytest.mark.long) for one in MODELS)]
)
def test_every_sentence_is_true(make_translator, page, tmp_path, model, count):
    """Visit one sentence for each chapter, in `make test-all` ten."""
    translator = MODELS[model](make_translator)
    some = sentences(count)
    visit = opened(page, translator, tmp_path / "page.html", some[0])
    visit.sentences(some)
    tally = visit.tally
    assert tally.false == []
    assert sum(tally.claims.values()) > 500
    assert tally.claims.keys() >= {
        "zoom.about.mask.none",
        "zoom.rollout",
        "zoom.guess.encoder",
        "zoom.guess.decoder",
        "stage.turned.self.two",
    }
    acts = {key.split(".")[1] for key in tally.claims if key.startswith("chapter.")}
    learning = {"beginning", "trained"} if "snapshots" in model else {"snapshots"}
    assert acts >= learning | {
        "embedding",
        "positions",
        "mixing",
        "adding",
        "units",
        "chances",
        "search",
        "deciding",
        "yours",
    }


def visit_of(translator: gf.Translator, page: Any, sentence: str) -> Visit:
    """Return a visit to the open page of a translator, at the first box of cross-attention."""
    visit = Visit(page, Model(translator))
    visit.open(sentence)
    return visit


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["post", pytest.param("pre", marks=pytest.mark.long)])
def test_the_stage_and_the_segments_are_true_under_each_mistake(make_translator, explore, norm):
    translator = make_translator(seed=6, norm=norm, extra_length=3)
    visit = visit_of(translator, explore(translator, start="figure"), "the big black dog sees a cat .")
    for mistake in MISTAKES:
        visit.set(mistakes=[mistake])
        for box in ("encoder.self_attention.add", "decoder.self_attention", "decoder.cross_attention"):
            visit.show(box=box, row=1, sourceWord=5)
            visit.stage()
        for box in ("decoder.cross_attention", "decoder.self_attention", "encoder.feed_forward.add"):
            visit.segment(box)
    assert visit.tally.false == []


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_norm_that_ends_a_stack_of_norms_is_read_from_the_norm_before(make_translator, explore, stack):
    translator = make_translator(norm="post", final_norm=True, extra_length=3)
    visit = visit_of(translator, explore(translator, start="figure"), "the cat sees a dog .")
    visit.show(zoom={"box": f"{stack}.norm", "key": 2}, row=1, sourceWord=1, selected=None)
    visit.check(visit.seen("zoom", "§3"), KINDS["zoom"])
    assert visit.tally.claims["zoom.add.one.norm"] == 1
    assert visit.tally.false == []


def test_what_a_mask_keeps_from_a_row_is_true(make_translator, explore):
    translator = make_translator(extra_length=3)
    visit = visit_of(translator, explore(translator, start="figure"), "the cat sees a dog .")
    for box, row in itertools.product(("decoder.layers.0.self_attention", "decoder.layers.1.self_attention"), range(2)):
        visit.show(zoom={"box": box, "key": None, "mask": True}, row=row, selected=None)
        visit.check(visit.seen("zoom", "§3"), KINDS["zoom"])
    for claim in ("zoom.about.mask", "zoom.mask.why", "zoom.mask.without"):
        assert visit.tally.claims[claim] == 4
    assert visit.tally.false == []


def test_a_row_that_the_reader_has_turned_is_not_said_to_be_the_models(make_translator, explore):
    translator = make_translator(extra_length=3)
    visit = visit_of(translator, explore(translator, start="figure"), "the cat sees a dog .")
    turned = [[head, 1, [0, 1]] for head in range(4)]
    visit.set(overrides={f"decoder.layers.{layer}.cross_attention": turned for layer in (0, 1)})
    visit.show(row=1, box="decoder.cross_attention")
    visit.stage()
    visit.why()
    assert visit.tally.false == []
    for claim in ("stage.said.hand", "stage.more.weight.hand", "why.reads.hand"):
        assert visit.tally.claims[claim] == 1


@pytest.mark.parametrize(("positions", "stays"), [("learned", True), ("none", True), ("interleaved", False)])
def test_the_chapter_of_numbers_speaks_of_waves_only_where_waves_are_added(make_translator, explore, positions, stays):
    translator = make_translator(positions=positions, extra_length=3)
    visit = visit_of(translator, explore(translator, start="figure"), "the cat sees a dog .")
    visit.set(positions=stays)
    visit.show(chapter=2, act=1)
    said = visit.act(2)[0].state["texts"]
    assert visit.tally.false == []
    assert "wave" not in f"{said['said']} {said['more']}".lower()


def test_a_turned_look_that_changes_the_beginning_is_told(make_translator, explore):
    sentence = "the cat sees a big black dog ."
    translator = make_translator(seed=13, extra_length=3)
    visit = visit_of(translator, explore(translator, sentence, start="figure"), sentence)
    visit.chapter()
    assert visit.tally.claims["look.begins"] > 0
    assert visit.tally.false == []


def test_each_template_has_a_check() -> None:
    """Only labels and buttons have no check, because they make no claim."""
    kinds = (
        "stage.said.",
        "stage.more.",
        "stage.turned",
        "zoom.about.",
        "zoom.mask.",
        "zoom.guess.",
        "look.looks",
        "look.writes",
        "look.begins",
    )
    templates = {key for key in strings()["en"] if key.startswith(kinds) or is_of_act(key)}
    planted = {
        "zoom.about.late",
        "zoom.about.columns",
    }  # only said about planted mistakes, which test_attention_zoom.py checks
    assert templates - planted - {*CHECKS, *GENERAL} == set()


def is_of_act(key: str) -> bool:
    """Return whether a text is a sentence of an act: no name, button or reason why nothing is known."""
    labels = r"chapter\.(\d|short\.|where\.|strip|close|leave|nothing|recorded)|.*\.(next|open|name|unknown)$"
    return key.startswith("chapter.") and not re.match(labels, key)


def test_a_sentence_is_read_as_its_template() -> None:
    key = "stage.said.decoder.cross_attention"
    for language, text, target, source in (
        ("en", "When “.” is written, this head looks at “end”.", ".", "end"),
        ("zh", "写“il”时，这个头看着“rue”。", "il", "rue"),
    ):
        assert read(text, language, [key]) == [Claim(key, {"target": target, "source": source})]


def test_a_full_stop_in_a_sentence_may_be_a_word() -> None:
    unlikely = "“chien” is not the likeliest word here (0.105): the search chose it for what follows."
    turned = "Turned by hand: head 0 of layer 0, from “.” to “a”."
    assert read(f"{unlikely} {turned} Then the sum is normalised.", "en", ["stage.more."]) == [
        Claim("stage.more.beam", {"0": "chien", "1": "0.105"}),
        Claim("stage.more.turned", {"0": "head 0 of layer 0, from “.” to “a”"}),
        Claim("stage.more.norm", {}),
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sentences_that_follow_each_other_are_read_apart(language: str) -> None:
    """The first two sentences could also be read as one longer sentence about a word."""
    values = {"rises": ["il", "0.829", "0.899"], "needs": ["il", "elle", "0.829", "rue", "0.210"]}
    words = strings()[language]
    text = ("" if language == "zh" else " ").join(
        re.sub(r"\{(\d)\}", lambda place, filled=filled: filled[int(place[1])], words[f"stage.more.{key}"])
        for key, filled in values.items()
    )
    found = read(text, language, ["stage.more."])
    assert [claim.key for claim in found or []] == ["stage.more.rises", "stage.more.needs"]


def test_a_text_without_a_template_is_none() -> None:
    assert read("This head looks at many words.", "en", ["stage.said."]) is None


def test_numbers_are_compared_as_they_are_printed() -> None:
    for text, value, wrong in (("0.884", 0.88449, 0.8851), ("< 0.0001", 4e-5, 2e-4), ("−1.50", -1.5, 1.5)):
        assert differs(text, value) == ""
        assert differs(text, wrong)
    assert differs_in_times("3.4", 1.2238) == ""
    assert differs_in_times("3.5", 1.2238)
    assert differs_in_times("400", math.log(0.8897 / 0.00222), 0.8897, 0.00222) == ""
    assert differs_in_times("500", math.log(0.8897 / 0.00222), 0.8897, 0.00222)
    assert differs_in_times("3", 1.2238, 0.34, 0.1)
    assert differs_in_times("more than 1,000", math.log(0.884 / 0.00056), 0.884, 0.00056) == ""
    # the rounded 0.884 and 0.0006 give 1,473
    assert differs_in_times("1,600", math.log(0.884 / 0.00056), 0.884, 0.00056)
