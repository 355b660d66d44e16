"""Checks a built site: every local link leads to a file and, after #, to an anchor in it."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Links(HTMLParser):
    """The anchors and the addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors and addresses of a tag."""
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a":
            self.links += [values[name] for name in ("href", "xlink:href") if name in values]
        if tag in _LOADED and _LOADED[tag] in values:
            self.loaded.append(values[_LOADED[tag]])


def broken_links(site: Path) -> list[str]:
    """Return the broken links of a site, one line each."""
    pages = {
        path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "explorer.html"
    }
    problems = []
    for path, page in pages.items():
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded:
                    problems.append(f"{path.relative_to(site)}: loads {link} from the network")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                problems.append(f"{path.relative_to(site)}: {link}: no such file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                problems.append(f"{path.relative_to(site)}: {link}: no such anchor")
    return sorted(set(problems))
