"""Take the pictures in docs/pictures/ and the outline on the site's home page: `make pictures`.

python docs/site/screenshots.py [RUN]    from the demo, or from another run with English–French
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from chapters import ROOT
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from glassformer import Translator
from glassformer.watch.explorer.standalone import write_page

PICTURES = ROOT / "docs" / "pictures"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SENTENCE = "text=The+animal+didn%27t+cross+the+street+because+it+was+too+wide."
CROSS = "zoom=%7B%22box%22:%22decoder.layers.1.cross_attention%22,%22key%22:null%7D"
SHOTS = {
    "explorer-light": (SENTENCE, "light", (1440, 900)),
    "explorer-dark": (SENTENCE, "dark", (1440, 900)),
    "explorer-turn": ("chapter=1", "light", (1440, 900)),
    "explorer-attention": (f"{SENTENCE}&{CROSS}", "light", (1440, 900)),
    "explorer-phone": (SENTENCE, "light", (390, 844)),
}
"""The state in the page's address, the theme, and the size of the window, by the name of the picture."""
LEARNING = "checkpoint=128&chapter=6&act=1"
CURVE = """() => {
  const curve = document.querySelector("svg:has(.gf-loss)");
  const ground = document.createElement("div");
  ground.style = "position:fixed;inset:0;z-index:99;background:var(--paper)";
  curve.style = "width:640px;height:360px;fill:var(--ink2)";
  curve.closest(".gf-stage-root").append(ground);
  ground.append(curve);
}"""
"""Show the curve of the loss alone, at the top left of the page."""
DOORS = {
    "understand": ("chapter=1", {"x": 380, "y": 186, "width": 1060, "height": 596}),
    "train": (f"{LEARNING}&sheet=true&panel=training", {"x": 0, "y": 0, "width": 640, "height": 360}),
    "inside": (
        f"{SENTENCE}&{CROSS.replace('layers.1', 'layers.0')}",
        {"x": 735, "y": 314, "width": 660, "height": 371},
    ),
}
"""For the home page: the state in the explorer's address, and the box that is taken."""
TRANSLATED = "The animal didn't cross the street because it was too wide."
OUTLINE = {"en": "outline.svg", "zh": "outline.zh.svg"}
"""The file of the home page's outline by language."""
LARGEST = 250_000
"""Maximum number of bytes of a picture."""


def main(run: Path) -> None:
    """Take all pictures."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        sys.exit("no Chromium on the PATH: `make .venv/browser` installs it where it can")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "explorer.html"
        write_page(Translator.load(run), page, snapshots=3)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, (state, theme, (width, height)) in SHOTS.items():
            tab = opened(browser, f"{page.as_uri()}#{state}", theme, (width, height))
            save(name, tab.screenshot())
            tab.close()
        for theme in ("light", "dark"):
            for name, (state, box) in DOORS.items():
                tab = opened(browser, f"{page.as_uri()}#{state}", theme, (1440, 900), scale=2)
                if name == "train":
                    tab.evaluate(CURVE)
                save(f"door-{name}-{theme}", tab.screenshot(clip=box))
                tab.close()
            with served(run) as address:
                tab = opened(browser, address, theme, (640, 640), scale=2)
                tab.locator("textarea").first.fill(TRANSLATED)
                tab.get_by_text("qu'").first.wait_for()
                save(f"door-use-{theme}", tab.screenshot(clip={"x": 0, "y": 50, "width": 640, "height": 360}))
                tab.close()
        for language, file in OUTLINE.items():
            tab = opened(browser, f"{page.as_uri()}#chapter=1&act=1&language={language}", "light", (1440, 800))
            drawn = tab.locator(".gfs-outline > g").evaluate("(outline) => outline.outerHTML")
            (Path(__file__).parent / "templates" / file).write_text(outline(drawn), encoding="utf-8")
            tab.close()


def opened(
    browser: Browser, address: str, theme: Literal["light", "dark"], size: tuple[int, int], scale: int = 1
) -> Page:
    """Return a page that has opened an address and is at rest."""
    tab = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=theme,
        reduced_motion="reduce",
        locale="en",
        device_scale_factor=scale,
    )
    tab.goto(address)
    tab.evaluate("() => globalThis.glassformer?.ready.then(() => null)")
    tab.wait_for_timeout(3000)  # until what is measured after the first picture is written
    return tab


def save(name: str, taken: bytes) -> None:
    """Write a picture in 256 colours."""
    path = PICTURES / f"{name}.png"
    shot = Image.open(BytesIO(taken)).convert("RGB")
    shot.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")
    if path.stat().st_size > LARGEST:
        sys.exit(f"{path} has {path.stat().st_size} bytes, more than {LARGEST}: take a smaller window")


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Yield the address of a service of the model."""
    command = [sys.executable, "-m", "glassformer", "serve", run, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr
        yield next(found[0] for line in service.stderr if (found := re.search(r"http://[\d.:]+/", line)))
        service.terminate()
        service.stderr.close()


def outline(drawn: str) -> str:
    """Return the outline without the room around it, with at most one decimal."""
    drawn = re.sub("^<g (.*)</g>$", r'<svg viewBox="460 40 860 690" \1</svg>', drawn, flags=re.DOTALL)
    drawn = re.sub(' class="gfs-box" data-box="[^"]+"', "", drawn)
    drawn = re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), drawn)
    return drawn.replace("><", ">\n<") + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "runs" / "demo")
