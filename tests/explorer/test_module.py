"""The explorer's files become one module, which needs no other, and is the same every time."""

import re
import subprocess
import sys
from importlib.resources import files

import pytest

from glassformer.explorer import module
from glassformer.explorer.module import explorer_module, joined, strings

LARGEST = 150_000
WEB = files("glassformer.explorer") / "web"


@pytest.fixture
def web(monkeypatch, tmp_path):
    """Return a function that puts files in the place of the explorer's."""
    joined.cache_clear()
    monkeypatch.setattr(module, "files", lambda _: tmp_path)
    (tmp_path / "web").mkdir()

    def write(**texts: str) -> None:
        for name, text in texts.items():
            (tmp_path / "web" / f"{name}.js").write_text(text, encoding="utf-8")

    yield write
    joined.cache_clear()


def join(entry: str = "module.js") -> str:
    joined.cache_clear()
    return joined(entry)


def test_the_module_loads_nothing():
    text = explorer_module()
    assert not re.search(r"^\s*import\b|\bimport\(|\bfrom \"\./", text, re.MULTILINE)
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)


def test_the_module_is_small():
    assert len(explorer_module().encode()) <= LARGEST


def test_the_module_exports_the_door_of_the_notebook_and_mount():
    assert re.search(r"export\s*\{\s*mount\s*\};\s*export default\s*\{\s*render\s*\};?\s*$", explorer_module())


def test_the_module_is_the_same_every_time():
    program = "import sys; from glassformer.explorer.module import explorer_module as whole; sys.stdout.write(whole())"
    other = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, encoding="utf-8")
    explorer_module.cache_clear()
    assert other.stdout == explorer_module()


def test_joining_needs_no_torch():
    program = "import sys, glassformer.explorer.module; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_every_file_is_part_of_the_module():
    named = {path.name for path in WEB.iterdir() if path.name.endswith(".js")}
    needed = module._needed("module.js")
    assert named <= set(needed)


def test_every_language_has_every_word_and_every_place_of_it():
    english, chinese = strings()["en"], strings()["zh"]
    for key, text in english.items():
        assert set(re.findall(r"\{\d\}", text)) == set(re.findall(r"\{\d\}", chinese[key])), key
        assert text.strip()
        assert chinese[key].strip()


def test_lines_are_no_longer_than_pythons():
    for path in WEB.iterdir():
        if path.name.endswith(".js"):
            assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 120, path.name


def test_nothing_becomes_markup_or_code_at_run_time():
    assert not re.search(r"\b(inner|outer)HTML\b|insertAdjacentHTML|\beval\(|new Function|document\.write", join())


def test_files_come_after_those_that_they_need_equals_by_name(web):
    web(
        module='import { b } from "./b.js";\nimport { a } from "./a.js";\nexport default { b, a };\n',
        b='import { c } from "./c.js";\nexport const b = c;\n',
        a='import { c } from "./c.js";\nexport const a = c;\n',
        c="export const c = 1;\n",
        unneeded="export const d = 1;\n",
    )
    assert join() == "const c = 1;\nconst a = c;\nconst b = c;\nexport default { b, a };\n"


def test_a_part_exports_all_that_its_files_export(web):
    web(b='import { c } from "./c.js";\nexport async function b() { return c; }\n', c="export class c {}\nlet d;\n")
    assert join("b.js") == "export class c {}\nlet d;\nexport async function b() { return c; }\n"


def test_comments_stay_behind_but_not_inside_of_lines(web):
    web(module="// what\n/** Returns.\n * more */\nconst x = '// y'; // z\n  // inner\n\n  /* kept */\n/** a */ f();\n")
    assert join() == "const x = '// y'; // z\n  /* kept */\n/** a */ f();\n"


def test_styles_are_a_file_of_their_own(web, tmp_path):
    web(module='import { STYLES } from "./styles.js";\nexport default STYLES;\n')
    assert join() == 'const STYLES = "";\nexport default STYLES;\n'
    (tmp_path / "web" / "styles.css").write_text('a::before{content:"—\\a"}', encoding="utf-8")
    assert join().startswith('const STYLES = "a::before{content:\\"\\u2014\\\\a\\"}";\n')


A = 'import { a } from "./a.js";\n'
BROKEN = [
    ({"module": A + "const b = 1;\n", "a": "export const a = 1;\nlet b;\n"}, "more of b"),
    ({"module": A}, "no file a.js"),
    ({"module": A, "a": "const a = 1;\n"}, "imports a, which a.js does not export"),
    ({"module": A, "a": 'import { m } from "./module.js";\nexport const a = 1;\n'}, "imports m, which"),
    ({"module": A + "export const m = 1;\n", "a": 'import { m } from "./module.js";\nexport let a;\n'}, "in a circle"),
    ({"module": 'import a from "./a.js";\n'}, "an import that is not"),
    ({"module": 'const a = "</SCRIPT>";\n'}, "cannot stand inside"),
    ({"module": 'const a = "<!--";\n'}, "cannot stand inside"),
]


@pytest.mark.parametrize(("texts", "message"), BROKEN)
def test_a_file_that_breaks_the_rules_is_noticed(web, texts, message):
    web(**texts)
    with pytest.raises(AssertionError, match=message):
        join()
