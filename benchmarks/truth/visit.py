"""A visit to a model's page: its states, one after another, and the sentences that it shows there."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.truth import chapter
from benchmarks.truth.checks import problems
from benchmarks.truth.claims import Problem
from benchmarks.truth.seen import Model, Seen, family_of
from glassformer.translator import Translator
from glassformer.watch.explorer.module import strings
from glassformer.watch.explorer.payload import payload
from glassformer.watch.explorer.standalone import page_html

__all__ = ["Tally", "Visit", "visited"]

LOOKS = 4
"""Number of random selections of a sentence."""
DEEP = 10
"""One sentence of this number is also shown in the states that take seconds."""
WORTH = ("same", "falls", "rises", "off")
"""What a head is worth to a word, which the page measures after it has drawn the figure."""
KINDS = {
    "zoom": {
        "place": (
            *("zoom.place", "zoom.embedding.place", "stage.word.of", "stage.encoder", "stage.decoder"),
            *(
                "stage.box.decoder.linear",
                "stage.box.decoder.softmax",
                "zoom.add.place.",
                "zoom.add.final",
                "zoom.layer",
            ),
        ),
        "said": ("zoom.about.", "zoom.words.about.", "zoom.embedding.about.", "zoom.units.", "zoom.add."),
        "notes": ("zoom.resting", "numbers.byHand", "numbers.ablated", "stage.more.forced", "stage.more.beam"),
        "links": ("zoom.widest", "zoom.words.closest"),
        "paper": ("stage.paper",),
    },
    "why": {
        "title": ("why.title",),
        "said": ("why.leads", "why.trails", "why.given", "why.needs", "why.head", "why.reads", "why.reads.shared"),
        "row": ("why.row",),
        "entropy": ("why.entropy",),
        "direct": ("why.direct.about",),
    },
    "chapter": {
        "title": ("beam.scene.who", "beam.scene.why"),
        "lead": ("beam.scene.lead", "beam.scene.lead.pair"),
        "labels": ("beam.scene.read", "beam.scene.written"),
        "said": ("beam.scene.",),
        "chips": ("beam.scene.look",),
    },
    "held": {"kicker": ("stage.turned.kicker",), "said": ("stage.turned", "stage.turned.two")},
}
"""The texts of each area of the page, and the kinds of templates of which they are made."""
WORDS = ("decoder.linear", "decoder.softmax")
"""The boxes that show the words which compete."""
SUMMED = ("embedding", "positions", "input")
"""The points of an embedding with its positions."""
TURNED = r'"overrides":\{"dec.*rests'
"""What a state contains in which the chapter's beam has come to rest where the reader has turned it."""
POINTS = ("query", "key", "scores", "weights", "value", "heads", "joined", "output")

READ = """async ({ area, complete }) => {
  const { app } = glassformer;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (selector) => all(selector).map((one) => one.textContent.trim()).filter(Boolean);
  const stage = () => ({
    kicker: text(".gfs-said-box .gfs-kicker"), said: text(".gfs-said-box h2"),
    more: text(".gfs-said-box .gfs-more-text"), paper: text(".gfs-said-box .gfs-paper"),
  });
  const AREAS = {
    stage: () => ({
      ...stage(), guesses: all(".gfs-guess").map((one) => [one.dataset.guess, one.querySelector("title").textContent]),
    }),
    held: stage,
    zoom: () => ({
      place: text(".gf-zoom .gfz-place").slice(0, 1), said: text(".gf-zoom h2"), notes: text(".gf-zoom .gfz-note"),
      links: text(".gf-zoom .gfz-about .gfz-link").slice(0, -1), paper: text(".gf-zoom .gfz-place").slice(1),
    }),
    why: () => ({
      title: text(".gf-why h3"), said: text(".gf-why [role=status]"), row: text(".gf-why > .gf-note").slice(0, 1),
      entropy: text(".gf-why .gf-facts"), direct: text(".gf-why caption .gf-note").slice(0, 1),
      state: `${all(".gf-why table").length} tables, ${all(".gf-why progress").length} running`,
    }),
    chapter: () => ({
      title: text(".gf-ray h2"), lead: text(".gf-ray-lead"), labels: text(".gf-ray-label"), said: text(".gf-ray-said"),
      chips: text(".gf-ray-chip").flatMap((one) => one.split(" · ")),
      tug: all(".gf-ray-tug > span:has(data)").map((one) => [one.firstChild.textContent, one.lastChild.textContent]),
      state: document.querySelector(".gf-ray").ariaBusy === "false" ? "rests" : "works",
    }),
  };
  const seen = () => {
    const { sentence, changes, row, sourceWord, box, heads, zoom, selected, language, word, result } = app.state;
    const { ids } = result.current.hypothesis;
    const state = { sentence, changes, row, sourceWord, box, heads, zoom, selected, language, word, ids };
    return { ...state, address: location.hash, texts: AREAS[area]() };
  };
  const isComplete = (state) => !app.state.busy && new RegExp(complete).test(JSON.stringify(state));
  let [last, quiet] = ["", 0];
  for (const end = performance.now() + 30000; performance.now() < end; ) {
    await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done, 20));
    const [now, state] = [JSON.stringify(seen()), seen()];
    quiet = now === last && isComplete(state) ? quiet + 1 : 0;
    if (quiet > 0) return state;
    last = now;
  }
  throw new Error(`not complete: ${complete}: ${JSON.stringify(seen())}`);
}"""
"""Returns the state and the texts of an area, once they are complete and have come to rest."""


