"""The translation page of the service: one HTML page that loads nothing from other sites.

All texts of users and models arrive as JSON and are shown as text, never as HTML. The Content-Security-Policy allows
only the page's own script and style sheet, and requests to the service.
"""

import base64
import hashlib
import json
from functools import lru_cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from glassformer.serving.detection import has_detector
from glassformer.serving.endpoints import Endpoint
from glassformer.serving.own import OWN
from glassformer.serving.service import Service
from glassformer.system.page_headers import PAGE_HEADERS

__all__ = ["page_endpoints"]

PAGE_LANGUAGES = ("en", "zh")
MARKUP = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>glassformer</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript>
<p>This page needs JavaScript: please switch it on.</p>
<p lang="zh">本页面需要 JavaScript：请启用它。</p>
</noscript>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def page_endpoints() -> list[Endpoint]:
    """Return the endpoint of the page."""
    return [Endpoint(OWN, "GET", "/", _page, gives="text/html")]


async def _page(service: Service, _: Request) -> Response:
    """The translation page."""
    detects = len(service.models.sources) > 1 and has_detector()
    return HTMLResponse(_html(service.limits.alternatives, detects), headers=_headers())


@lru_cache
def _html(alternatives: int, detects: bool) -> str:
    """Return the page, for a service with this number of alternatives; `detects` says whether it detects languages."""
    texts = json.loads(_read("strings.json"))
    strings = {language: {key: both[at] for key, both in texts.items()} for at, language in enumerate(PAGE_LANGUAGES)}
    data = json.dumps({"strings": strings, "alternatives": alternatives, "detects": detects}).replace("<", r"\u003c")
    return MARKUP.format(style=_read("page.css"), script=_read("page.js"), data=data)


@lru_cache
def _headers() -> dict[str, str]:
    rules = {
        "default-src": "'none'",
        "script-src": f"'sha256-{_digest('page.js')}'",
        "style-src": f"'sha256-{_digest('page.css')}'",
        "img-src": "data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        **PAGE_HEADERS,
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in rules.items()),
    }


def _digest(name: str) -> str:
    return base64.b64encode(hashlib.sha256(_read(name).encode()).digest()).decode()


@lru_cache
def _read(name: str) -> str:
    return (files("glassformer.serving") / name).read_text(encoding="utf-8")
