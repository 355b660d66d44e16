"""Texts with tags: a model translates the words, and the tags follow them.

`scanning` finds the tags; `reading` turns a text into units by the rules of `html_pages` or `xml_texts`; `pieces` says
which characters of a translation come from which of the source; `projection` puts the tags around them.
"""