@dataclass
class Tally:
    """The claims that were checked, by template, and the false sentences."""

    claims: Counter[str] = field(default_factory=Counter)
    states: int = 0
    false: list[dict[str, str]] = field(default_factory=list)

    def add(self, seen: Seen, text: str, kinds: Sequence[str]) -> list[str]:
        """Check a text; return its templates."""
        claims, wrong = problems(seen, text, kinds)
        self.claims.update(key for key, _ in claims)
        for problem in wrong:
            self.blame(seen, problem)
        return [key for key, _ in claims]

    def blame(self, seen: Seen, problem: Problem) -> None:
        self.false.append({**problem._asdict(), "address": seen.state["address"]})


class Visit:
    """A tab that shows a model's page, and reads its sentences."""

    def __init__(self, tab: Any, model: Model, seed: int = 1) -> None:
        self.tab, self.model, self.tally = tab, model, Tally()
        self.chance = random.Random(seed)

    # The states of a sentence

    def sentence(self, text: str, *, deep: bool) -> None:
        """Visit the states of one sentence; with `deep` also those that take seconds."""
        self.call("open", text)
        self.show(row=None, sourceWord=None, zoom=None, box="decoder.cross_attention", language="en")
        self.stage()
        for _ in range(LOOKS):
            self.look()
            self.stage()
        for change in (self.forced, self.turned, self.off):
            change()
            self.stage()
            self.zoom()
            self.opened()
            self.layer()
            if deep:
                self.why()
            self.show(box=self.chance.choice(self.boxes), zoom=None)
            self.stage()
            self.call("reset")
        if deep:
            self.held()
            self.chapter()

    def look(self) -> None:
        """Choose a word, a box, heads and a language by chance; half the boxes are attentions."""
        box = self.chance.choice(self.attentions if self.chance.random() < 0.5 else self.boxes)
        word = self.chance.choice([None, self.chance.randrange(self.length("sourceIds"))])
        language = self.chance.choice(["en", "en", "en", "zh"])
        self.show(row=self.row(), sourceWord=word, box=box, heads=self.heads(), language=language)

    def forced(self) -> None:
        """Force one of the likeliest words at a place, and look at it."""
        seen = self.seen()
        row = max(0, min(self.row(), len(seen.output) - 2))  # an output needs room to end
        tokenizer = self.model.bundle.target_tokenizer
        rivals = seen.trace["log_probs"][row].topk(8).indices.tolist()
        self.chance.shuffle(rivals)
        for id in rivals:
            ids = [*seen.output[:row], id]
            text = tokenizer.decode(ids)
            if id > tokenizer.unk_id and tokenizer.encode(text) == ids:
                self.call("set", {"prefix": text})
                break
        self.show(row=row, sourceWord=None, box=self.chance.choice(["decoder.softmax", *self.attentions]))

    def turned(self) -> None:
        """Turn a row of cross-attention to a word or between two words, and look at it."""
        heads, row, source = self.heads(), self.row(), self.length("sourceIds")
        weights, at = [0.0] * source, self.chance.randrange(source - 1)
        weights[at] = self.chance.choice([1.0, 0.5, 0.3])
        weights[at + 1] = 1 - weights[at]
        name = f"decoder.layers.{heads['cross']['layer']}.cross_attention"
        self.call("set", {"overrides": {name: [[heads["cross"]["head"], row, weights]]}})
        self.show(row=row, sourceWord=None, box="decoder.cross_attention", heads=heads)

    def off(self) -> None:
        """Switch a head off, and look at it."""
        heads, box = self.heads(), self.chance.choice(self.attentions)
        stack, kind = box.split(".")
        layer, head = heads[family_of(box)]["layer"], heads[family_of(box)]["head"]
        self.call("set", {"ablated": {f"{stack}.layers.{layer}.{kind}": [head]}})
        self.show(row=self.row(), sourceWord=None, box=box, heads=heads)

    # What is read there

    def stage(self) -> None:
        """Check what the stage says about the lit box."""
        box, language = self.tab.evaluate("(({ box, language }) => [box, language])(glassformer.app.state)")
        texts = strings()[language]
        worth = [max(texts[f"stage.more.{key}"].replace("}", "{").split("{"), key=len) for key in WORTH]
        seen = self.seen("stage", "|".join(map(escaped, worth)) if box.endswith("attention") else "")
        said = self.check(seen, stage_kinds(box))
        for at, text in seen.state["texts"]["guesses"]:
            said += self.tally.add(replace(seen, at=at), text, ("stage.guess",))
        for missing in left_out(seen, said):
            self.tally.blame(seen, missing)
        self.searched(seen)

    def zoom(self) -> None:
        """Open an attention, and check what it says about its weight, and about one of its numbers."""
        stack, kind = self.chance.choice(self.attentions).split(".")
        heads = self.heads()
        stage = self.seen()
        if self.chance.random() < 0.5:  # what the state has changed is often lit
            heads = stage.state["heads"]
            if stage.state["box"] in self.attentions:
                stack, kind = stage.state["box"].split(".")
        box = f"{stack}.layers.{heads['encoder' if stack == 'encoder' else 'cross']['layer']}.{kind}"
        key = self.chance.choice([None, 0, 2])
        lit = {"row": stage.row, "sourceWord": stage.lit_source}  # as the page does when it opens a box
        self.show(zoom={"box": box, "key": key}, heads=heads, selected=None, **lit)
        seen = self.seen("zoom", "§3")
        self.check(seen, KINDS["zoom"])
        point = self.chance.choice(POINTS)
        shape = seen.trace[f"{box}.{point}"].shape
        at = self.chance.randrange(shape[-1])
        if point in ("scores", "weights"):
            self.show(zoom={"box": box, "key": at})
            seen = self.seen("zoom", "§3")
        row = int(seen.lit_weights.argmax()) if key is None else min(key, shape[-2] - 1)
        lead = {"joined": [seen.query], "output": [seen.query], "key": [seen.head, row], "value": [seen.head, row]}
        self.show(selected={"name": f"{box}.{point}", "index": [*lead.get(point, [seen.head, seen.query]), at]})
        self.check(self.seen("zoom", "§3"), KINDS["zoom"])

    def opened(self) -> None:
        """Open Linear, Softmax, an embedding or positions, and check what is said about a number."""
        stage = self.seen()
        kinds = ("encoder.embedding", "decoder.embedding", "encoder.positions", "decoder.positions")
        box = self.chance.choice([*WORDS, *(one for one in kinds if one in self.boxes)])
        lit = {"row": stage.row, "sourceWord": stage.lit_source}
        ids = [None, *stage.log_probs.topk(8).indices.tolist()]
        key = self.chance.choice(ids) if box in WORDS else None
        self.show(zoom={"box": box, "key": key}, selected=None, **lit)
        self.check(self.seen("zoom", "§3"), KINDS["zoom"])
        side, width = "source" if box.startswith("encoder") else "target", self.model.config.d_model
        point = "decoder.output" if box in WORDS else f"{side}.{self.chance.choice(SUMMED)}"
        row = stage.lit_source if side == "source" else stage.row
        self.show(selected={"name": point, "index": [row, self.chance.randrange(width)]})
        self.check(self.seen("zoom", "§3"), KINDS["zoom"])

    def layer(self) -> None:
        """Open a feed-forward network, a sum or a norm, and check what is said about its word."""
        stage = self.seen()
        box = self.chance.choice([one for one in self.boxes if one.endswith(("feed_forward", ".add", ".norm"))])
        stack, _, part = box.partition(".")
        layer = stage.state["heads"]["encoder" if stack == "encoder" else "cross"]["layer"]
        name = box if part == "norm" else f"{stack}.layers.{layer}.{part}"
        self.show(zoom={"box": name, "key": None}, selected=None, row=stage.row, sourceWord=stage.lit_source)
        self.check(self.seen("zoom", "§3"), KINDS["zoom"])

    def why(self) -> None:
        """Ask why a word was written, half the time the word of the state."""
        row = self.tab.evaluate("glassformer.app.state.row")
        word = row if self.chance.random() < 0.5 else self.row()
        self.show(zoom={"box": "decoder.softmax", "key": None}, panel="why", row=word, selected=None)
        self.check(self.seen("why", "3 tables, 0 running"), KINDS["why"])
        self.show(zoom=None, panel="numbers", row=row)

    def held(self) -> None:
        """Take hold of the lit row of cross-attention by keys, and check what is said while it is held."""
        self.show(box="decoder.cross_attention", row=self.row(), sourceWord=None, heads=self.heads(), language="en")
        seen = self.seen()
        knot = self.tab.locator(".gfs-knot")
        knot.focus()
        at = min(seen.lit_source + 1.0, len(seen.source) - 1.0)
        begun = escaped(strings()["en"]["stage.turned.kicker"].split("{")[0])
        for key, moved, piece in (("ArrowDown", 0.0, ", it writes"), ("Shift+ArrowUp", -0.1, ") and ")):
            knot.press(key)
            state = self.seen("held", f"{begun}.*{escaped(piece)}").state
            self.check(self.under(seen, state, seen.head, seen.row, at + moved), KINDS["held"])
        knot.press("Escape")

    def chapter(self) -> None:
        """Check the first chapter: at rest, while the beam is held, and where it comes to rest."""
        self.show(chapter=1, row=None, language="en")
        seen = self.seen("chapter", "rests")
        row = chapter.opening(seen)["row"]
        self.scene(Seen(self.model, {**seen.state, "row": row}))
        dot = self.tab.locator(".gf-ray-dot")
        dot.focus()
        for key in ("ArrowLeft", "Shift+ArrowRight", "Enter"):
            dot.press(key)
        self.scene(Seen(self.model, {**self.seen("chapter", TURNED).state, "row": row}))
        self.call("reset")
        turn = chapter.opening(seen)["turn"]
        if turn:
            self.tab.locator(f"[data-place='{turn['to']}']").click(position={"x": 3, "y": 3})
            self.scene(Seen(self.model, {**self.seen("chapter", TURNED).state, "row": row}))
            self.call("reset")
        self.show(chapter=0)

    def scene(self, seen: Seen) -> None:
        self.check(seen, KINDS["chapter"])
        self.tally.claims["beam.scene.tug"] += 1
        sides = dict(seen.state["texts"]["tug"])
        if wrong := chapter.tug(seen, sides):
            self.tally.blame(seen, Problem("beam.scene.tug", str(sides), wrong))

    def check(self, seen: Seen, kinds: Mapping[str, Sequence[str]]) -> list[str]:
        """Check the texts of an area; return their templates."""
        said = []
        for area, some in kinds.items():
            for text in seen.state["texts"][area]:
                for part in text.split(" · ") if area in ("kicker", "place") else [text]:
                    said += self.tally.add(seen, part, some)
        return said

    def searched(self, seen: Seen) -> None:
        """Check that the page shows what Python's search finds."""
        found = self.model.score(seen.source, seen.prefix, seen.changes)
        self.tally.claims["output"] += 1
        if list(found["ids"]) != seen.output:
            self.tally.blame(seen, Problem("output", str(seen.output), f"the search finds {found['ids']}"))

    # The page

    def under(self, seen: Seen, state: Mapping[str, Any], head: int, row: int, at: float) -> Seen:
        """Return what is seen while a row of the lit cross-attention is held at a place between two words."""
        low, share = int(at), round(at - int(at), 2)
        weights = [0.0] * len(seen.source)
        weights[low] = round(1 - share, 2)
        if share:
            weights[low + 1] = share
        changes = {**state["changes"], "overrides": {seen.box: [[head, row, weights]]}}
        return Seen(self.model, {**state, "changes": changes, "row": row})

    def call(self, name: str, *values: Any) -> None:
        self.tab.evaluate("([name, values]) => glassformer.app[name](...values)", [name, values])

    def show(self, **looks: Any) -> None:
        self.call("show", looks)

    def seen(self, area: str = "stage", complete: str = "") -> Seen:
        self.tally.states += 1
        return Seen(self.model, self.tab.evaluate(READ, {"area": area, "complete": complete}))

    def length(self, ids: str) -> int:
        found: int = self.tab.evaluate(f"glassformer.app.result.current.{ids}.length")
        return found

    def row(self) -> int:
        return self.chance.randrange(self.length("hypothesis.ids"))

    @property
    def boxes(self) -> list[str]:
        found: list[str] = self.tab.evaluate("[...document.querySelectorAll('.gfs-box')].map((one) => one.dataset.box)")
        return found

    @property
    def attentions(self) -> list[str]:
        return [box for box in self.boxes if box.endswith("attention")]

    def heads(self) -> dict[str, dict[str, int]]:
        """Return a random head of each family; both of the decoder's are in the same layer."""
        config, pick = self.model.config, self.chance.randrange
        decoder = pick(config.decoder_layers)
        layers = {"encoder": pick(config.encoder_layers), "cross": decoder, "decoder": decoder}
        return {family: {"layer": layer, "head": pick(config.heads)} for family, layer in layers.items()}


