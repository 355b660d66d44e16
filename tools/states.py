"""Take a picture of each state of the explorer, in this checkout and in another one, and mark those that differ.

python -m tools.states FOLDER                        the pictures of this checkout
python -m tools.states FOLDER --against CHECKOUT     before and after side by side, for each state that differs
python -m tools.states FOLDER --only zoom            states whose name contains a text

A state is a model, an address and a size of the window. The same models are shown by both checkouts.
"""

import json
import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from benchmarks.browser import FLAGS, chromium
from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
SIZES = ((1440, 900), (1100, 700), (390, 844))
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "demo": ("The animal didn't cross the street because it was too tired.", {}),
    "pre-norm": ("the black cat sees a big dog .", {"norm": "pre"}),
    "learned": ("the black cat sees a big dog .", {"positions": "learned", "max_length": 256}),
    "six layers": ("the black cat sees a big dog .", {"encoder_layers": 6, "decoder_layers": 6}),
}
"""The sentence and the settings of each model; the others than the demo are random."""
ACTS = {1: 3, 2: 3, 3: 2, 4: 4, 5: 3, 6: 1, 7: 4}
"""The number of acts of each chapter on a page without snapshots."""
SEGMENTS = {
    "attention": ("weights", "rollout"),
    "feed_forward": ("weights",),
    "add": ("guesses",),
    "positions": ("positions",),
    "softmax": ("why", "beam"),
}
SETTLE = """async () => {
  for (let quiet = 0, before = ""; quiet < 20; ) {
    await new Promise((done) => setTimeout(done, 50));
    const busy = glassformer.app.state.busy || document.querySelector("section[aria-busy=true]");
    const now = document.body.innerHTML;
    quiet = now === before && !busy ? quiet + 1 : 0;
    before = now;
  }
}"""


def addresses(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each state of a model."""
    yield "figure", "chapter=0"
    for language, theme in (("zh", "light"), ("en", "dark")):
        yield f"figure {language} {theme}", f"language={language}&theme={theme}"
    yield "lecture", "lecture=true"
    yield "second", f"second={_coded({'text': 'the cat sleeps .'})}"
    for chapter, acts in ACTS.items():
        for act in range(acts):
            yield f"chapter {chapter}.{act}", f"chapter={chapter}&act={act}"
    for panel in ("changes", "training", "vocabulary"):
        yield f"sheet {panel}", f"sheet=true&panel={panel}"
    for box in boxes(config):
        yield f"box {box}", f"box={re.sub(r'layers[.][0-9]+[.]', '', box)}"
        yield f"zoom {box}", f"zoom={_coded({'box': box, 'key': None})}"
        for kind, panels in SEGMENTS.items():
            for panel in panels if box.endswith(kind) else ():
                yield f"zoom {box} {panel}", f"zoom={_coded({'box': box, 'key': None})}&panel={panel}"
    for name, index in (("decoder.layers.0.cross_attention.weights", [0, 1, 1]), ("log_probs", [0, 5])):
        yield f"numbers {name}", f"selected={_coded({'name': name, 'index': index})}"


def boxes(config: dict[str, Any]) -> Iterator[str]:
    """Yield the boxes of the first layers, and those that belong to no layer."""
    for stack, between in (("encoder", ()), ("decoder", ("cross_attention",))):
        names = ("self_attention", *between, "feed_forward")
        yield from (f"{stack}.embedding", f"{stack}.positions")
        for name in names:
            if config["norm"] == "pre":
                yield f"{stack}.layers.0.{name}.norm"
            yield from (f"{stack}.layers.0.{name}", f"{stack}.layers.0.{name}.add")
    yield from ("decoder.linear", "decoder.softmax")


def _coded(value: object) -> str:
    return quote_plus(json.dumps(value))


def page_of(checkout: Path, run: str, text: str, file: Path) -> None:
    """Let a checkout write the page of a model."""
    command = [sys.executable, "-m", "glassformer", "explore", run, text, "--html", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def pictures(browser: Browser, page: Path, folder: Path, only: str) -> Iterator[str]:
    """Write the pictures of a page's states; yield their names."""
    for width, height in SIZES:
        tab = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
        _open(tab, page, "chapter=0")
        config: dict[str, Any] = tab.evaluate("glassformer.app.config")
        for state, address in addresses(config):
            name = f"{state} {width}"
            if only in name:
                _open(tab, page, address)
                (folder / f"{name}.png").write_bytes(tab.screenshot())
                yield name
        tab.close()


def _open(tab: Page, page: Path, address: str) -> None:
    tab.goto("about:blank")  # a change of the fragment alone would not load the page
    tab.goto(f"{page.as_uri()}#{address}")
    tab.evaluate("() => glassformer.ready.then(() => null)")
    tab.evaluate(SETTLE)


def difference(before: Path, after: Path, shown: Path) -> float:
    """Return the share of pixels that differ; if some do, write both pictures side by side."""
    one, other = (Image.open(path).convert("RGB") for path in (before, after))
    if one.size != other.size:
        return 1.0
    changed = ImageChops.difference(one, other).convert("L").point(lambda value: 255 * (value > 8))
    share = changed.histogram()[255] / (one.width * one.height)
    if share:
        both = Image.new("RGB", (2 * one.width + 8, one.height), "magenta")
        both.paste(one, (0, 0))
        both.paste(other, (one.width + 8, 0))
        both.save(shown)
    return share


def main() -> None:
    """Read the command line, and take the pictures."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--model", choices=list(MODELS), action="append")
    given = parser.parse_args()
    checkouts = {"after": ROOT} | ({"before": given.against.resolve()} if given.against else {})
    sys.path.append(str(ROOT / "tests"))
    random_translator = import_module("models").random_translator  # a module of the tests

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for model, (text, settings) in MODELS.items():
            if given.model and model not in given.model:
                continue
            folder = given.folder / model
            folder.mkdir(parents=True, exist_ok=True)
            run = "demo" if model == "demo" else str(folder / "run")
            if run != "demo" and not Path(run).exists():
                made = random_translator(folder, name="run", extra_length=6, **settings)
                made.bundle.save(made.model)
            names: list[str] = []
            for which, checkout in checkouts.items():
                (folder / which).mkdir(exist_ok=True)
                page_of(checkout, run, text, folder / f"{which}.html")
                names = [*pictures(browser, folder / f"{which}.html", folder / which, given.only)]
            print(f"{model}: {len(names)} pictures")
            for name in names if given.against else ():
                (folder / "differ").mkdir(exist_ok=True)
                file = f"{name}.png"
                share = difference(folder / "before" / file, folder / "after" / file, folder / "differ" / file)
                if share:
                    print(f"  {share:7.2%}  {name}")
        browser.close()


if __name__ == "__main__":
    main()
