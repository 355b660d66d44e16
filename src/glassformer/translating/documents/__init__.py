"""Documents: files whose text is translated while every other byte stays as it is.

`document` reads and writes files; `plain_text` turns a text file into units, and `markup` a page; `sentences` connects
them with a model.
"""
