"""The explorer's JavaScript as one ES module, joined from the readable files in `web/`.

Each file says what it needs in lines `import { x } from "./other.js";` and offers names by `export` at the start of a
line. Joining puts the files in the order of their needs and drops both, so that nothing is left to be loaded. As the
module travels in every page, comments stay behind in the files, and names and white space are shortened.
"""

import json
import re
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files

try:
    from minify import string as shortened
except ImportError:  # there is no wheel for this machine: pages are larger, and the same otherwise

    def shortened(_kind: str, text: str) -> str:
        """Return the text as it is."""
        return text


__all__ = ["explorer_module", "joined", "strings"]

LANGUAGES = ("en", "zh")

HEADING = "// The explorer of glassformer. Its readable source is the folder explorer/web of the package.\n"
STYLES = "styles.js"
"""The virtual file that exports the text of styles.css as STYLES."""
_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([\w.]+)";\n', re.MULTILINE)
_NAME = r"(?:async )?(?:function\*?|const|let|class) (\w+)"
_TOP_LEVEL = re.compile(rf"^(?:export )?{_NAME}", re.MULTILINE)
_EXPORTED = re.compile(rf"^export {_NAME}", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://.*|/\*\*(?:.|\n)*?\*/)\n|^\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


@lru_cache
def explorer_module() -> str:
    """Return the whole explorer as one ES module that needs no other, always the same bytes."""
    inner = joined().replace("export function mount", "function mount").replace("export default { render };", "")
    whole = f"const {{ mount, render }} = (() => {{\n{inner}\nreturn {{ mount, render }};\n}})();\n"
    text: str = shortened("text/javascript", f"{whole}export {{ mount }};\nexport default {{ render }};\n")
    return f"{HEADING}{text}\n"


@lru_cache
def strings() -> dict[str, dict[str, str]]:
    """Return every word of the page, by language and key: data, which travels beside the module."""
    table = json.loads((files("glassformer.explorer") / "web" / "strings.json").read_text(encoding="utf-8"))
    return {language: {key: texts[at] for key, texts in table.items()} for at, language in enumerate(LANGUAGES)}


@lru_cache
def joined(entry: str = "module.js") -> str:
    """Return one ES module that needs no other: the entry file and all that it imports, readable, without comments.

    The whole explorer exports what its entry exports; a part of it, for tests, what all its files export. Files that
    break the rules of joining are a mistake of ours: AssertionError.
    """
    texts = _needed(entry)
    names = [name for text in texts.values() for name in _TOP_LEVEL.findall(text)]
    twice = sorted({name for name in names if names.count(name) > 1})
    assert not twice, f"top-level names of the explorer's files must differ, but there are more of {', '.join(twice)}"
    bodies = [_IMPORT.sub("", texts[name]) for name in _in_order(texts)]
    if entry == "module.js":
        bodies = [*(_EXPORT.sub("", body) for body in bodies[:-1]), bodies[-1]]
    text = _COMMENT.sub("", "\n".join(bodies))
    assert not re.search(r"^\s*import\b", text, re.MULTILINE), 'an import that is not `import { x } from "./y.js";`'
    assert not re.search(r"</script|<!--", text, re.IGNORECASE), "the module cannot stand inside a page's <script>"
    return text


def _needed(entry: str) -> dict[str, str]:
    """Return the text of a file and of all files that it needs, by name, after checking what they import."""
    texts = {entry: _read(entry)}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        for wanted, other in _IMPORT.findall(texts[name]):
            if other not in texts:
                texts[other] = _read(other)
                waiting.append(other)
            missing = {*wanted.split(", ")} - {*_EXPORTED.findall(texts[other])}
            assert not missing, f"{name} imports {', '.join(sorted(missing))}, which {other} does not export"
    return texts


def _in_order(texts: dict[str, str]) -> list[str]:
    """Return the files' names, each after those that it needs; equals by name."""
    sorter = TopologicalSorter({name: {other for _, other in _IMPORT.findall(text)} for name, text in texts.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        raise AssertionError(f"the explorer's files import each other in a circle: {error.args[1]}") from error
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        sorter.done(*ready)
        order += ready
    return order


def _read(name: str) -> str:
    folder = files("glassformer.explorer") / "web"
    if name == STYLES:
        css = folder / "styles.css"
        text = shortened("text/css", css.read_text(encoding="utf-8")) if css.is_file() else ""
        return f"export const STYLES = {json.dumps(text)};\n"
    path = folder / name
    assert path.is_file(), f"the explorer has no file {name}"
    return path.read_text(encoding="utf-8")
