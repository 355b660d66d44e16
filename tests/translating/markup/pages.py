"""Texts similar to real pages: templates written by hand, and many texts made from these templates.

Each template has placeholders: "{}" is a sentence or a phrase, and "{w}" is one word. The inserted texts come from the
demo's grammar and from everyday pages.
"""

import random
from collections.abc import Iterator, Sequence

TEMPLATES = (
    # News, blogs and encyclopaedias
    '<p>{} <a href="/wiki/Cat">{}</a> {}.</p>',
    '{}.<sup><a href="#1">[1]</a></sup> {}.',
    '{}<sup class="reference"><a href="#cite-2"><span>[</span>2<span>]</span></a></sup>, {}.',
    '{}.<sup><i><a href="/why" title="{}">[citation needed]</a></i></sup> {}',
    '<b>{}</b> (<span lang="la">Felis catus</span>, <i>{}</i>) {}.',
    "<a href=x>{w}</a>s {} <a href=y>{w}</a>-{w} {}",
    "{}: <i>{}</i>; <b><i>{}</i></b>, <i><b>{}</b></i>.",
    "<p>{}<br>{}<br/>\n{}</p>",
    '<h2><span id="History">{}</span><span class="edit">[<a href="?edit">edit</a>]</span></h2>',
    '<figure><img src=a.png alt="{}"><figcaption>{} <small>(<a href="#">{}</a>)</small></figcaption></figure>',
    "<blockquote>“{}” — <cite>{}</cite></blockquote>",
    "<q>{}</q>, {} <em>{}</em>!",
    "<p class=lead><span class=dropcap>{w}</span> {}.</p>",
    '<time datetime="2024-01-02">2 January 2024</time> · <a rel=author href=/a>{w}</a> · {}',
    '{} <abbr title="{}">{w}</abbr> {}.',
    "<p>{} <ins>{}</ins> <del>{}</del> {}</p>",
    "<p>{}&nbsp;: {}&hellip; {} &amp; {}</p>",
    "{} &ldquo;{}&rdquo; &mdash; {} &#8212; {}",
    "caf&eacute; {} d&eacute;j&agrave; {} na&#239;ve",
    "<p>\n   {}\n   <b>{}</b>\n   {}\n</p>",
    # Words with tags inside, and tags that touch
    "{w}<sup>2</sup> {}",
    "{w}<b>{w}</b> {}",
    "<b>{w}</b>{w} {}",
    "<b>{w}</b><i>{w}</i> {}",
    "{}<b>{w}</b><i>{w}</i><u>{w}</u>",
    "H<sub>2</sub>O {} CO<sub>2</sub>, {}",
    "x<sup>2</sup> + y<sup>n</sup> = 10<sup>-6</sup> {}",
    "the 1<sup>st</sup>, the 2<sup>nd</sup> {}",
    "n<sup>o</sup> 5 {} 30&nbsp;m<sup>2</sup>.",
    "{w}<wbr>{w}&shy;{w} {}",
    "{w}<!-- -->{w} {}<!-- react --> {}",
    "<a href=1>{}</a><a href=2>{}</a>",
    "<a href=1>{w}</a><a href=2>{w}</a><a href=3>{w}</a>",
    "<span>{}</span><span>{}</span>",
    '<label>{}</label><input type=text placeholder="{}"><label>{}</label>',
    "<b>{} </b>{}<i> {}</i>",
    "<b>{}, </b>{}",
    "({}<b>)</b> {} <b>(</b>{})",
    "<b>{}:</b> {}",
    "{}<b>:</b> {}",
    "{} <b>{}</b>, {}",
    "{} <b>{},</b> {}",
    "\"<b>{}</b>\" {} '<i>{}</i>'",
    "«&nbsp;<b>{}</b>&nbsp;» {}",
    "{}…<b>…{}</b>",
    "{}<b> </b>{}",
    "{}<b></b> {} <i></i>{}",
    "<b><i><u>{}</u></i></b> {}",
    "<b>{} <i>{} <u>{}</u></i></b>",
    "<b>{}<i>{w}</i></b>{w}",
    "<b><a href=x>{w}</a></b><i><a href=y>{w}</a></i>",
    # Menus, buttons, icons, forms
    "<nav><a href=/>Home</a><a href=/cat>{}</a><a href=/dog>{}</a></nav>",
    "<ul><li><a href=/>{}</a></li><li><a href=/b>{}</a> <span class=badge>3</span></li></ul>",
    '<i class="icon icon-home"></i> {}',
    '<a href=x><i class="fa fa-cat"></i>{}</a>',
    '<a href=x>{} <i class="fa fa-arrow"></i></a> {}',
    '<button type=submit title="{}"><svg><path d="M0"/></svg> {}</button>',
    "<input type=submit value=\"{}\"> {} <input type=button value='{}'>",
    '<input type=text value="keep me" aria-label="{}">{}',
    "<p>{} <kbd>Ctrl</kbd>+<kbd>C</kbd> {}</p>",
    "<p>{} <code>git push</code> {} <samp>ok</samp>.</p>",
    "<a href=/a>{}</a> | <a href=/b>{}</a> | <a href=/c>{}</a>",
    "<a href=/a>{}</a> <span>•</span> <a href=/b>{}</a>",
    "<span>{}</span> <span>/</span> <span>{}</span>",
    "<label for=a>{} <span class=required>*</span></label>",
    '<option label="{}">{}</option>',
    "<table><tr><th>{}<th>{}<tr><td>{}<td>12.5</table>",
    "<td><a href=x>{}</a><br><small>{}</small></td>",
    "<details><summary>{}</summary>{} <mark>{}</mark></details>",
    '<meta name="description" content="{}"><title>{}</title><p>{}</p>',
    '<p title="{} &amp; {}" data-x="a > b">{}</p>',
    "<img alt='{}' src=a>{}<img src=b alt=\"{}\" />",
    # Parts that must stay unchanged
    '{} <span translate="no">Glassformer</span> {}',
    '{} <b class="brand notranslate">Cat & Co</b>, {}',
    "<p translate=no>keep <b>this</b></p><p>{}</p>",
    "<span translate=no>keep <em translate=yes>{}</em></span> {}",
    "{} <i lang=fr>coup d’état</i> {}",
    "{} <script>if (a<b) '<p>x'</script> {}<style>p{{}}</style>",
    "<pre>\n  keep  </pre>{}",
    "{} <math><mi>x</mi></math> {}",
    "<textarea>keep</textarea> {}",
    "{} <!-- a > b --> {}<!---->",
    "<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp>字<rt>ji</rt></ruby> {}",
    "{} <ruby><rb>{w}</rb><rt>x</rt></ruby> {}",
    "<noscript>{}</noscript><template><p>keep</p></template>",
    # Posts and mails
    '<p>{} <span class="h-card" translate="no"><a href="https://x.org/@a">@<span>cat</span></a></span> {}</p>',
    '<p>{} <a href="https://example.org/a"><span class=invisible>https://</span><span>example.org/a</span></a></p>',
    "<p>#<span>{w}</span> {}</p>",
    '<a class=hashtag href="/t">#<span>{w}</span></a> <a class=hashtag href="/u">#<span>{w}</span></a> {}',
    '<p>{} :blobcat: <img class=emoji alt=":cat:" src=e.png> {}</p>',
    "<p>{} &lt;3 {} &gt; {}</p>",
    "Tom & Jerry: {}",
    "AT&T, R&D &copy 2024 {} &noentity; {}",
    "<div>{}<div>{}</div>{}</div>",
    "<p>{}</p>\n\n<p>{} <b>{}</b></p>\n",
    "{}<p>{}<p>{}",
    "<font color=red>{} <font size=2>{}</font></font>",
    "<p>{} <font color=red>{}</p><p>{}</font> {}</p>",
    "<b>{} <i>{}</b> {}</i>",
    "</b>{}</p></i> {}",
    "<p>{} <b>{}",
    "<p>{} 1 < 2 {} a<b, c>d {}",
    "<A HREF=X>{}</A> <B>{}</b> <IMG SRC=a>",
    "<a\n href=\"x\"\n title='{}'\n>{}</a\n> {}",
    "<a href=x title={w}>{}</a>",
    '<x-card heading="a">{}</x-card> {} <my-icon></my-icon>',
    "<svg><title>keep</title></svg> {} <object>{}</object>",
    "<video controls>{}</video> {} <iframe src=x></iframe> {}",
    "<bdi>{}</bdi> {} <bdo dir=rtl>{w}</bdo>",
    "<dl><dt>{}<dd>{} <dfn>{}</dfn></dl>",
    "<s>{}</s> <strike>{}</strike> <big>{}</big> <tt>keep</tt> {}",
    # Codes of translators' tools
    '{} <bpt id="1">{{b}}</bpt>{}<ept id="1">{{/b}}</ept> {}',
    "<bpt i='1'/>{}<ept i='1'/> {}",
    '<bx id="1"/>{}<ex id="2" rid="1"/> {}',
    '<sc id="1"/>{}<ec startRef="1"/>, {}',
    '<g id="1">{}</g><g id="2">{w}</g> {}',
    '{} <x id="1"></x>, {} <x id="2"/> {}',
    "<ph id=1>%s</ph> {}: <ph id=2>%d</ph>",
    "<0>{}</0> {} <1>{}</1>",
    "{} <0>{} <1>{}</1></0> <2/> {}",
    "<bold>{}</bold> {} <link>{}</link>",
    "<strong>{{name}}</strong> {} <em>%s</em>",
    '{} <b>{{count}}</b> {}, <a href="{{url}}">{}</a>',
    '<a href="https://example.org/?a=1&b=2">https://example.org/?a=1&amp;b=2</a> {}',
    '{} <a href="mailto:a@b.org">a@b.org</a>.',
    # Punctuation and spaces
    "<b>{}</b>. <i>{}</i>! <u>{}</u>?",
    "<b>{}.</b> <i>{}!</i> <u>{}?</u>",
    "<b>{}</b>.<i>{}</i>",
    "¿<b>{}</b>? ¡<i>{}</i>!",
    "{} (<b>{}</b>) [<i>{}</i>] {}",
    "<b>(</b>{}<b>)</b>",
    "<p> {}  {} \t <b> {} </b> </p>",
    "<p>&nbsp;{}&nbsp;<b>&nbsp;{}</b></p>",
    "{} <img src=a> <img src=b> {}",
    "{}<img src=a> {} <img src=b>{}",
    "{}<br><br>{}<br>",
    "{} <br> <b>{}</b> <br>{}",
    "<b>{}</b> <br><i>{}</i><hr>{}",
    "- {}<br>- {}<br>* <b>{}</b>",
    "1. {}<br/>2. <b>{}</b>",
    "<i>{}</i>'s {} l'<b>{w}</b> d’<i>{w}</i>",
    "{w}/<b>{w}</b>/{w} {}",
    "{w}-<b>{w}</b>-{w} {}",
    "{w}@<b>{w}</b>.org {}",
    "$<b>5</b>.<sup>99</sup> {} <s>$10</s>",
    "<b>1</b>,<b>000</b> {} 50<small>%</small>",
    "{} <b>😀</b> {} 👩‍👩‍👧<i>{}</i>",
    "ﬁ<b>{}</b>ß <i>é{}</i> İ",
    "中文<b>{}</b>日本語。<i>{}</i>ไทย",
    "<b>עברית</b> {} <span dir=rtl>עברית {}</span>",
    "{}\u2028<b>{}</b>\u00a0{}\u200b{}",
    "<b>{}</b>\r\n<i>{}</i>\r\n",
    "{}<b\t>{}</b\n>{}",
    "<![CDATA[x]]>{} <?php echo ?> {} <!DOCTYPE html>",
    "<p>{} <a name=here></a>{} <a id=there>{}</a></p>",
    "<sup>{}</sup> {} <sub>{}</sub>",
    "{}<sup>1,2</sup><sup>*</sup> {}†<sup>‡</sup>",
    "{} [<a href=#1>1</a>] {} [<a href=#2>2</a>, <a href=#3>3</a>].",
    "<a href=#>«</a> <a href=#>1</a> <a href=#>2</a> {} <a href=#>»</a>",
    "<small><a href=x>{}</a> (<a href=y>{w}</a>)</small>",
    "{} <em><strong>{}</strong> {}</em><strong><em>{}</em></strong>",
)
"""Units in the form that pages use."""

