"""Documents: files whose text is translated while every other byte stays as it is.

A format's module turns a file into units (`chunks`); `tags` takes inline tags out of a unit and puts them back;
`document` reads and rebuilds files; `sentences` connects both with a model.
"""
