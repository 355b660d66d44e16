"""A visit to a model's page: bring the page into its states, and read the sentences in each state."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.truth import chapter
from benchmarks.truth.checks import problems
from benchmarks.truth.claims import Problem, expected, read
from benchmarks.truth.seen import Model, Seen, family_of
from glassformer.translator import Translator
from glassformer.watch.explorer.payload import payload
from glassformer.watch.explorer.sentence import source_ids
from glassformer.watch.explorer.standalone import page_html
from glassformer.watch.inspection import MISTAKES

__all__ = ["KINDS", "Tally", "Visit", "opened"]

LOOKS = 2
"""Number of random selections per sentence."""
DEEP = 10
"""Every n-th sentence is also shown in the states that take seconds; this is n."""
ACTS = range(2, 8)
"""The chapters whose acts replace the figure's own sentence; each test sentence is shown in one of these chapters."""
SNAPSHOTS = 3
"""Number of training snapshots in the page."""
KINDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "zoom": {
        "place": (
            *("zoom.place", "zoom.embedding.place", "stage.word.of", "stage.encoder", "stage.decoder"),
            *(
                "stage.box.decoder.linear",
                "stage.box.decoder.softmax",
                "zoom.add.place.",
                "zoom.add.final",
                "zoom.layer",
                *("family.encoder", "family.cross", "family.decoder"),
            ),
        ),
        "said": (
            *("zoom.about.", "zoom.words.about.", "zoom.embedding.about.", "zoom.units.", "zoom.add."),
            *("zoom.rollout", "zoom.guess."),
        ),
        "notes": (
            *("zoom.rollout.about", "zoom.guesses.about"),
            "zoom.mask.",
            "zoom.resting",
            "numbers.byHand",
            "numbers.ablated",
            "stage.more.forced",
            "stage.more.beam",
        ),
        "links": ("zoom.widest", "zoom.words.closest"),
        "paper": ("stage.paper",),
    },
    "why": {
        "title": ("why.title",),
        "said": (
            "why.leads",
            "why.trails",
            "why.given",
            "why.needs",
            "why.needs.next",
            "why.head",
            "why.reads",
            "why.reads.shared",
            "why.reads.hand",
        ),
        "row": ("why.row",),
        "entropy": ("why.entropy",),
        "direct": ("why.direct.about",),
    },
    "chapter": {
        "title": ("look.who", "look.is", "look.why", "look.other"),
        "lead": ("look.",),
        "labels": ("look.read", "look.written"),
        "said": ("look.",),
        "chips": ("look.look", "look.pale", "look.hint"),
        "others": ("look.others",),
    },
    "act": {"title": ("chapter.",), "said": ("chapter.",), "more": ("chapter.",)},
    "held": {
        "kicker": ("stage.turned.kicker",),
        "said": ("stage.turned", "stage.turned.two", "stage.turned.self", "stage.turned.self.two"),
    },
}
"""For each area of the page, its texts, and the kinds of templates that the texts are made of."""
WORDS = ("decoder.linear", "decoder.softmax")
"""The boxes that show the competing words."""
SUMMED = ("embedding", "positions", "input")
"""The points of an embedding with its positions."""
TURNED = r'"overrides":\{"dec.*rests'
"""A pattern in the state after the reader has turned the chapter's beam and the beam has come to rest."""
POINTS = ("query", "key", "scores", "weights", "value", "heads", "joined", "output")

