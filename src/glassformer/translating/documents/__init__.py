"""Documents: files whose text is translated, while all other bytes are kept.

`document` reads and writes files. `plain_text` divides a text file into units, and `markup` divides a web page.
`sentences` connects the units with a model.
"""
