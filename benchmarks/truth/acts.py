"""Checks of the sentences in the acts of chapters 2 to 7."""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from benchmarks.truth.chapter import both, opening
from benchmarks.truth.claims import ROUNDING, differs, differs_in_times, expected, first
from benchmarks.truth.seen import Check, Seen
from benchmarks.truth.stage import guess_at
from glassformer.decoding.hypothesis import Hypothesis
from glassformer.jobs import METRICS_FILE, read_log
from glassformer.watch.inspection.forced import first_difference
from glassformer.watch.inspection.mistakes import MISTAKES

__all__ = ["CHECKS", "GENERAL"]

LONGEST = 90
"""Number of letters after which the page cuts a translation."""
SURER = 0.05
"""A probability is "much surer" if it exceeds the training's aim by more than this value."""
WHERE = {
    "encoder.self_attention": "chapter.where.encoder.self_attention",
    "decoder.self_attention": "chapter.where.decoder.self_attention",
    "decoder.cross_attention": "chapter.where.decoder.cross_attention",
}


def general(is_so: Callable[[Seen], bool] = lambda _: True, what: str = "") -> Check:
    """Return a check of a sentence that is true for every model for which `is_so` returns True."""
    return lambda seen, _: "" if is_so(seen) else f"{what} is false"


# The outline


def outline(seen: Seen, values: Mapping[str, str]) -> str:
    """Check that the outline names two languages and, if something is changed, what the model writes now."""
    return first(
        "" if values["from"] != values["to"] else f"{values['from']} is both languages",
        expected("text", values["text"], text_of(seen, seen.changes)) if "text" in values else "",
    )


# Words become numbers


def embedding(seen: Seen, values: Mapping[str, str]) -> str:
    config = seen.model.config
    return first(
        expected("word", values["source"], seen.read_words[seen.lit_source]),
        expected("width", values["width"], str(config.d_model)),
        expected("row", values["id"], str(seen.read_ids[seen.lit_source])),
        expected("number of rows", values["all"], str(config.source_vocab_size)),
    )


def positions(*kinds: str) -> Check:
    """Return a check of a sentence about positions of these kinds and about the index of the lit source word."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        return first(
            expected("word", values.get("source", ""), seen.read_words[seen.lit_source]) if "source" in values else "",
            expected("place", values.get("place", ""), str(seen.lit_source)) if "place" in values else "",
            "" if seen.positions in kinds else f"the positions are {seen.positions}",
        )

    return check


# What the model writes in an act


def text_of(seen: Seen, changes: Mapping[str, object]) -> str:
    """Return the output of the search under these changes, as the page displays it."""
    found = seen.model.search(seen.source, seen.prefix, changes, **seen.search)[0]
    return shortened(seen, found)


def shortened(seen: Seen, found: Hypothesis) -> str:
    """Return an output, cut to the length that a sentence allows, without spaces at the ends."""
    text = seen.model.bundle.target_tokenizer.decode(found.tokens)
    return f"{text[:LONGEST]} …" if len(text) > LONGEST else text.strip() or seen.words["chapter.nothing"]


def writes(is_act: Callable[[Seen], bool], stays: bool | None = None) -> Check:
    """Return a check of the output under the act's changes; `stays`: whether it must equal the unchanged output."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        now, usual = text_of(seen, seen.changes), text_of(seen, {})
        return first(
            expected("text", values["text"], now),
            "" if is_act(seen) else "the act has not made its change",
            "" if stays in (None, now == usual) else f"the usual text is {usual}",
        )

    return check


def is_without_positions(seen: Seen) -> bool:
    return not seen.changes.get("positions", True)


# Words mix


