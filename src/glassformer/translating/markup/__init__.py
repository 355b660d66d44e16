"""Texts with tags: a model translates plain text, and the tags are put around the translated words.

`scanning` finds the tags. `reading` divides a text into units by the rules of `html_pages` or `xml_texts`. `pieces`
assigns the characters of a translation to characters of the source, and `projection` puts the tags around them.
"""