READ = """async ({ turn, looks, area, complete }) => {
  const { app } = glassformer;
  if (looks.chapter === 0) app.show({ chapter: 0, act: 0 }); // an act takes its own changes back
  if (turn) await app.turnTo(turn);
  app.show(looks);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (selector) => all(selector).map((one) => one.textContent.trim()).filter(Boolean);
  const stage = () => ({
    kicker: text(".gfs-said-box .gfs-kicker"), said: text(".gfs-said-box h2"),
    more: text(".gfs-said-box .gfs-more-text"), paper: text(".gfs-said-box .gfs-paper"),
  });
  const AREAS = {
    stage: () => ({
      ...stage(), state: document.querySelector(".gfs-said-box > [aria-busy=true]") ? "measures" : "told",
      guesses: all(".gfs-guess").map((one) => [one.dataset.guess, one.querySelector("title").textContent]),
    }),
    held: stage,
    act: () => ({
      ...stage(), title: text(".gfs-said-box h2"), said: text(".gfs-conclusion"),
      state: text(".gfs-conclusion").length ? "told" : "waits",
    }),
    zoom: () => ({
      place: text(".gf-zoom .gfz-place").slice(0, 1), said: text(".gf-zoom h2"), notes: text(".gf-zoom .gfz-note"),
      links: text(".gf-zoom .gfz-about > .gfz-link"), paper: text(".gf-zoom .gfz-place").slice(1),
    }),
    why: () => ({
      title: text(".gf-why h3"), said: text(".gf-why [role=status]"), row: text(".gf-why > .gf-note").slice(0, 1),
      entropy: text(".gf-why .gf-facts"), direct: text(".gf-why caption .gf-note").slice(0, 1),
      state: `${all(".gf-why table").length} tables, ${all(".gf-why progress").length} running`,
    }),
    chapter: () => ({
      title: text(".gf-ray h2"), lead: text(".gf-ray-lead"), labels: text(".gf-ray-label"), said: text(".gf-ray-said"),
      chips: text(".gf-ray-chip").flatMap((one) => one.split(" · ")), others: text(".gf-ray-tug small"),
      tug: all(".gf-ray-tug > span:has(data)").map((one) => [one.firstChild.textContent, one.lastChild.textContent]),
      state: document.querySelector(".gf-ray").ariaBusy === "false" ? "rests" : "works",
    }),
  };
  const seen = () => {
    const { result, lit, compared, ...state } = app.state;
    const { ids } = result.current.hypothesis;
    const measured = state.sentence in app.payload.openings;
    const boxes = all(".gfs-box").map((one) => one.dataset.box);
    return { ...state, ids, measured, boxes, address: location.hash, texts: AREAS[area]() };
  };
  const isComplete = (state) => !app.state.busy && new RegExp(complete).test(JSON.stringify(state));
  let last = "";
  for (const end = performance.now() + 300000; performance.now() < end; ) {
    await scheduler.postTask(() => {}, { priority: "background" }); // after what the page has begun
    const state = seen();
    const now = JSON.stringify(state);
    if (now === last && isComplete(state)) return state;
    last = now;
  }
  throw new Error(`not complete: ${complete}: ${JSON.stringify(seen())}`);
}"""
"""A script that changes the sentence, the model and the highlights, waits until the page is complete and at rest, and
returns the state and an area's texts. The page computes and draws only once for all changes."""


UNPAINTED = """() => {
  const one = document.createElement("canvas").getContext("2d");
  HTMLCanvasElement.prototype.getContext = () => one;
  HTMLCanvasElement.prototype.toDataURL = () => "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
}"""
"""A script that keeps the page from painting the pictures of numbers, because only texts are read."""


