"""Check that each sentence of the explorer's page is true of the model that the page shows.

A sentence is read as a reader sees it: as text, which must be made of templates of the page's texts (`claims.py`).
`checks.py` has a function for each template, which compares it with what PyTorch computes (`seen.py`). A text without a
template, or a template without a check, is reported like a false sentence. `visit.py` leads through the states of a
page.
"""
