"""A player for a sequence of pictures, with a slider and a play button. The player needs only its own short script."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from zlib import crc32

from glassformer.watch.pictures.picture import Picture

__all__ = ["Player", "player"]


@dataclass(frozen=True, slots=True)
class Player:
    """A sequence of pictures to step through, which notebooks display."""

    frames: tuple[Picture, ...] = field(repr=False)
    captions: tuple[str, ...]
    seconds: float
    """Seconds for which each frame is shown while playing."""

    def _repr_html_(self) -> str:
        name = f"gf-player-{crc32(''.join(frame.svg for frame in self.frames).encode()):x}"
        shown = "".join(
            f'<div class="gf-frame" style="{"" if place == 0 else "display: none"}">{frame._repr_html_()}'
            f"<p>{escape(caption)}</p></div>"
            for place, (frame, caption) in enumerate(zip(self.frames, self.captions, strict=True))
        )
        last = len(self.frames) - 1
        return (
            f'<div class="gf-player" id="{name}">'
            f'<p><button type="button" aria-label="play or pause">▶</button> '
            f'<input type="range" min="0" max="{last}" value="0" aria-label="frame"> '
            f"<output>1 / {last + 1}</output></p>{shown}</div>"
            f"<script>{_SCRIPT.replace('NAME', name).replace('PAUSE', str(int(1000 * self.seconds)))}</script>"
        )


def player(frames: Sequence[Picture], captions: Sequence[str] | None = None, *, seconds: float = 1.2) -> Player:
    """Return a player for these pictures, with a caption below each picture (default: its text alternative).

    Raises:
        ValueError: there are no frames, or the numbers of captions and frames differ.
    """
    texts = tuple(frame.alt for frame in frames) if captions is None else tuple(captions)
    if not frames or len(texts) != len(frames):
        raise ValueError(f"frames, captions: expected equal counts of at least 1, got {len(frames)} and {len(texts)}")
    return Player(tuple(frames), texts, seconds)


_SCRIPT = """
(() => {
  const root = document.getElementById("NAME");
  const [button, slider, output] = ["button", "input", "output"].map((tag) => root.querySelector(tag));
  const frames = [...root.querySelectorAll(".gf-frame")];
  let timer = null;
  const show = () => {
    frames.forEach((frame, place) => { frame.style.display = place === Number(slider.value) ? "" : "none"; });
    output.textContent = `${Number(slider.value) + 1} / ${frames.length}`;
  };
  const stop = () => { clearInterval(timer); timer = null; button.textContent = "▶"; };
  slider.addEventListener("input", () => { stop(); show(); });
  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (Number(slider.value) === frames.length - 1) slider.value = 0;
    show();
    button.textContent = "⏸";
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) === frames.length - 1) stop();
    }, PAUSE);
  });
})();
"""