@dataclass
class Tally:
    """The claims that were checked, by template, and the false sentences."""

    claims: Counter[str] = field(default_factory=Counter)
    states: int = 0
    sentences: int = 0
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
    """A browser tab with a model's page, and methods that read the page's sentences."""

    def __init__(self, tab: Any, model: Model) -> None:
        self.tab, self.model, self.tally = tab, model, Tally()
        self.chance = random.Random(1)
        self.text, self.changes = "", dict[str, Any]()
        """The sentence, and the changes of the model."""
        self.is_turned, self.looks = False, dict[str, Any]()
        """Changes that the page does not show yet: whether the sentence or a change is new, and the new highlights."""
        self.boxes_of: dict[bool, list[str]] = {}
        """The boxes of the figure, without and with the mistake that moves the norms."""

    # The states of a sentence

    def sentences(self, some: Sequence[str], deep: int = DEEP, seed: int = 1) -> None:
        """Visit the states of some sentences; one of `deep` is also shown in the states that take seconds.

        For these sentences, the page itself measures the importance of each head; for the others, Python has done so.
        """
        self.chance = random.Random(seed)
        known = {one: self.model.opening(one) for at, one in enumerate(some) if at % deep}
        self.tab.evaluate("(known) => void Object.assign(glassformer.app.payload.openings, known)", known)
        for at, one in enumerate(some):
            self.sentence(one, at + seed, deep=at % deep == 0)

    def sentence(self, text: str, at: int, *, deep: bool) -> None:
        """Visit the states of the sentence with number `at`; with `deep`, also the states that take seconds."""
        self.tally.sentences += 1
        self.open(text)
        self.show(row=None, sourceWord=None, zoom=None, box="decoder.cross_attention", language="en")
        self.stage()
        for _ in range(LOOKS):
            self.look()
            self.stage()
        changes, views = [self.forced, self.turned, self.off], [self.zoom, self.opened, self.layer]
        self.chance.shuffle(views)
        for change, view in zip(changes, views, strict=True):
            change()
            self.stage()
            view()
            if change == self.turned:
                self.segment(self.chance.choice([*self.attentions, *self.sums]))
            if deep:
                self.why()
            self.show(box=self.chance.choice(self.boxes), zoom=None)
            self.stage()
            self.reset()
        self.replaced(at)
        self.chapters(ACTS[at % len(ACTS)])
        if deep:
            for box in ("decoder.cross_attention", "decoder.self_attention", "encoder.self_attention"):
                self.held(box)
            self.chapter()

    def replaced(self, at: int) -> None:
        """Plant a mistake, then take the weights of a snapshot; check a word in each state."""
        mistakes = [one.id for one in MISTAKES.values() if one.first(self.model.config)]
        changes: list[dict[str, Any]] = [{"mistakes": [mistakes[at % len(mistakes)]]}]
        changes += [{"checkpoint": step} for step in self.model.steps[at % max(1, len(self.model.steps)) :][:1]]
        for change in changes:
            self.set(**change)
            self.look()
            self.stage()
            self.segment(self.chance.choice([*self.attentions, *self.sums]))
            self.reset()

    def look(self) -> None:
        """Choose a random word, box, heads and language; half the boxes are attentions."""
        box = self.chance.choice(self.attentions if self.chance.random() < 0.5 else self.boxes)
        word = self.chance.choice([None, self.chance.randrange(len(self.source))])
        language = self.chance.choice(["en", "en", "en", "zh"])
        self.show(row=self.row(), sourceWord=word, box=box, heads=self.heads(), language=language)

    def forced(self) -> None:
        """Force one of the likeliest words at a random position, and check this word."""
        output = self.output()
        row = max(0, min(self.row(), len(output) - 2))  # leaves room for the output to end
        tokenizer = self.model.bundle.target_tokenizer
        rivals = self.model.log_probs(self.source, output, self.changes)[row].topk(8).indices.tolist()
        self.chance.shuffle(rivals)
        for id in rivals:
            ids = [*output[:row], id]
            text = tokenizer.decode(ids)
            if id > tokenizer.unk_id and tokenizer.encode(text) == ids:
                self.set(prefix=text)
                break
        self.show(row=row, sourceWord=None, box=self.chance.choice(["decoder.softmax", *self.attentions]))

    def turned(self) -> None:
        """Turn a row of attention, often of cross-attention, to a word or between two words, and check this row."""
        box = self.chance.choice(["decoder.cross_attention", *self.attentions])
        stack, kind = box.split(".")
        family, heads, row = family_of(box), self.heads(), self.row()
        source, target = len(self.source), len(self.output())
        query = self.chance.randrange(source) if stack == "encoder" else row
        weights = [0.0] * (target if family == "decoder" else source)
        last = query if family == "decoder" else source - 1  # the mask hides later words
        at = self.chance.randrange(max(1, last))
        weights[at] = self.chance.choice([1.0, 0.5, 0.3]) if last else 1.0
        if last:
            weights[at + 1] = 1 - weights[at]
        name = f"{stack}.layers.{heads[family]['layer']}.{kind}"
        self.set(overrides={name: [[heads[family]["head"], query, weights]]})
        self.show(row=row, sourceWord=query if stack == "encoder" else None, box=box, heads=heads)

    def off(self) -> None:
        """Switch a head off, and check this head."""
        heads, box = self.heads(), self.chance.choice(self.attentions)
        stack, kind = box.split(".")
        layer, head = heads[family_of(box)]["layer"], heads[family_of(box)]["head"]
        self.set(ablated={f"{stack}.layers.{layer}.{kind}": [head]})
        self.show(row=self.row(), sourceWord=None, box=box, heads=heads)

    # The sentences of each area

    def stage(self) -> None:
        """Check the stage's sentences about the lit box."""
        self.told = seen = self.seen("stage", '"told"')
        box = seen.state["box"]
        said = self.check(seen, stage_kinds(box))
        for at, text in seen.state["texts"]["guesses"]:
            said += self.tally.add(replace(seen, at=at), text, ("stage.guess",))
        for missing in left_out(seen, said):
            self.tally.blame(seen, missing)
        self.searched(seen)

    def zoom(self) -> None:
        """Open an attention, and check the sentences about its weight and about one of its numbers."""
        stack, kind = self.chance.choice(self.attentions).split(".")
        heads, stage = self.heads(), self.told
        if self.chance.random() < 0.5:  # the page often lights what has been changed
            heads = stage.state["heads"]
            if stage.state["box"] in self.attentions:
                stack, kind = stage.state["box"].split(".")
        box = f"{stack}.layers.{heads['encoder' if stack == 'encoder' else 'cross']['layer']}.{kind}"
        key = self.chance.choice([None, 0, 2])
        lit = {"row": stage.row, "sourceWord": stage.lit_source}  # the page sets these when it opens a box
        self.show(zoom={"box": box, "key": key}, heads=heads, selected=None, **lit)
        seen = self.seen("zoom", "§3")
        self.check(seen, KINDS["zoom"])
        self.show(zoom={"box": box, "key": key, "mask": True})
        self.check(self.seen("zoom", "§3"), KINDS["zoom"])
        self.show(zoom={"box": box, "key": key})
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
        """Open Linear, Softmax, an embedding or positions, and check the sentences about a number."""
        stage = self.told
        kinds = ("encoder.embedding", "decoder.embedding", "encoder.positions", "decoder.positions")
        box = self.chance.choice([*WORDS, *(one for one in kinds if one in self.boxes)])
        lit = {"row": stage.row, "sourceWord": stage.lit_source}
        ids = [None, *stage.log_probs.topk(8).indices.tolist()]
        key = self.chance.choice(ids) if box in WORDS else None
        for temperature in (1.85, 1) if box == "decoder.softmax" else (1,):
            self.show(zoom={"box": box, "key": key}, selected=None, temperature=temperature, **lit)
            self.check(self.seen("zoom", "§3"), KINDS["zoom"])
        side, width = "source" if box.startswith("encoder") else "target", self.model.config.d_model
        point = "decoder.output" if box in WORDS else f"{side}.{self.chance.choice(SUMMED)}"
        row = stage.lit_source if side == "source" else stage.row
        self.show(selected={"name": point, "index": [row, self.chance.randrange(width)]})
        self.check(self.seen("zoom", "§3"), KINDS["zoom"])

    def layer(self) -> None:
        """Open a feed-forward network, a sum or a norm, and check the sentences about its word."""
        stage = self.told
        box = self.chance.choice([one for one in self.boxes if one.endswith(("feed_forward", ".add", ".norm"))])
        stack, _, part = box.partition(".")
        layer = stage.state["heads"]["encoder" if stack == "encoder" else "cross"]["layer"]
        name = box if part == "norm" else f"{stack}.layers.{layer}.{part}"
        self.show(zoom={"box": name, "key": None}, selected=None, row=stage.row, sourceWord=stage.lit_source)
        seen = self.seen("zoom", "§3")
        self.check(seen, KINDS["zoom"])
        self.column(name, seen)

    def column(self, name: str, seen: Seen) -> None:
        """Choose a number of an opened network, sum or norm, and check the sentences about this number."""
        pick = self.chance.randrange
        width, hidden = self.model.config.d_model, self.model.config.d_ff
        if not name.endswith("feed_forward"):
            self.show(zoom={"box": name, "key": pick(width)})
        else:
            point = self.chance.choice(["read", "hidden", "activated", "output"])
            at = pick(width if point in ("read", "output") else hidden)
            read = "normed" if seen.norm == "pre" else "input"
            number = {"name": f"{name}.{read if point == 'read' else point}", "index": [seen.query, at]}
            self.show(zoom={"box": name, "key": at if point in ("hidden", "activated") else None}, selected=number)
        self.check(self.seen("zoom", "§3"), KINDS["zoom"])

    def why(self) -> None:
        """Open the panel "Why?" for a word; half the time, for the word of the state."""
        row = self.told.state["row"]
        word = row if self.chance.random() < 0.5 else self.row()
        self.show(zoom={"box": "decoder.softmax", "key": None}, panel="why", row=word, selected=None)
        self.check(self.seen("why", "3 tables, 0 running"), KINDS["why"])
        self.show(zoom=None, panel="calculation", row=row)

    def segment(self, box: str) -> None:
        """Check the sentences of a segment: the words that an attention draws on, or the guess after a sum."""
        stage, (stack, _, part) = self.told, box.partition(".")
        layer = stage.state["heads"]["encoder" if stack == "encoder" else "cross"]["layer"]
        zoom = {"box": f"{stack}.layers.{layer}.{part}", "key": None}
        panel = "guesses" if part.endswith(".add") else "rollout"
        self.show(zoom=zoom, panel=panel, selected=None, row=stage.row, sourceWord=stage.lit_source)
        self.check(self.seen("zoom", escaped(stage.words[f"zoom.{panel}.about"][:10])), KINDS["zoom"])
        self.show(zoom=None, panel="calculation")

    def held(self, box: str) -> None:
        """Take hold of a lit row of attention with the keyboard, and check the sentences while it is held."""
        self.show(box=box, row=self.row(), sourceWord=None, heads=self.heads(), language="en")
        seen = self.seen("stage", '"told"')
        last = seen.query if seen.family == "decoder" else len(seen.keys) - 1  # the mask hides later words
        if last == 0:
            return  # the row can only attend to itself
        handle, at = self.tab.locator(f".gfs-handle[data-family={seen.family}]"), int(seen.lit_weights.argmax())
        handle.focus()
        # At the last word, the key that moves forward has no effect.
        step, onwards, back = (-1.0, "ArrowUp", "ArrowDown") if at == last else (1.0, "ArrowDown", "ArrowUp")
        begun = escaped(seen.words["stage.turned.kicker"].split("{")[0])
        writes = ", it writes" if seen.family == "cross" else ", the model writes"
        for key, moved, piece in ((onwards, step, writes), (f"Shift+{back}", 0.9 * step, ") and ")):
            handle.press(key)
            state = self.seen("held", f"{begun}.*{escaped(piece)}").state
            self.check(self.under(seen, state, at + moved), KINDS["held"])
        handle.press("Escape")

    def chapters(self, number: int) -> None:
        """Go through the acts of a chapter with the arrow key, at a random word, and check each act's sentences."""
        self.look()
        if self.chance.random() < 0.3:
            self.turned()
        self.show(chapter=number, act=0)
        place, before = [number, 0], [0, 0]
        while place[0] == number and place != before:  # after the last act, nothing changes
            self.tried(number, *self.act(number))
            self.tab.keyboard.press("ArrowRight")
            place, before = self.tab.evaluate("(({ chapter, act }) => [chapter, act])(glassformer.app.state)"), place
        self.show(chapter=0, act=0)
        self.reset()

    def act(self, number: int, complete: str = "") -> tuple[Seen, list[str]]:
        """Check the sentences of a chapter's act; return the state and the templates of the sentences."""
        seen = self.seen("act", rf'"kicker":\["{number} · .*{complete}.*told')
        title = f"{number} · {seen.words[f'chapter.{number}']}"
        if wrong := expected("title", seen.state["texts"]["kicker"][0], title):
            self.tally.blame(seen, Problem("chapter", title, wrong))
        [said] = seen.state["texts"]["said"]
        boxes = [*self.attentions, "encoder.positions"]
        own = next((box for box in boxes if read(said, seen.state["language"], stage_kinds(box)["said"])), None)
        if own is None:
            return seen, self.check(seen, KINDS["act"])
        lit = replace(seen, state={**seen.state, "box": own})  # the act shows the stage's own sentence about its box
        return seen, self.check(lit, {**KINDS["act"], "said": stage_kinds(own)["said"]})

    def tried(self, number: int, seen: Seen, said: Sequence[str]) -> None:
        """Use the controls that the reader has in an act, and check the sentences after each change."""
        act, buttons = said[0] if said else "", self.tab.locator(".gfs-act-buttons")
        if act.startswith("chapter.temperature"):
            self.show(temperature=self.chance.choice([0.5, 1.7, 4.0]))
            self.act(number)
        elif act.startswith("chapter.mistake"):
            ids = buttons.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
            self.call("set", {"mistakes": [self.chance.choice(ids)]})
            self.act(number)
        elif act.startswith("chapter.off"):
            more = buttons.locator(".gfs-dark", has_text=seen.words["chapter.off.more.next"])
            if more.count():
                more.click()
                begun = re.split("[,，]", seen.words["chapter.off.turns"])[0]
                self.act(number, escaped(begun.replace("{count}", "2")))
        elif act == "chapter.search":
            self.call("searchWith", {"beamSize": 1})
            self.act(number)
            self.call("searchWith", {"beamSize": self.model.bundle.configuration.decoding.beam_size})

    def chapter(self) -> None:
        """Check the first chapter: at rest, while the beam is held, and after the beam has come to rest elsewhere."""
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
            self.show(act=1)
            self.act(1)
            self.call("reset")
        for number in (1, 2):
            self.show(act=number)
            self.act(1)
        self.show(chapter=0, act=0)

    def scene(self, seen: Seen) -> None:
        self.check(seen, KINDS["chapter"])
        self.tally.claims["look.tug"] += 1
        sides = dict(seen.state["texts"]["tug"])
        if wrong := chapter.tug(seen, sides):
            self.tally.blame(seen, Problem("look.tug", str(sides), wrong))

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
        found = self.model.search(seen.source, seen.prefix, seen.changes, **seen.search)[0]
        self.tally.claims["output"] += 1
        if list(found.tokens) != seen.output:
            self.tally.blame(seen, Problem("output", str(seen.output), f"the search finds {found.tokens}"))

    # The page

    def under(self, seen: Seen, state: Mapping[str, Any], at: float) -> Seen:
        """Return the state in which the reader holds the lit row at a place between two words."""
        low, share = int(at), round(at - int(at), 2)
        weights = [0.0] * len(seen.keys)
        weights[low] = round(1 - share, 2)
        if share:
            weights[low + 1] = share
        changes = {**state["changes"], "overrides": {seen.box: [[seen.head, seen.query, weights]]}}
        return Seen(self.model, {**state, "changes": changes, "row": seen.row, "sourceWord": seen.lit_source})

    def call(self, name: str, *values: Any) -> None:
        """Call a method of the page immediately."""
        self.tab.evaluate("([name, values]) => glassformer.app[name](...values)", [name, values])

    def open(self, text: str) -> None:
        """Make the next reading show a sentence without changes."""
        self.text = text
        self.reset()

    def set(self, **changes: Any) -> None:
        """Make the next reading show further changes."""
        self.changes, self.is_turned = {**self.changes, **changes}, True

    def reset(self) -> None:
        """Make the next reading show no changes."""
        self.changes, self.is_turned = {}, True

    def show(self, **looks: Any) -> None:
        """Make the next reading show the reader's choices."""
        self.looks |= looks

    def seen(self, area: str = "stage", complete: str = "") -> Seen:
        """Read an area of the page; return the state."""
        self.tally.states += 1
        turn = {"sentence": self.text, "changes": self.changes} if self.is_turned else None
        asked = {"turn": turn, "looks": self.looks, "area": area, "complete": complete}
        self.is_turned, self.looks = False, {}
        seen = Seen(self.model, self.tab.evaluate(READ, asked))
        if problem := seen.state["problem"]:
            self.tally.blame(seen, Problem("page.problem", problem, "the page shows an error"))
        return seen

    @property
    def source(self) -> list[int]:
        return source_ids(self.model.translator, self.text)

    def output(self) -> list[int]:
        """Return the output of the search under the present changes."""
        decoding, prefix = self.model.bundle.configuration.decoding, self.changes.get("prefix", "")
        ids = self.model.bundle.target_tokenizer.encode(prefix) if prefix else []
        rest = {name: value for name, value in self.changes.items() if name != "prefix"}
        found = self.model.search(
            self.source, ids, rest, beam_size=decoding.beam_size, length_penalty=decoding.length_penalty
        )
        return list(found[0].tokens)

    def row(self) -> int:
        return self.chance.randrange(len(self.output()))

    @property
    def boxes(self) -> list[str]:
        """The boxes of the figure under the present changes."""
        moved = "norm_order" in self.changes.get("mistakes", [])
        if moved not in self.boxes_of:
            self.boxes_of[moved] = self.seen("stage", '"told"').state["boxes"]
        return self.boxes_of[moved]

    @property
    def attentions(self) -> list[str]:
        return [box for box in self.boxes if box.endswith("attention")]

    @property
    def sums(self) -> list[str]:
        return [box for box in self.boxes if box.endswith(".add")]

    def heads(self) -> dict[str, dict[str, int]]:
        """Return a random head of each family; the decoder's two heads are in the same layer."""
        config, pick = self.model.config, self.chance.randrange
        decoder = pick(config.decoder_layers)
        layers = {"encoder": pick(config.encoder_layers), "cross": decoder, "decoder": decoder}
        return {family: {"layer": layer, "head": pick(config.heads)} for family, layer in layers.items()}