def mixing(seen: Seen, values: Mapping[str, str]) -> str:
    """Check which words a head of the encoder reads at the lit source word."""
    weights = seen.weights(encoder(seen), seen.state["heads"]["encoder"]["head"], seen.lit_source)
    read = {word for word, weight in zip(seen.read_words, weights, strict=True) if weight >= weights.max() - ROUNDING}
    return first(
        expected("word", values["reader"], seen.read_words[seen.lit_source]),
        "" if values["looked"] in read else f"it reads {', '.join(read)}",
        differs(values["weight"], float(weights.max()), "its weight"),
    )


def encoder(seen: Seen) -> str:
    return f"encoder.layers.{seen.state['heads']['encoder']['layer']}.self_attention"


def mixing_head(seen: Seen, values: Mapping[str, str]) -> str:
    place = seen.state["heads"]["encoder"]
    return first(
        expected("head", values["head"], str(place["head"])),
        expected("layer", values["layer"], str(place["layer"])),
        expected("number of heads", values["heads"], str(seen.model.config.heads)),
    )


def adding(seen: Seen, values: Mapping[str, str]) -> str:
    new, old = (float(seen.trace[f"{encoder(seen)}.{point}"][seen.lit_source].norm()) for point in ("output", "input"))
    return first(
        expected("word", values["source"], seen.read_words[seen.lit_source]),
        differs(values["share"], new / (new + old) if new + old else 0.0, "the share of the new part"),
    )


# Writing


