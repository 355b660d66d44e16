"""Check that each sentence of the explorer's page is true: `python -m benchmarks.truth RUN [--sentences 200]`.

Three models have a page each: RUN, which is the demo; a pre-norm model of pieces of words (unigram); and the state
dict of a `torch.nn.Transformer`, imported by `glassformer import`. The last two are trained here for a few minutes, or
come from the folder that `--models` names, where they are kept.

For each test sentence of the demo's task, headless Chromium shows the page in states that a reader can reach: as the
sentence opens; at random words, boxes, heads and layers; with a forced word, a turned row, and a head that is off; each
fifth sentence also in the first chapter, before and after a beam is turned, with an opened attention, and in the panel
"Why?". The sentences are read there as text. PyTorch computes what each claims (`benchmarks/claims.py`).

Writes results/truth.json: the claims of each template, and each false sentence with the state's address.
"""

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.claims import Model, Problem, Seen, problems
from benchmarks.command import as_command
from benchmarks.explorer import FLAGS
from glassformer.corpus.tasks import english_french
from glassformer.translator import Translator
from glassformer.watch.explorer.module import strings
from glassformer.watch.explorer.payload import payload
from glassformer.watch.explorer.standalone import page_html

__all__ = ["Tally", "Visit", "visited"]

LOOKS = 4
"""Number of random selections of a sentence."""

WORTH = ("same", "falls", "rises", "off")
"""What a head is worth to a word, which the page measures after it has drawn the figure."""

