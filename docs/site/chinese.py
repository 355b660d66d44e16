"""A Sphinx extension: the theme's words in Chinese, and search in Chinese text, which has no spaces between words.

Each run of characters is indexed as a whole and by its pairs of neighbouring characters. A query of two characters is
then found as a word, and a longer query as part of a run.
"""

import re
from itertools import pairwise

from sphinx.application import Sphinx
from sphinx.search.zh import SearchChinese

THEME = {
    "<span>Next</span>": "<span>下一页</span>",
    "<span>Previous</span>": "<span>上一页</span>",
    '<div class="title">Home</div>': '<div class="title">首页</div>',
    ">Skip to content<": ">跳到正文<",
    "Back to top": "回到顶部",
    "On this page": "本页内容",
    "Copyright &#169;": "版权所有 &#169;",
    "Made with ": "制作工具：",
    "the authors of glassformer; Apache-2.0": "glassformer 的作者；Apache-2.0",
    "Toggle site navigation sidebar": "打开或关闭网站目录",
    "Toggle table of contents sidebar": "打开或关闭本页目录",
    "Toggle Light / Dark / Auto color theme": "切换配色：浅色、深色、自动",
    "Toggle hidden content": "显示或隐藏",
    "<title>Contents</title>": "<title>目录</title>",
    "<title>Menu</title>": "<title>菜单</title>",
    "<title>Expand</title>": "<title>展开</title>",
    "<title>Light mode</title>": "<title>浅色</title>",
    "<title>Dark mode</title>": "<title>深色</title>",
    "<title>Auto light/dark, in light mode</title>": "<title>自动，现在是浅色</title>",
    "<title>Auto light/dark, in dark mode</title>": "<title>自动，现在是深色</title>",
}
"""What the theme and the notebooks' extension say in English only, as it stands in their pages."""
_RUN = re.compile(r"[\u3400-\u9fff]+")


class Runs(SearchChinese):
    """Search in Chinese without a dictionary."""

    # The page uses this language's stemmer for Latin words; Sphinx 9.0 would name a missing stemmer.
    language_name = "English"

    def split(self, input: str) -> list[str]:
        """Return the words of a text: Latin ones, runs of Chinese characters, and the pairs in them."""
        latin = self.latin1_letters.findall(input)
        self.latin_terms.update(latin)
        runs = _RUN.findall(input)
        return [*latin, *runs, *("".join(pair) for run in runs for pair in pairwise(run))]


def translate_theme(app: Sphinx, failed: Exception | None) -> None:
    """Write the theme's words in Chinese into the pages of the Chinese site."""
    if failed or not app.config.language.startswith("zh"):
        return
    for page in app.outdir.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for english, chinese in THEME.items():
            text = text.replace(english, chinese)
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the language."""
    app.add_search_language(Runs)
    app.connect("build-finished", translate_theme)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
