"""A Sphinx extension: search in Chinese text, whose words are not separated by spaces.

Each run of characters is indexed as a whole and by its pairs of neighbouring characters. A query of two characters is
then found as a word, and a longer query as part of a run.
"""

import re
from itertools import pairwise

from sphinx.application import Sphinx
from sphinx.search.zh import SearchChinese

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


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the language."""
    app.add_search_language(Runs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
