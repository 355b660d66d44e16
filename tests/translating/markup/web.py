"""Texts with tags from programs and pages, each with the same text in capitals wherever people read it.

None in place of the text in capitals means: capitals everywhere outside tags and entities.
"""

import re

WEB: list[tuple[str, str | None]] = [
    # Mastodon, Discourse, WordPress, Nextcloud, MediaWiki, GitHub
    (
        '<p><span class="h-card" translate="no"><a href="https://a.social/@gargron" class="u-url mention">@'
        '<span>gargron</span></a></span> I agree with <a href="https://a.social/tags/cats" class="mention hashtag" '
        'rel="tag">#<span>cats</span></a>!</p>',
        '<p><span class="h-card" translate="no"><a href="https://a.social/@gargron" class="u-url mention">@'
        '<span>gargron</span></a></span> I AGREE WITH <a href="https://a.social/tags/cats" class="mention hashtag" '
        'rel="tag">#<span>CATS</span></a>!</p>',
    ),
    ("<p>First line<br>second line<br /><br />third</p><p>Next paragraph</p>", None),
    (
        '<p>Hey, see <code>config.yml</code> <img src="/smile.png?v=12" class="emoji" width="20" height="20"> now</p>',
        '<p>HEY, SEE <code>config.yml</code> <img src="/smile.png?v=12" class="emoji" width="20" height="20"> NOW</p>',
    ),
    (
        '<aside class="quote no-group" data-username="bob" data-post="3">\n<div class="title">\n'
        '<div class="quote-controls"></div>\n Bob said:</div>\n<blockquote>\n<p>The cat slept.</p>\n</blockquote>\n'
        "</aside>\n<p>Yes.</p>",
        None,
    ),
    (
        '<!-- wp:paragraph {"align":"center"} -->\n<p class="centred">Hello there</p>\n<!-- /wp:paragraph -->',
        '<!-- wp:paragraph {"align":"center"} -->\n<p class="centred">HELLO THERE</p>\n<!-- /wp:paragraph -->',
    ),
    (
        'Read the <a href="{link}" target="_blank" rel="noreferrer noopener">documentation ↗</a> for %d days.',
        'READ THE <a href="{link}" target="_blank" rel="noreferrer noopener">DOCUMENTATION ↗</a> FOR %d DAYS.',
    ),
    (
        '<p>The cat slept.<sup id="cite_ref-1" class="reference"><a href="#cite_note-1">[1]</a></sup>'
        '<sup id="cite_ref-2" class="reference"><a href="#cite_note-2">[2]</a></sup> It woke.</p>',
        None,
    ),
    (
        '<li><input type="checkbox" disabled checked> Add a test</li>\n<li>Fix it (<a href="/i/7">#7</a>)</li>',
        None,
    ),
    (
        '<pre><code class="lang-py">def f(x):\n    return x  # note\n</code></pre>',
        '<pre><code class="lang-py">def f(x):\n    return x  # note\n</code></pre>',
    ),
    ("Press <kbd>ctrl</kbd>+<kbd>c</kbd> now", "PRESS <kbd>ctrl</kbd>+<kbd>c</kbd> NOW"),
    # Reports of users of translate-html, DeepL and Bergamot
    (
        '<a href="#" target="_blank">\n  <em>\n    <span style="color: #ff0000;">\n     View the complete range of\n'
        '    </span>\n  </em>\n  <em>\n    <span style="color: #ff0000;">\n      drawer systems here!\n    </span>\n'
        "  </em>\n</a>",
        None,
    ),
    ("<p>1-<i>London, Paris</i></p>", None),
    (
        '<div>\n    <a href="01.html">Chapter I. Margaret Makes Herself at Home</a>\n  </div>\n  <div>\n'
        '    <a href="02.html">Chapter II. Stephen\'s Life Goes On</a>\n  </div>',
        None,
    ),
    ('<b id="1a" style="color:red">1<i id="1b"> inside b</i></b> <i id="1c">italic</i>', None),
    ('<b>d</b><i>o</i><a id="1">g</a>', None),
    ("<b>Save time<br/></b>by simple organisation", None),
    ("<p>hello</p>", None),
    ('Good evening <a href="" onclick="check(1 > 0 && \'a\');">this is a test</a> ready', None),
    ("<p>\n\t\tIf a line has no verb\n\t\tthe translation must\n\t\tbe wrong.\n\t</p>", None),
    # Words, spaces, punctuation
    ("<p>Water is H<sub>2</sub>O and E=mc<sup>2</sup>.</p>", None),
    ('un<b>believ</b>able, <span class="dropcap">o</span>nce upon a time', None),
    ('<a href="/">Home</a><a href="/cats">Cats</a><a href="/dogs">Dogs</a>', None),
    ('<a href="/a">News</a> | <a href="/b">About us</a> &raquo; <b>Here</b>', None),
    ("Is it true<b>?</b> Yes<i>.</i> “<em>Quoted</em>” (<a href='#'>see</a>)", None),
    ("<b>bold </b><i> italic</i> a<b> </b>b\t<u>\ttab</u>", None),
    ("  leading <b>and</b> trailing  \n", None),
    ("Tom & Jerry at 1 < 2 and 3 > 2", None),
    ("Fish &amp; chips &lt;3 &copy;&nbsp;2024 &#x1F600;", None),
    ("caf&eacute; cr&#232;me", "CAFÉ CRÈME"),
    ("&lt;b&gt;not a tag&lt;/b&gt;", "&lt;b&gt;NOT A TAG&lt;/b&gt;"),
    ("<p>The price is $5 (<s>$9</s>) &ndash; save 40%<br></p>", None),
    # Elements
    ('Click <i class="fa fa-home"></i> to go <span class="icon" aria-hidden="true"></span>home', None),
    ('<a id="top"></a>Title <a name="x"/>of the page', None),
    ("<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rp>(</rp><rt>じ</rt><rp>)</rp></ruby>です", None),
    ("<p>One<p>two<ul><li>three<li>four</ul>", None),
    ("</b>stray close <i>open", None),
    ("<B>Bold</B> <A HREF=x>link</A><BR>", None),
    ("<table><tr><th>Name</th><th>Age</th></tr><tr><td>Ann</td><td>7</td></tr></table>", None),
    ("<select><option value=1 selected>Red</option><option>Blue</option></select>", None),
    ("<details open><summary>More</summary>Hidden <mark>text</mark></details>", None),
    ("<my-card name='x'><slot>Text</slot></my-card>", None),
    (
        "<script>if (a < b && c > d) say('<p>hi</p>');</script><p>text</p>",
        "<script>if (a < b && c > d) say('<p>hi</p>');</script><p>TEXT</p>",
    ),
    (
        "<style>p > a { color: red }</style><!-- a -- note --><p>te<!-- x -->xt</p>",
        "<style>p > a { color: red }</style><!-- a -- note --><p>TE<!-- x -->XT</p>",
    ),
    ('<a\n  href="x"\n  class="y"\n>Link</a>', None),
    (
        "run <code translate=no>make</code> in <span class='notranslate'>Foo bar</span> now",
        "RUN <code translate=no>make</code> IN <span class='notranslate'>Foo bar</span> NOW",
    ),
    ("he said <span lang='fr'>bonjour</span> to me", "HE SAID <span lang='fr'>bonjour</span> TO ME"),
    # Attributes that people read
    ('<img src="cat.png" alt="a cat" title="my cat">', '<img src="cat.png" alt="A CAT" title="MY CAT">'),
    (
        "<input type=submit value='send it'><input type=text value=keep placeholder='your name'>",
        "<input type=submit value='SEND IT'><input type=text value=keep placeholder='YOUR NAME'>",
    ),
    (
        '<button aria-label="close">×</button><a title="a &quot;b&quot;" href="c">d</a>',
        '<button aria-label="CLOSE">×</button><a title="A &quot;B&quot;" href="c">D</a>',
    ),
    (
        '<meta name="description" content="all about cats"><meta name="viewport" content="width=device-width">',
        '<meta name="description" content="ALL ABOUT CATS"><meta name="viewport" content="width=device-width">',
    ),
    # Placeholders in tags and beside them
    ("You have <b>%d</b> new messages from {name}", "YOU HAVE <b>%d</b> NEW MESSAGES FROM {name}"),
    (
        '<a href="%(url)s">%(count)s items</a> in <i>{{ cart.name }}</i>',
        '<a href="%(url)s">%(count)s ITEMS</a> IN <i>{{ cart.name }}</i>',
    ),
    ("{% if x %}<b>yes</b>{% else %}no{% endif %}", "{% if x %}<b>YES</b>{% else %}NO{% endif %}"),
    (
        "Write to <a href='mailto:me@a.org'>me@a.org</a> or see <a href='https://a.org/x'>https://a.org/x</a>.",
        "WRITE TO <a href='mailto:me@a.org'>me@a.org</a> OR SEE <a href='https://a.org/x'>https://a.org/x</a>.",
    ),
    # Scripts
    ("<p>中文<b>粗体</b>文字<a href='#'>链接</a>。%s个</p>", "<p>中文<b>粗体</b>文字<a href='#'>链接</a>。%s个</p>"),
    ('<p dir="rtl">مرحبا <b>بالعالم</b>، {name}!</p>', '<p dir="rtl">مرحبا <b>بالعالم</b>، {name}!</p>'),
]

XML: list[tuple[str, str | None]] = [
    ('<?xml version="1.0" encoding="UTF-8"?>\n<t>hello</t>', '<?xml version="1.0" encoding="UTF-8"?>\n<t>HELLO</t>'),
    ('Click <bpt i="1"/>here<ept i="1"/> now', None),
    ('<g id="1">Click <x id="2"/>here</g> <ph id="3"/>again', None),
    ('<w:r><w:t xml:space="preserve">Hello </w:t></w:r><w:r><w:t>world</w:t></w:r>', None),
    ("<doc><p>A cat</p><p>A dog<br/></p></doc>", None),
    ('Hello <x id="1"></x>, welcome to <x id="2"></x>', None),
]


def in_capitals_outside_tags(text: str) -> str:
    """Return a text with capitals everywhere outside its tags and entities."""
    tag_or_entity = r"""(<[a-zA-Z/!?](?:"[^"]*"|'[^']*'|[^>"'])*>|&#?\w+;)|[^<&]+|[<&]"""
    return re.sub(tag_or_entity, lambda found: found[1] or found[0].upper(), text)