def stage_kinds(box: str) -> dict[str, tuple[str, ...]]:
    """Return the kinds of templates of which the stage's texts about a box are made."""
    _, inner, *beside = box.split(".")
    own: tuple[str, ...] = (f"stage.said.{box}",)
    if beside == ["norm"]:
        own = ("stage.said.feed_forward.norm" if inner == "feed_forward" else "stage.said.attention.norm",)
    elif inner == "positions":
        own = (*own, "stage.said.positions.")
    elif inner.endswith("attention") and not beside:
        looks = ("shared", "tied", "self", "self.shared")
        own = (*own, *(f"stage.said.{box}.{look}" for look in looks), "stage.said.nothing")
    elif inner == "linear":
        own = (*own, f"stage.said.{box}.unseen")
    kinds = {"kicker": ("stage.word.of", "stage.changed"), "more": ("stage.more.",), "paper": ("stage.paper",)}
    return {"said": own, **kinds}


def escaped(text: str) -> str:
    """Return a text as a regular expression of JavaScript."""
    return "".join(f"\\{one}" if one in r"\^$.|?*+()[]{}/" else one for one in text.strip())


def left_out(seen: Seen, said: Sequence[str]) -> Iterator[Problem]:
    """Yield what the stage must say, but does not: that a word is forced, unlikely, or changed."""
    is_best = seen.best == seen.output[seen.row]
    must = {
        "stage.more.forced": seen.is_forced and not is_best,
        "stage.more.forced.too": seen.is_forced and is_best,
        "stage.more.beam": not seen.is_forced and not is_best,
        "stage.changed": seen.is_changed,
    }
    for key, is_so in must.items():
        if is_so and key not in said:
            yield Problem(key, "", "the page does not say so")


def visited(tab: Any, translator: Translator, page: Path, sentences: Sequence[str], deep: int = DEEP) -> Tally:
    """Return the claims that a model's page makes of these sentences; the page is written to a file.

    One sentence of `deep` is also shown in the states that take seconds.
    """
    page.write_bytes(page_html(payload(translator, sentences[0])).encode("utf-8", "replace"))
    tab.set_viewport_size({"width": 1440, "height": 900})
    tab.goto(page.resolve().as_uri())
    tab.evaluate("() => glassformer.ready.then(() => null)")
    visit = Visit(tab, Model(translator))
    for at, sentence in enumerate(sentences):
        visit.sentence(sentence, deep=at % deep == 0)
    return visit.tally
