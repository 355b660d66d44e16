"""Read documents with translate-toolkit: the source, target, context and comments of each unit."""

import base64
import json
import sys
from pathlib import PurePath

from translate.storage.jsonl10n import JsonFile
from translate.storage.markdown import MarkdownFile
from translate.storage.pypo import pofile
from translate.storage.subtitles import SubRipFile
from translate.storage.txt import TxtFile
from translate.storage.xliff import xlifffile

READERS = {
    ".json": JsonFile,
    ".md": MarkdownFile,
    ".po": pofile,
    ".srt": SubRipFile,
    ".txt": TxtFile,
    ".xlf": xlifffile,
}


def units(name, data):
    return [
        {
            "source": str(unit.source),
            "target": str(unit.target or ""),
            "context": unit.getcontext(),
            "notes": unit.getnotes(),
        }
        for unit in READERS[PurePath(name).suffix].parsestring(data).units
        if not unit.isheader()
    ]


json.dump([units(name, base64.b64decode(data)) for name, data in json.load(sys.stdin)["files"]], sys.stdout)