def stage_kinds(box: str) -> dict[str, tuple[str, ...]]:
    """Return the kinds of templates that the stage's texts about a box are made of."""
    _, inner, *beside = box.split(".")
    own: tuple[str, ...] = (f"stage.said.{box}",)
    if beside == ["norm"]:
        own = ("stage.said.feed_forward.norm" if inner == "feed_forward" else "stage.said.attention.norm",)
    elif inner == "positions":
        own = (*own, "stage.said.positions.")
    elif inner.endswith("attention") and not beside:
        looks = ("shared", "tied", "self", "self.shared")
        own = (*own, *(f"stage.said.{box}.{look}" for look in looks), "stage.said.nothing", "stage.said.hand")
    elif inner == "linear":
        own = (*own, f"stage.said.{box}.unseen")
    kinds = {"kicker": ("stage.word.of", "stage.changed"), "more": ("stage.more.",), "paper": ("stage.paper",)}
    return {"said": own, **kinds}


def escaped(text: str) -> str:
    """Return a JavaScript regular expression that matches a text."""
    return "".join(f"\\{one}" if one in r"\^$.|?*+()[]{}/" else one for one in text.strip())


def left_out(seen: Seen, said: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each missing sentence: the stage must say if a word is forced, unlikely or changed."""
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


def opened(tab: Any, translator: Translator, page: Path, sentence: str) -> Visit:
    """Write a model's page to a file, and open the page in a tab; return the visit."""
    data = payload(translator, sentence, checkpoints=SNAPSHOTS)
    page.write_bytes(page_html(data).encode("utf-8", "replace"))
    tab.set_viewport_size({"width": 1440, "height": 900})
    tab.emulate_media(reduced_motion="reduce")  # skips the gliding of boxes, because only texts are read
    tab.goto(page.resolve().as_uri())
    tab.evaluate("() => glassformer.ready.then(() => null)")
    tab.evaluate(UNPAINTED)
    return Visit(tab, Model(translator, [one["step"] for one in data["checkpoints"]]))