def looks_back(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the number of words that the decoder may look back at, and that it looks at no later word."""
    name = f"decoder.layers.{seen.state['heads']['cross']['layer']}.self_attention"
    return first(
        expected("word", values["target"], seen.target),
        expected("number of words", values["count"], str(seen.row + 1)) if "count" in values else "",
        "" if "count" in values or seen.row == 0 else "it is not the first word",
        "" if not bool(seen.trace[f"{name}.weights"][:, seen.row, seen.row + 1 :].any()) else "it looks ahead",
    )


def place_of_word(seen: Seen, values: Mapping[str, str]) -> str:
    return first(
        expected("place", values["place"], str(seen.row + 1)),
        expected("number of words", values["all"], str(len(seen.output))),
    )


def reading_head(seen: Seen, values: Mapping[str, str]) -> str:
    cross = seen.state["heads"]["cross"]
    weights = seen.weights(f"decoder.layers.{cross['layer']}.cross_attention", cross["head"], seen.row)
    return first(
        expected("head", values["head"], str(cross["head"])),
        expected("layer", values["layer"], str(cross["layer"])),
        differs(values["weight"], float(weights.max()), "its weight"),
    )


def units(*activations: str) -> Check:
    """Return a check of the number of units above 0 in the decoder's network, for models with these activations."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        name = f"decoder.layers.{seen.state['heads']['cross']['layer']}.feed_forward.activated"
        activated, kind = seen.trace[name][seen.row], seen.model.config.activation
        return first(
            expected("number of active units", values["active"], str(int((activated > 0).sum()))),
            expected("number of units", values["units"], str(len(activated))),
            "" if kind in activations else f"the activation is {kind}",
        )

    return check


def around_units(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the words that the model would write before and after the network, with their probabilities."""
    ends = {"before": "cross_attention.add", "after": "feed_forward.add"}
    return first(*(guess_at(seen, at, *values[end][1:-1].rsplit("” (", 1)) for end, at in ends.items()))


def mind(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the words that the model would write after each step of the decoder, without repetitions."""
    config = seen.model.config
    point = "normed" if config.norm == "post" else "added"
    kinds = ("self_attention", "cross_attention", "feed_forward")[-1 if config.decoder_layers > 3 else 0 :]
    places = [f"decoder.layers.{layer}.{kind}.{point}" for layer in range(config.decoder_layers) for kind in kinds]
    words = [seen.name(int(seen.lens(seen.trace[place][seen.row]).argmax()), "target") for place in places]
    path = [word for at, word in enumerate(words) if at == 0 or word != words[at - 1]]
    return expected("guesses", values["path"], " → ".join(f"“{word}”" for word in path))


# Choosing


def rival_of(seen: Seen) -> int:
    """Return the likeliest word except the written word."""
    log_probs = seen.log_probs.clone()
    log_probs[seen.output[seen.row]] = -torch.inf
    return seen.model.likeliest(log_probs)


def chances(seen: Seen, values: Mapping[str, str]) -> str:
    rival = rival_of(seen)
    return first(
        expected("number of words", values["all"], f"{seen.model.config.target_vocab_size:,}"),
        expected("word", values["target"], seen.target),
        differs(values["probability"], seen.probability(seen.output[seen.row]), "its probability"),
        *(
            (
                ""
                if abs(seen.probability(rival) - seen.probability(id_of(seen, values["rival"], rival))) < ROUNDING
                else f"the rival is {seen.name(rival, 'target')}",
                differs(values["rivalProbability"], seen.probability(rival), "the rival's probability"),
            )
            if "rival" in values
            else ()
        ),
    )


def id_of(seen: Seen, word: str, rival: int) -> int:
    """Return the id of the token with this name whose probability is nearest to the rival's."""
    ids = [id for id in range(len(seen.log_probs)) if seen.name(id, "target") == word]
    return min(ids or [seen.model.config.pad_id], key=lambda id: abs(float(seen.log_probs[id] - seen.log_probs[rival])))


def aim(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the training's aim, and that few words of this output have a much larger probability."""
    smoothing = 0.0 if seen.model.bundle.origin else seen.model.bundle.configuration.training.label_smoothing
    best = seen.model.log_probs(seen.source, seen.output, {}).exp().max(-1).values
    return first(
        differs(values["smoothing"], smoothing, "label smoothing"),
        differs(values["aim"], 1 - smoothing, "the aim"),
        "" if float((best > 1 - smoothing + SURER).double().mean()) < 0.25 else "many words are much surer",
    )


def warm(seen: Seen) -> Tensor:
    """Return the probabilities (V) at the temperature that the reader has set."""
    logits = seen.trace["logits"][seen.row]
    probabilities: Tensor = (logits.double() / seen.state["temperature"]).softmax(-1)
    return probabilities


def temperature(seen: Seen, values: Mapping[str, str]) -> str:
    id = seen.output[seen.row]
    return first(
        differs(values["temperature"], seen.state["temperature"], "the temperature"),
        expected("word", values["target"], seen.target),
        differs(values["usual"], seen.probability(id), "its usual probability"),
        differs(values["probability"], float(warm(seen)[id]), "its probability"),
    )


def search(seen: Seen, values: Mapping[str, str]) -> str:
    found = seen.model.search(seen.source, seen.prefix, seen.changes, **seen.search)
    return first(
        expected("beam size", values.get("beam", "1"), str(seen.search["beam_size"])),
        differs(values["logp"], found[0].log_prob, "log p"),
    )


def second(seen: Seen, values: Mapping[str, str]) -> str:
    found = seen.model.search(seen.source, seen.prefix, seen.changes, **seen.search)[1]
    return first(
        expected("second text", values["second"], shortened(seen, found)),
        differs(values["secondLogp"], found.log_prob, "its log p"),
    )


# Learning


def snapshot(seen: Seen, values: Mapping[str, str]) -> str:
    step = seen.changes.get("checkpoint")
    said = seen.words["training.step"].replace("{0}", str(step))
    return first(expected("step", values["step"], said), writes(lambda _: step is not None)(seen, values))


def loss(seen: Seen, values: Mapping[str, str]) -> str:
    """Check that the log has this loss at this step or shortly before: a page keeps only 200 losses."""
    lines = read_log(seen.model.bundle.folder / METRICS_FILE)
    kept = [line["step"] for line in lines if line.get("best") or line.get("kept")]
    step = seen.changes.get("checkpoint", kept[-1] if kept else math.inf)
    losses = [line["loss"] for line in lines if line["type"] == "step" and line["step"] <= step]
    latest = losses[-1 - sum(line["type"] == "step" for line in lines) // 200 :]
    return "" if any(not differs(values["loss"], one) for one in latest) else f"the latest losses are {latest}"


def no_snapshots(seen: Seen, _: Mapping[str, str]) -> str:
    return "" if len(seen.model.steps) == 0 else "the page has snapshots"


# Breaking it


def deciding(seen: Seen, values: Mapping[str, str]) -> str:
    without = opening(seen)["without"]
    return first(
        expected("number of heads", values["count"], str(sum(map(len, without.values())))),
        both(seen, {"0": values["target"], "1": values["rival"]}),
    )


def deciding_head(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the name of the head without which the margin falls most, and the ratio with it."""
    found = opening(seen)
    margins = {
        (name, head): one["margin"] for name, heads in found["without"].items() for head, one in enumerate(heads)
    }
    least = min(margins.values())
    said = next(
        (
            (name, head)
            for name, head in margins
            if (str(head), name.split(".")[2]) == (values["head"], values["layer"])
            and seen.words[WHERE[".".join(name.split(".")[::3])]] == values["where"]
        ),
        None,
    )
    log_probs = seen.model.log_probs(seen.source, found["ids"], {})[found["row"]]
    return first(
        ""
        if said and margins[said] < least + 1e-3
        else f"the word loses most without {min(margins, key=margins.__getitem__)}",
        both(seen, {"0": values["target"], "1": values["rival"]}),
        ratio(seen, values["usual"], log_probs),
    )


def ratio_of(text: str, margin: float, probability: float) -> str:
    """Return why the factor in a text, between the probabilities of a word and its rival, is wrong; "" if right."""
    if margin < 0:
        return differs(text, math.exp(margin), "the ratio")
    return differs_in_times(text, margin, probability, probability * math.exp(-margin))


def ratio(seen: Seen, text: str, log_probs: Tensor) -> str:
    """Check the ratio of the probabilities of the opening's two words, given a row of log probabilities."""
    found = opening(seen)
    word, rival = (float(log_probs[one]) for one in (found["ids"][found["row"]], found["rival"]))
    return ratio_of(text, word - rival, math.exp(word))


def ratios(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the ratio of the probabilities of the word and its rival, with the heads on and with the heads off."""
    found = opening(seen)
    row = found["row"]
    return first(
        both(seen, {"0": values["target"], "1": values["rival"]}),
        ratio(seen, values["odds"], seen.trace["log_probs"][row]),
        ratio(seen, values["usual"], seen.model.log_probs(seen.source, found["ids"], {})[row]),
        "" if seen.output[row] == found["ids"][row] else "the word changes",
    )


def off(stays: bool, many: bool) -> Check:
    """Return a check of the word at the opening's position while heads are off."""

    def check(seen: Seen, values: Mapping[str, str]) -> str:
        found, count = opening(seen), sum(map(len, seen.changes["ablated"].values()))
        usual, row = found["ids"][found["row"]], found["row"]
        now = seen.output[row] if row < len(seen.output) else None
        return first(
            expected("number of heads", values["count"], str(count)) if many else "",
            "" if many == (count > 1) else f"{count} heads are off",
            expected("word", values["target"], seen.name(usual, "target")),
            "" if stays == (now == usual) else "the word changes, or not",
            differs(values["probability"], float(seen.trace["log_probs"][row, usual].exp()), "its probability")
            if stays
            else expected(
                "new word",
                values["now"],
                seen.words["chapter.nothing"] if now is None else f"“{seen.name(now, 'target')}”",
            ),
        )

    return check


def has_mistake(seen: Seen) -> bool:
    return bool(seen.changes.get("mistakes"))


def mistake(seen: Seen, values: Mapping[str, str]) -> str:
    """Check the description of the mistake, the first tensor that differs, and log p of the unchanged output."""
    found = seen.model.search(seen.source, [], {}, **seen.search)[0]
    before, after = (seen.model.trace(seen.source, found.tokens, changes) for changes in ({}, seen.changes))
    now = sum(float(after["log_probs"][row, id]) for row, id in enumerate(found.tokens))
    planted = MISTAKES[seen.changes["mistakes"][0]]
    is_told = values["about"] in (planted.wrong, planted.zh["wrong"])
    return first(
        "" if is_told else f"it is not what {planted.id} does",
        expected("first tensor", values["first"], str(first_difference(before, after, 1e-6))),
        differs(values["from"], found.log_prob, "log p before"),
        differs(values["to"], now, "log p under the mistake"),
    )


WAVES = ("interleaved", "halves")
WITH_SMOOTHING = "chapter.chances.more"
CHECKS: dict[str, Check] = {
    "chapter.outline": outline,
    "chapter.outline.changed": outline,
    "chapter.embedding": embedding,
    "chapter.positions": positions(*WAVES),
    "chapter.positions.learned": positions("learned"),
    "chapter.positions.none": positions("none"),
    "chapter.positions.more": positions(*WAVES),
    "chapter.unplaced": writes(is_without_positions, stays=False),
    "chapter.unplaced.same": writes(is_without_positions, stays=True),
    "chapter.mixing": mixing,
    "chapter.mixing.more": mixing_head,
    "chapter.adding": adding,
    "chapter.mask": looks_back,
    "chapter.mask.first": looks_back,
    "chapter.mask.more": place_of_word,
    "chapter.reading.more": reading_head,
    "chapter.units": units("relu"),
    "chapter.units.smooth": units("gelu", "silu"),
    "chapter.units.more": around_units,
    "chapter.mind": mind,
    "chapter.mind.same": mind,
    "chapter.chances": chances,
    "chapter.chances.alone": chances,
    WITH_SMOOTHING: aim,
    "chapter.temperature": temperature,
    "chapter.search": search,
    "chapter.search.one": search,
    "chapter.search.more": second,
    "chapter.beginning": snapshot,
    "chapter.learning": snapshot,
    "chapter.trained": writes(lambda seen: seen.changes.get("checkpoint") is None),
    "chapter.beginning.more": loss,
    "chapter.learning.more": loss,
    "chapter.trained.more": loss,
    "chapter.snapshots": no_snapshots,
    "chapter.deciding": deciding,
    "chapter.deciding.more": deciding_head,
    "chapter.off.more": ratios,
    "chapter.off.turns.one": off(stays=False, many=False),
    "chapter.off.stays.one": off(stays=True, many=False),
    "chapter.off.turns": off(stays=False, many=True),
    "chapter.off.stays": off(stays=True, many=True),
    "chapter.mistake": writes(has_mistake, stays=False),
    "chapter.mistake.same": writes(has_mistake, stays=True),
    "chapter.mistake.more": mistake,
}
"""The checks of the templates about this model, by the template's key."""
ASKING = (
    *("outline", "first", "embedding", "positions", "unplaced", "mixing", "adding", "mask", "reading", "units"),
    *("mind", "chances", "temperature", "search", "beginning", "learning", "trained"),
    *("deciding", "off", "mistake", "yours"),
)
"""The acts whose title is a question or a statement about every such model."""
GENERAL: dict[str, Check] = {
    "chapter.unplaced.more": general(is_without_positions, "that positions are off"),
    **dict.fromkeys(
        (
            *("chapter.first", "chapter.yours", "chapter.embedding.more", "chapter.adding.more"),
            *("chapter.mind.more", "chapter.temperature.more", "chapter.snapshots.more", "chapter.6"),
            *(f"chapter.{act}.title" for act in ASKING),
            *(f"chapter.{act}.try" for act in ("embedding", "mixing", "mask", "reading", "chances", "deciding")),
        ),
        general(),
    ),
}
"""The checks of the templates that are true of every such model, or say what the reader can try."""
