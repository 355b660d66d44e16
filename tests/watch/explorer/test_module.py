"""The explorer's module in every page; `make check` compares it with a new bundle of `web/`."""

import re
import subprocess
import sys
from pathlib import Path

from glassformer.watch.explorer.module import explorer_module, strings, styles

LARGEST = 369_800
LARGEST_STYLES = 52_600
WEB = Path(__file__).parents[3] / "web"


def test_the_module_imports_nothing():
    text = explorer_module()
    assert not re.search(r"\bimport\s*[\"'({*]|\bfrom\s*[\"']", text)
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)


def test_the_module_is_small():
    assert len(explorer_module().encode()) <= LARGEST
    assert len(styles().encode()) <= LARGEST_STYLES


def test_the_module_may_stand_inside_a_script_element():
    assert not re.search(r"</script|<!--", explorer_module(), re.IGNORECASE)


def test_the_module_names_its_source():
    heading = explorer_module().partition("\n")[0]
    assert re.fullmatch(r"// The explorer of glassformer, .* web/ .*", heading)


def test_the_module_exports_mount_and_render():
    assert explorer_module().endswith("export const { mount } = explorer;\nexport default explorer.default;\n")


def test_reading_the_module_does_not_need_torch():
    program = "import sys, glassformer.watch.explorer.module as _; sys.exit(bool({'torch', 'numpy'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_nothing_becomes_markup_or_code_at_run_time():
    wrong = r"\b(inner|outer)HTML\b|insertAdjacentHTML|\beval\(|new Function|document\.write"
    assert not re.search(wrong, explorer_module())


def test_every_language_has_every_string_with_the_same_placeholders():
    english, chinese = strings()["en"], strings()["zh"]
    for key, text in english.items():
        assert set(re.findall(r"\{\d\}", text)) == set(re.findall(r"\{\d\}", chinese[key])), key
        assert text.strip()
        assert chinese[key].strip()


def test_no_text_is_written_for_nothing():
    sources = [*WEB.rglob("ui/**/*.ts"), *WEB.rglob("engine/**/*.ts")]
    code = "".join(path.read_text(encoding="utf-8") for path in sources)
    literals = set(re.findall(r"[\"'`]([\w.]+)[\"'`]", code))
    templates = [re.split(r"\$\{[^}]*\}", one) for one in re.findall(r"`([\w.]*\$\{(?:[^`\\]|\\.)*?)`", code)]
    names = [parts for parts in templates if re.fullmatch(r"[\w.]*\.[\w.]*", "".join(parts))]
    made = re.compile("|".join(".+".join(map(re.escape, parts)) for parts in names))
    described = re.compile(r"(point|mistake)\.")  # the model and mistakes.toml name these keys
    english = strings()["en"]
    assert [key for key in english if not (key in literals or described.match(key) or made.fullmatch(key))] == []


def test_the_lock_file_contains_no_host():
    assert "://" not in (WEB / "package-lock.json").read_text(encoding="utf-8")
