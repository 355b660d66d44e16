"""A Sphinx extension: search in Chinese text, whose words no spaces tell apart.

Each run of characters is indexed whole and by its pairs of neighbours, so that a query of two characters is found as a
word and a longer one as a part of a run.
"""

import re
from itertools import pairwise

from sphinx.application import Sphinx
from sphinx.search.zh import SearchChinese

_RUN = re.compile(r"[\u3400-\u9fff]+")


class Runs(SearchChinese):
    """Chinese without a dictionary."""

    # Whose stemmer the page uses for Latin words; Sphinx 9.0 would name one that is not there.
    language_name = "English"

    def split(self, input: str) -> list[str]:
        """Return the words of a text: Latin ones, runs of Chinese characters, and the pairs in them."""
        latin = self.latin1_letters.findall(input)
        self.latin_terms.update(latin)
        runs = _RUN.findall(input)
        return [*latin, *runs, *("".join(pair) for run in runs for pair in pairwise(run))]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the language."""
    app.add_search_language(Runs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