READ = """async ({ area, complete }) => {
  const { app } = glassformer;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const text = (selector) => all(selector).map((one) => one.textContent);
  const AREAS = {
    stage: () => ({
      kicker: text(".gfs-said-box .gfs-kicker"), said: text(".gfs-said-box h2"),
      more: text(".gfs-said-box .gfs-more-text"), paper: text(".gfs-said-box .gfs-paper"),
      guesses: all(".gfs-guess").map((one) => [one.dataset.guess, one.querySelector("title").textContent]),
    }),
  };
  const seen = () => {
    const { sentence, changes, row, sourceWord, box, heads, zoom, selected, language, word, result } = app.state;
    const { ids } = result.current.hypothesis;
    const state = { sentence, changes, row, sourceWord, box, heads, zoom, selected, language, word, ids };
    return JSON.stringify({ ...state, address: location.hash, texts: AREAS[area]() });
  };
  const isComplete = () => !app.state.busy && new RegExp(complete).test(seen());
  let [last, quiet] = ["", 0];
  for (const end = performance.now() + 20000; performance.now() < end; ) {
    await new Promise(requestAnimationFrame);
    await new Promise((done) => setTimeout(done, 20));
    const now = seen();
    quiet = now === last && isComplete() ? quiet + 1 : 0;
    if (quiet > 1) return JSON.parse(now);
    last = now;
  }
  throw new Error(`not complete: ${complete}: ${seen()}`);
}"""


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

    def sentence(self, text: str) -> None:
        """Visit the states of one sentence."""
        self.call("open", text)
        self.show(row=None, sourceWord=None, zoom=None, sheet=False, box="decoder.cross_attention", language="en")
        self.stage()
        length = len(self.tab.evaluate("glassformer.app.result.current.hypothesis.ids"))
        for _ in range(LOOKS):
            self.look(length)
            self.stage()
        for change in (self.forced, self.turned, self.off):
            self.call("reset")
            change(length)
            self.stage()
            self.show(box=self.chance.choice(self.boxes))
            self.stage()
        self.call("reset")

    def call(self, name: str, *values: Any) -> None:
        self.tab.evaluate("([name, values]) => glassformer.app[name](...values)", [name, values])

    def show(self, **looks: Any) -> None:
        self.call("show", looks)

    @property
    def boxes(self) -> list[str]:
        found: list[str] = self.tab.evaluate("[...document.querySelectorAll('.gfs-box')].map((one) => one.dataset.box)")
        return found

    @property
    def attentions(self) -> list[str]:
        return [box for box in self.boxes if box.endswith("attention")]

    def heads(self) -> dict[str, dict[str, int]]:
        """Return a head of each family, by chance; those of the decoder are in one layer."""
        config, pick = self.model.config, self.chance.randrange
        decoder = pick(config.decoder_layers)
        layers = {"encoder": pick(config.encoder_layers), "cross": decoder, "decoder": decoder}
        return {family: {"layer": layer, "head": pick(config.heads)} for family, layer in layers.items()}

    def look(self, length: int) -> None:
        """Choose a word, a box, heads and a language by chance; half the boxes are attentions."""
        box = self.chance.choice(self.attentions if self.chance.random() < 0.5 else self.boxes)
        source = len(self.tab.evaluate("glassformer.app.result.current.sourceIds"))
        word = self.chance.choice([None, self.chance.randrange(source)])
        language = self.chance.choice(["en", "en", "en", "zh"])
        self.show(row=self.chance.randrange(length), sourceWord=word, box=box, heads=self.heads(), language=language)

    def forced(self, length: int) -> None:
        """Force one of the likeliest words at a place, and look at it."""
        seen = self.seen()
        tokenizer, row = self.model.bundle.target_tokenizer, self.chance.randrange(length)
        rivals = seen.trace["log_probs"][row].topk(6).indices.tolist()
        self.chance.shuffle(rivals)
        for id in rivals:
            ids = [*seen.output[:row], id]
            text = tokenizer.decode(ids)
            if id > tokenizer.unk_id and tokenizer.encode(text) == ids:
                self.call("set", {"prefix": text})
                break
        self.show(row=row, sourceWord=None, box=self.chance.choice(["decoder.softmax", *self.attentions]))

    def turned(self, length: int) -> None:
        """Turn a row of cross-attention to a word or between two words, and look at it."""
        heads, row = self.heads(), self.chance.randrange(length)
        source = len(self.tab.evaluate("glassformer.app.result.current.sourceIds"))
        weights, at = [0.0] * source, self.chance.randrange(source - 1)
        weights[at] = self.chance.choice([1.0, 0.5, 0.3])
        weights[at + 1] = 1 - weights[at]
        name = f"decoder.layers.{heads['cross']['layer']}.cross_attention"
        self.call("set", {"overrides": {name: [[heads["cross"]["head"], row, weights]]}})
        self.show(row=row, sourceWord=None, box="decoder.cross_attention", heads=heads)

    def off(self, length: int) -> None:
        """Switch a head off, and look at it."""
        heads, box = self.heads(), self.chance.choice(self.attentions)
        stack, kind = box.split(".")
        family = "encoder" if stack == "encoder" else "cross" if kind == "cross_attention" else "decoder"
        layer, head = heads[family]["layer"], heads[family]["head"]
        self.call("set", {"ablated": {f"{stack}.layers.{layer}.{kind}": [head]}})
        self.show(row=self.chance.randrange(length), sourceWord=None, box=box, heads=heads)

    def seen(self, area: str = "stage", complete: str = "") -> Seen:
        self.tally.states += 1
        return Seen(self.model, self.tab.evaluate(READ, {"area": area, "complete": complete}))

    def stage(self) -> None:
        """Check what the stage says about the lit box."""
        box, language = self.tab.evaluate("(({ box, language }) => [box, language])(glassformer.app.state)")
        texts = strings()[language]
        worth = [max(texts[f"stage.more.{key}"].replace("}", "{").split("{"), key=len) for key in WORTH]
        seen = self.seen("stage", "|".join(map(escaped, worth)) if box.endswith("attention") else "")
        said: list[str] = []
        for area, kinds in stage_kinds(box).items():
            for text in seen.state["texts"][area]:
                parts = text.split(" · ") if area == "kicker" else [text]
                said += [key for part in parts for key in self.tally.add(seen, part, kinds)]
        for at, text in seen.state["texts"]["guesses"]:
            said += self.tally.add(replace(seen, at=at), text, ("stage.guess",))
        for missing in left_out(seen, said):
            self.tally.blame(seen, missing)
        self.searched(seen)

    def searched(self, seen: Seen) -> None:
        """Check that the page shows what Python's search finds; outputs of one score are equally right."""
        found = self.model.score(seen.source, seen.prefix, seen.changes)
        self.tally.claims["output"] += 1
        if list(found["ids"]) != seen.output:
            self.tally.blame(seen, Problem("output", str(seen.output), f"the search finds {found['ids']}"))


