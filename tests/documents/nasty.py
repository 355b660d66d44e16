"""Files that are hard to read and to rebuild, made of pieces."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from glassformer.documents.document import Document
from glassformer.documents.sentences import DocumentSentences
from glassformer.text.tokenizer import TokenizerConfig, train_tokenizers
from models import random_translator

WRITTEN = "aé日 <b>&\"'\\{}[]()%$#*_`|~-+=.,:;!?/0123\u2028\u00a0\ufffd"
"""The characters that the model writes at random: none of them may become markup."""

CHUNKS = {
    ".txt": [
        "One line.",
        "  indented",
        "\tTab",
        "",
        " ",
        "-- ",
        "e.g. this one. Two",
        "é 日本。",
        "\x0cpage",
        "&amp; <b>",
    ],
    ".md": [
        *("# Head *em* #", "Set", "===", "* item", "- [ ] task", "> quote **bold", "> on** end", "1. `code` and text"),
        *(
            "```py",
            "x = 1",
            "```",
            "    indented code",
            "| a | b\\|c |",
            "|---|:-:|",
            "| `x` | **y** z |",
            "",
            "",
            "  ",
        ),
        *(
            '[link *x*](http://a.b "t") end',
            "![alt](i.png) <b>x</b> &eacute;",
            "[ref]: http://a.b",
            "a\\",
            "b  ",
            "***",
        ),
        *(
            "snake_case * 2 ~~gone~~ \\*",
            "<div>",
            "</div>",
            "<!-- note -->",
            "\ttab",
            "***both** x*",
            "[a][ref] <http://x.y>",
        ),
    ],
    ".html": [
        *(
            "<!DOCTYPE html>",
            "<p>",
            "</p>",
            "<p title='a b'>Text",
            "<b>bold <i>both</b></i>",
            "<em>one <u>two</u></em> three",
            "&eacute;&#233;&nbsp;x &bad",
        ),
        *(
            "<br/>",
            "<img alt=pic src=x>",
            "<script>if (a<b) '<p>'</script>",
            "<pre>\n keep  </pre>",
            "<!-- <p>x --> y",
            "<td",
        ),
        *(
            "<code>x < y</code> text",
            '<span translate="no">keep <span>k</span></span>',
            "<![CDATA[x]]>",
            "<?php x ?>",
            "a < b",
        ),
        *(
            '<a href="?a=1&b=2" TITLE=hi>link</a>',
            "<style>p{}</style>",
            "</div></b>",
            "<textarea>\nx</textarea>",
            "\t ",
            "é日本",
        ),
    ],
}
CUE = "{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{text}\n\n"
CUES = ["<i>One line\nand two</i>", "- Who?\n- Me.", "{\\an8}Up", "", "♪", "One <b>bold</b> &amp; x", "日本語\nです"]
VTT = [
    "NOTE a\nb\n\n",
    "STYLE\n::cue { color: red }\n\n",
    "id 1\n00:01.000 --> 00:02.000 line:1 align:end\n<v Bob>Hi &lt;b\n\n",
    "00:01.000 --> 00:02.000\na <00:01.500>b <c.x>c</c>\n\n",
    "REGION\nid:x\n\n",
    "\n",
]
ENTRIES = [
    *('# c\n#. x\n#: a.py:1\n#, c-format\nmsgid "one %d"\nmsgid_plural "many %d"\nmsgstr[0] ""\nmsgstr[1] ""\n\n',),
    *('#~ msgid "old"\n#~ msgstr "alt"\n\n', '#| msgid "before"\n#, fuzzy\nmsgid "now {x}"\nmsgstr "jetzt"\n\n'),
    *(
        'msgctxt "menu"\nmsgid "open \\"it\\""\nmsgstr ""\n',
        'msgid ""\n"wrapped "\n"and\\n"\n"long"\nmsgstr ""\n\n',
        "\n",
    ),
    *('msgid   "  spaced\\t"  \nmsgstr ""\n\n',),
]
HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals={n}; plural={p};\\n"\n\n'
)
XLIFF = [
    '<trans-unit id="1"><source>One &amp; <g id="1">two</g> <x id="2"/></source></trans-unit>',
    '<trans-unit id="2" translate="no"><source>keep</source></trans-unit>',
    '<trans-unit id="3">\n  <source>x <![CDATA[<y>]]></source>\n  <target state="new"></target>\n </trans-unit>',
    '<trans-unit id="4"><source>a<ph id="1">&lt;br&gt;</ph>b</source><target/></trans-unit>',
    '<trans-unit id="5"><source>é日本 &#233;</source><target>done</target></trans-unit><!-- x --><?pi y?>',
]


def xliff(units: list[str]) -> str:
    return f'<?xml version="1.0"?>\n<xliff version="1.2"><file><body>\n{"".join(units)}\n</body></file></xliff>\n'


MESSAGES = {
    "greeting": "Hi {{name}}, it is {time}",
    "count_one": "one %d",
    "count_other": 'many %d "quoted" <b>',
    "nested": {"back\\slash": "a\\b", "@note": "stays", "list": ["first\tone", "2nd $x$", "\u2028", 3.0, None, True]},
    "é日本": "Été — “quoted” 😀",
    "": "",
}


def _lines(suffix: str) -> Callable[[random.Random], str]:
    def text(chance: random.Random) -> str:
        front = chance.choice(["", "---\ntitle: x\n---\n"]) if suffix == ".md" else ""
        return front + "".join(f"{one}{chance.choice(['', chr(10)])}\n" for one in _some(chance, CHUNKS[suffix]))

    return text


def _some(chance: random.Random, pieces: Sequence[str]) -> list[str]:
    return chance.choices(pieces, k=chance.randint(2, 12))


def _subtitles(chance: random.Random) -> str:
    return "".join(CUE.format(n=n, text=text) for n, text in enumerate(_some(chance, CUES)[:9]))


def _messages(chance: random.Random) -> str:
    keys = chance.sample(list(MESSAGES), k=chance.randint(1, len(MESSAGES)))
    shape = {"indent": chance.choice([None, 2, "\t"]), "ensure_ascii": chance.random() < 0.5}
    return json.dumps({key: MESSAGES[key] for key in keys}, **shape)


def _gettext(chance: random.Random) -> str:
    return HEADER.format(n=2, p="(n!=1)") + "\n".join(chance.sample(ENTRIES, k=chance.randint(1, len(ENTRIES))))


MAKERS: dict[str, Callable[[random.Random], str]] = {
    ".txt": _lines(".txt"),
    ".md": _lines(".md"),
    ".html": _lines(".html"),
    ".srt": _subtitles,
    ".vtt": lambda chance: "WEBVTT - x\n\n" + "".join(_some(chance, VTT)),
    ".po": _gettext,
    ".xlf": lambda chance: xliff(_some(chance, XLIFF)),
    ".json": _messages,
}


def nasty_files(count: int = 200) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file; the formats take turns, and the files never change."""
    for number in range(count):
        chance, suffix = random.Random(number), list(MAKERS)[number % len(MAKERS)]
        text, ending = MAKERS[suffix](chance), chance.choice(["\n", "\n", "\r\n"])
        mark, last = chance.choice(["", "", "\ufeff"]), chance.choice(["", "\n"])
        yield f"{number}{suffix}", f"{mark}{text.rstrip(chr(10))}{last}".replace("\n", ending).encode()


def translated_files(folder: Path) -> dict[str, tuple[bytes, bytes]]:
    """Return each nasty file before and after its translation by a random model, which a folder is for.

    The model reads and writes characters, and its attention links words and so places tags.
    """
    files = {name: (data, DocumentSentences(Document.read(name, data), "en")) for name, data in nasty_files()}
    read = "".join(sorted({*b"".join(data for data, _ in files.values()).decode()} - {"\n", "\r"}))
    tokenizers = train_tokenizers([read], [WRITTEN], TokenizerConfig(kind="characters", joint=False))
    model = random_translator(folder, tokenizers=tokenizers, extra_length=20, encoder_layers=1, decoder_layers=1)
    wanted = [text for _, document in files.values() for text in document.wanted]
    found = iter(model.translate(wanted, links=True, sample=True, prefix="a"))
    return {
        name: (data, document.rebuilt([next(found) for _ in document.wanted])[0])
        for name, (data, document) in files.items()
    }
