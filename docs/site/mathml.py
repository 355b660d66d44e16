"""A Sphinx extension: formulas as MathML, which browsers draw themselves, without a script and without a network."""

from docutils import nodes
from math_core import LatexToMathML
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_CONVERTER = LatexToMathML()


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_CONVERTER.convert_with_local_state(node.astext(), displaystyle=False))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    formula = _CONVERTER.convert_with_local_state(node.astext(), displaystyle=True)
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