def stage_kinds(box: str) -> dict[str, tuple[str, ...]]:
    """Return the kinds of templates of which the stage's texts about a box are made."""
    _, inner, *beside = box.split(".")
    own: tuple[str, ...] = (f"stage.said.{box}",)
    if beside == ["norm"]:
        own = ("stage.said.feed_forward.norm" if inner == "feed_forward" else "stage.said.attention.norm",)
    elif inner == "positions":
        own = (*own, "stage.said.positions.")
    elif inner.endswith("attention") and not beside:
        own = (
            *own,
            *(f"stage.said.{box}.{look}" for look in ("shared", "tied", "self", "self.shared")),
            "stage.said.nothing",
        )
    elif inner == "linear":
        own = (*own, f"stage.said.{box}.unseen")
    kinds = {"kicker": ("stage.word.of", "stage.changed"), "more": ("stage.more.",), "paper": ("stage.paper",)}
    return {"said": own, **kinds}


def escaped(text: str) -> str:
    """Return a text as a regular expression of JavaScript."""
    return "".join(f"\\{one}" if one in r"\^$.|?*+()[]{}/" else one for one in text.strip())


def left_out(seen: Seen, said: Sequence[str]) -> Iterator[Problem]:
    """Yield what the stage must say, but does not: that a word is forced, unlikely, or changed."""
    must = {
        "stage.more.forced": seen.is_forced and seen.best != seen.output[seen.row],
        "stage.more.forced.too": seen.is_forced and seen.best == seen.output[seen.row],
        "stage.more.beam": not seen.is_forced and seen.best != seen.output[seen.row],
        "stage.changed": seen.is_changed,
    }
    for key, is_so in must.items():
        if is_so and key not in said:
            yield Problem(key, "", "the page does not say so")


def visited(tab: Any, translator: Translator, page: Path, sentences: Sequence[str]) -> Tally:
    """Return the claims that a model's page makes of these sentences; the page is written to a file."""
    page.write_bytes(page_html(payload(translator, sentences[0])).encode("utf-8", "replace"))
    tab.set_viewport_size({"width": 1440, "height": 900})
    tab.goto(page.resolve().as_uri())
    tab.evaluate("() => glassformer.ready.then(() => null)")
    visit = Visit(tab, Model(translator))
    for sentence in sentences:
        visit.sentence(sentence)
    return visit.tally


# The command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--sentences", type=int, default=200)
    options = parser.parse_args()
    splits = english_french(1, train=0, valid=0, unseen=0, pairs=0, senses=0, longer=0, test=options.sentences).splits
    sentences = [example.source for example in splits["test"]]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        begun = time.perf_counter()
        tally = visited(browser.new_page(), Translator.load(options.run), Path(folder) / "page.html", sentences)
        print(f"{time.perf_counter() - begun:.0f} s, {tally.states} states")
        for key, count in sorted(tally.claims.items()):
            print(f"{count:6d} {key}")
        print(len(tally.false), "false")
        for one in tally.false[:60]:
            print(one["key"], "|", one["text"], "|", one["why"], "|", one["address"])
        print(Counter(one["key"] for one in tally.false))
        browser.close()


if __name__ == "__main__":
    as_command(main)