Texts = tuple[Sequence[str], Sequence[str]]

SENTENCES = (
    "The black cat slept on the rug", "He did not see us", "Sign in", "Read more", "A dog", "the old house",
    "two cats and a dog", "It's here", "Mrs. Smith, M.D., left", "on 12.5 % of 1,000 pages", "see Fig. 3", "I",
    "The girl gave the boy a book because he was tired", "why not", "e.g. this one", "NASA", "état",
)  # fmt: skip
WORDS = ("cat", "rug", "I", "The", "house", "été", "2nd", "don't", "X")
UNSPACED = {
    "zh": (
        (
            "黑猫睡在地毯上",
            "他没有看见我们",
            "登录",
            "阅读全文",
            "“老房子”（旧）",
            "2只猫和1条狗",
            "请看第3页，谢谢",
            "用Python写",
        ),
        ("猫", "地毯", "我", "第2", "X", "们"),
    ),
    "ja": (
        (
            "黒い猫がカーペットの上で寝ていた",
            "ログイン",
            "続きを読む",
            "「古い家」",
            "2匹の猫と犬",
            "待っている、ね",
            "人々",
        ),
        ("猫", "カーペット", "コーヒー", "って", "第2", "X"),
    ),
    "th": (
        ("แมวดำนอนบนพรม", "เขาไม่เห็นเรา", "เข้าสู่ระบบ", "อ่านเพิ่มเติม", "บ้านเก่า (เก่า)", "แมว 2 ตัวและสุนัข", "ที่นี่ กีฬา"),
        ("แมว", "พรม", "ที่", "น้ำ", "2", "X"),
    ),
}
"""Texts in scripts without spaces between words."""


def pages(count: int = 2400, seed: int = 1, texts: Texts = (SENTENCES, WORDS)) -> Iterator[str]:
    """Yield texts with tags: each template in turn, filled with these sentences and words; some texts are joined."""
    chance = random.Random(seed)
    for number in range(count):
        text = _filled(TEMPLATES[number % len(TEMPLATES)], texts, chance)
        while chance.random() < 0.15:
            text += chance.choice(["", " ", "\n", " and "]) + _filled(chance.choice(TEMPLATES), texts, chance)
        yield text


def _filled(template: str, texts: Texts, chance: random.Random) -> str:
    sentences, words = texts
    parts = template.replace("{{", "\0").replace("}}", "\1").split("{")
    text = parts[0]
    for part in parts[1:]:
        kind, _, rest = part.partition("}")
        text += chance.choice(words if kind == "w" else sentences) + rest
    return text.replace("\0", "{").replace("\1", "}")
