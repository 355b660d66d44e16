"""Check that each sentence of the explorer's page is true of the model that the page shows.

A sentence is read as a text, as a reader sees it. The text must be made of the page's templates (`claims.py`).
`checks.py` has a function for each template, which compares the text with PyTorch's values (`seen.py`). A text without
a template, or a template without a check, is reported like a false sentence. `visit.py` brings a page into its states.

Words used in this package: the *lit* word, box or head is the highlighted one, which the page talks about; an *opened*
box shows its numbers; a *turned* row of attention has weights that the reader has set by hand.
"""
