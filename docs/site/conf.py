"""Sphinx's settings; build.py adds those that depend on the language."""

project = "glassformer"
author = "the authors of glassformer"
copyright = "the authors of glassformer; Apache-2.0"
html_title = "glassformer"
html_short_title = "glassformer"
extensions = [
    "myst_nb",
    "mathml",
    "chinese",
    "navigation",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]

nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show = "Code"
nb_code_prompt_hide = "Hide the code"
nb_render_markdown_format = "myst"  # tables in Markdown that a cell displays
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]
html_math_renderer = "mathml"
smartquotes = False  # would turn --option into a dash
nitpicky = True
# Types in signatures are shown, not linked: most are torch's or the standard library's, whose pages are on the network.
nitpick_ignore_regex = [("py:.*", ".*")]

default_role = "code"  # a docstring writes `name` for code
autodoc_member_order = "bysource"
napoleon_custom_sections = [(name, "notes_style") for name in ("Shape", "Axes", "Paper", "Differs")]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css", "book.css"]
html_js_files = ["home.js"]
templates_path = ["templates"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # it fetches pages, which browsers refuse under file://
html_use_index = False
html_domain_indices = False
html_theme_options = {"top_of_page_buttons": []}
copybutton_exclude = ".linenos, .gp, .go"
