"""Reading maps, from the steps of a tutorial or the sections of the paper to chapters, code and the explorer."""

import json
import tomllib
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from chapters import BOOK, CHAPTERS
from pages import LIBRARY, addresses, definitions, with_links

HEADS = {
    "en": ("Step", "Chapter", "Code", "In the explorer"),
    "zh": ("步骤", "章节", "代码", "在探索页中查看"),
}


_BOX = "zoom=%7B%22box%22:%22{}%22,%22key%22:null%7D"
OPENS = {
    "play": ("stage.play", "chapter=0"),
    "turn": ("chapter.1", "chapter=1"),
    "learning": ("chapter.6", "chapter=6"),
    "self-attention": ("family.encoder", _BOX.format("encoder.layers.1.self_attention")),
    "cross-attention": ("family.cross", _BOX.format("decoder.layers.1.cross_attention")),
    "beam": ("panel.beam", f"{_BOX.format('decoder.softmax')}&panel=beam"),
    "positions": ("panel.positions", f"{_BOX.format('encoder.positions')}&panel=positions"),
}
"""What a step opens in the explorer if it is not a point: the page's string that names it, and its address."""
STRINGS = json.loads((LIBRARY / "watch/explorer/strings.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Map:
    """One reading map as stored in its file; the keys of Chinese texts end in "_zh"."""

    data: dict[str, Any]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Its rows."""
        return self.data["steps"]


ORDER = ("paper", "encoder_notebook", "whole_model", "step_by_step", "posts", "intuitions")
MAPS = {name: Map(tomllib.loads((BOOK / "maps" / f"{name}.toml").read_text(encoding="utf-8"))) for name in ORDER}


def map_page(name: str, names: set[str], language: str) -> tuple[str, set[str]]:
    """Return a map as Markdown, and the Python files that it links to."""
    files: set[str] = set()
    address = addresses(BOOK, f"maps/{name}", names, language, files)
    end = "" if language == "en" else "_zh"
    data = MAPS[name].data
    rows = [_row(step, end) for step in MAPS[name].steps]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (HEADS[language], ["---"] * 4, *rows))
    return with_links(f"# {data[f'title{end}']}\n\n{data[f'text{end}']}\n\n{table}\n", address), files


def _row(step: dict[str, Any], end: str) -> list[str]:
    chapters = "<br>".join(_chapter(chapter, end) for chapter in step["chapters"])
    return [step[f"step{end}"], chapters, "<br>".join(map(_code, step.get("code", ()))), _explorer(step, end)]


def _chapter(chapter: dict[str, str], end: str) -> str:
    """Return a link to a chapter; a Chinese map says which chapters are still in English only."""
    file = BOOK / chapter["page"].partition("#")[0]
    only_english = end and not next(one for one in CHAPTERS if one.path == file).translation.exists()
    return f"[{chapter[f'name{end}']}{'（英文）' if only_english else ''}]({chapter['page']})"


def place(code: str) -> tuple[str, str]:
    """Return the file in the library and the name of a reference such as "model/attention.py#attention"."""
    file, _, name = code.partition("#")
    return f"src/glassformer/{file}", name


def _code(code: str) -> str:
    file, name = place(code)
    first, last = definitions(file)[name]
    return f"[`{name}`](../{file}#{name})<br>{file.removeprefix('src/glassformer/')}:{first}–{last}"


def _explorer(step: dict[str, Any], end: str) -> str:
    """Return a link to the step's point, or to what else it opens, in the explorer."""
    if not step.keys() & {"point", "opens"}:
        return "–"
    if point := step.get("point"):
        cell = quote(json.dumps({"name": point, "index": []}, separators=(",", ":")), safe=":,")
        name, address = point.replace(".", ".<wbr>"), f"selected={cell}"
    else:
        string, address = OPENS[step["opens"]]
        name = STRINGS[string][1 if end else 0]
    return f"[{name}](../runs/demo/explorer.html#{address}{'&language=zh' if end else ''})"
