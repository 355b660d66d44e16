"""Strings from message catalogues of programs, and the parts of each string that must not change."""

GETTEXT = [
    ("Could not open file “%s”: %s", "%s¦%s"),
    ("%'d of %'d bytes read (%3.1f%%)", "%'d¦%'d¦%3.1f%%"),
    ("Downloaded %*d bytes in %.*f seconds", "%*d¦%.*f"),
    ("Unable to write %zu bytes at offset %lld", "%zu¦%lld"),
    ("Address %#010x is out of range %p", "%#010x¦%p"),
    ("%+d points since %-10s", "%+d¦%-10s"),
    ("%2$s has been moved to %1$s", "%2$s¦%1$s"),
    ("There are %<PRIu64> packets left", "%<PRIu64>"),
    ("cannot stat '%s': %m", "%s¦%m"),
    ("Save 15% today with %s", "%s"),
    ("Battery at 80% – %d minutes left", "%d"),
    ("%(count)d result%(plural)s for “%(query)s”", "%(count)d¦%(plural)s¦%(query)s"),
    ("Hello %(user.name)s, you have %(n)03d mails", "%(user.name)s¦%(n)03d"),
    ("Error while reading:\n\n%(detail)s\n\nPlease try again.", "%(detail)s"),
    ("%A, %d %B %Y at %H:%M", "%A¦%d %B %Y¦%H:%M"),
    ("Usage: %s [options] file\n", "%s"),
]
BRACES = [
    ("{0} was renamed to {1}", "{0}¦{1}"),
    (
        "{user.first_name}'s cart ({items[0].qty:,d} items, {total:.2f} €)",
        "{user.first_name}¦{items[0].qty:,d}¦{total:.2f}",
    ),
    ("Processed {done:>5d}/{total} rows in {elapsed!s} seconds", "{done:>5d}¦{total}¦{elapsed!s}"),
    ("Hello {{ user.name | title }}, welcome to {{site}}!", "{{ user.name | title }}¦{{site}}"),
    ("{% if user %}Hello {{ user }}{% endif %}, please log in", "{% if user %}¦{{ user }}¦{% endif %}"),
    (
        "Posted by {{ author|e('html') }} on {{ date|date(\"Y-m-d\") }}",
        "{{ author|e('html') }}¦{{ date|date(\"Y-m-d\") }}",
    ),
    ("{0:yyyy-MM-dd} – {1,10:C2} paid", "{0:yyyy-MM-dd}¦{1,10:C2}"),
    ("Press $t(common.save) to keep {{count, number}} items", "$t(common.save)¦{{count, number}}"),
    ("{first} {last} <{email}> joined", "{first}¦{last}¦{email}"),
    ("Delete {{{name}}} for ever?", "{{{name}}}"),
    ("Hello, {name}! Today is {today, date, long}.", "{name}¦{today, date, long}"),
    ("{0,number,#.##} of {price, number, ::currency/EUR} left", "{0,number,#.##}¦{price, number, ::currency/EUR}"),
    ("Found {0,choice,0#no files|1#one file|1<{0} files} here", "{0,choice,0#no files|1#one file|1<{0} files}"),
]
DOLLARS = [
    ("Set $HOME or ${XDG_CONFIG_HOME} first", "$HOME¦${XDG_CONFIG_HOME}"),
    ("It costs $5 and you owe $amount.", "$amount"),
    ("Moved $1 pages to ${target_name}", "$1¦${target_name}"),
    ("%{count} messages in “%{folder}”", "%{count}¦%{folder}"),
    ("Total: %<price>.2f for %{name}", "%<price>.2f¦%{name}"),
    (
        "Hello #{user.name}, today is #{Time.now.strftime('%A')}",
        "#{user.name}¦#{Time.now.strftime('%A')}",
    ),
    ("Hello $user_name$!", "$user_name"),
    ("Already used: ${used}GB of ${total}GB", "${used}¦${total}"),
]
MEDIAWIKI = [
    ("The block was made by $1. The reason given is ''$2''.", "$1¦$2"),
    ("$1 {{GENDER:$2|moved}} page $3 to $4", "$1¦{{GENDER:$2|moved}}¦$3¦$4"),
    ("Showing $1–$2 of {{PLURAL:$3|$3 result|$3 results}}", "$1–$2¦{{PLURAL:$3|$3 result|$3 results}}"),
    ("File size: $1, MIME type: $2 ($3px)", "$1¦$2¦$3"),
    ("[[User:$1|$1]] costs $2.50", "$1¦$1"),
]
QT_AND_BOOST = [
    ("Copying file %1 of %2…", "%1¦%2"),
    ("%L1 bytes free on %2", "%L1¦%2"),
    ("%n file(s) selected", "%n"),
    ("%1% is not a valid value for option %2%.", "%1%¦%2%"),
    ("written by %|1$s|, %|2$+05d| times", "%|1$s|¦%|2$+05d|"),
    ("<b>%1</b> wants to connect to %2:%3", "<b>%1</b>¦%2:%3"),
]
PHONES = [
    ("%@ wants to share “%@” with you", "%@¦%@"),
    ("%1$@ of %2$@ (%lld%%)", "%1$@¦%2$@¦%lld%%"),
    ("%#@files@ selected", "%#@files@"),
    (
        'Delete <xliff:g id="name" example="Bob">%s</xliff:g>?',
        '<xliff:g id="name" example="Bob">%s</xliff:g>',
    ),
    ("%1$s sent you %2$d photos", "%1$s¦%2$d"),
]
TAGS = [
    ("Click <0>here</0> to read our <1>privacy policy</1>.", "<0>¦</0>¦<1>¦</1>"),
    ("<bold>Warning:</bold> this cannot be undone<br/>", "<bold>¦</bold>¦<br/>"),
    ("Welcome <1/> to <strong>{{name}}</strong>", "<1/>¦<strong>{{name}}</strong>"),
    ("Terms &amp; Conditions&nbsp;apply &#8212; &copy; 2024", "&amp;¦&nbsp;¦&#8212;¦&copy;"),
    (":white_check_mark: Build passed, :x: lint failed", ":white_check_mark:¦:x:"),
    ("Great work :+1: :tada:!", ":+1:¦:tada:"),
    ("@:message.hello world, @.lower:message.address please", "@:message.hello¦@.lower:message.address"),
]
NAMES = [
    ("Override __init__ and __str__ in my_model", "__init__¦__str__¦my_model"),
    ("Set debug_level in settings_local.py", "debug_level¦settings_local.py"),
    (
        "See https://en.wikipedia.org/wiki/Python_(programming_language)#History for more.",
        "https://en.wikipedia.org/wiki/Python_(programming_language)#History",
    ),
    ("Visit us (http://example.com/a?b=c&d=%20e).", "http://example.com/a?b=c&d=%20e"),
    ("Go to https://localhost:8080/#/users/{id}/edit now", "https://localhost:8080/#/users/{id}/edit"),
    ("ftp://user:pass@host.example:21/file.tar.gz is gone", "ftp://user:pass@host.example:21/file.tar.gz"),
    ("Write to first.last+tag@sub.example.co.uk.", "first.last+tag@sub.example.co.uk"),
    ("Contact <support@example.org>!", "support@example.org"),
    (r"Open C:\Users\me\Foo\bar.exe and retry", r"C:\Users\me\Foo\bar.exe"),
    (r"The log is in %APPDATA%\foo\log.txt now", r"%APPDATA%\foo\log.txt"),
    (r"\\server\share\docs is offline", r"\\server\share\docs"),
]
SCRIPTS = [
    ("您有%d条来自%(sender)s的新消息。", "%d¦%(sender)s"),
    ("将%1$s复制到%2$s？", "%1$s¦%2$s"),
    ("点击<a>这里</a>下载{filename}，或发送到me@example.org。", "<a>¦</a>¦{filename}¦me@example.org"),
    ("请在{minutes}分钟后重试（错误：%@）", "{minutes}¦%@"),
    ("لديك %d رسائل من %(name)s", "%d¦%(name)s"),
    ("مرحبًا {name}، رصيدك ${amount}", "{name}¦${amount}"),
    ("حدث خطأ: %1$s (%2$d)", "%1$s¦%2$d"),
    ("افتح <b>الإعدادات</b> ثم {{section}}", "<b>¦</b>¦{{section}}"),
]
ROWS = [
    ("%s", "%s"),
    ("%s%s%s", "%s%s%s"),
    ("{name}:", "{name}"),
    ("[%s] %s", "%s¦%s"),
    ("%s: %s, %s (%s)", "%s¦%s¦%s¦%s"),
    ("{0}{1} – {2}", "{0}{1}¦{2}"),
]
MESSAGES = [
    (
        "{count, plural, =0 {No messages} one {One message} other {# messages}}",
        "{count, plural, =0 {¦} one {¦} other {¦}}",
    ),
    (
        "{gender, select, male {{num, plural, one {He has a cat} other {He has # cats}}} other {They have cats}}",
        "{gender, select, male {{num, plural, one {¦} other {¦}}} other {¦}}",
    ),
    (
        "You have {count, plural, offset:1 =1 {one guest} other {{host} and # guests}}.",
        "{count, plural, offset:1 =1 {¦} other {{host}¦}}",
    ),
    (
        "{count, plural, one {<b>#</b> item} other {<b>#</b> items}} in your <link>cart</link>",
        "{count, plural, one {<b>#</b>¦} other {<b>#</b>¦}}¦<link>¦</link>",
    ),
    (
        "{count, plural, one {Don't delete # file} other {Don't delete # files}}",
        "{count, plural, one {¦} other {¦}}",
    ),
    (
        "{n,plural,zero{nothing}one{one of {total}}few{# few}many{# many}other{# of {total}}}",
        "{n,plural,zero{¦}one{¦{total}}few{¦}many{¦}other{¦{total}}}",
    ),
    (
        "{a, plural, one {# folder} other {# folders}} and {b, plural, one {# file} other {# files}}",
        "{a, plural, one {¦} other {¦}}¦{b, plural, one {¦} other {¦}}",
    ),
    (
        "{when, select, today {due %s} other {due on {date, date, short}}}",
        "{when, select, today {¦%s} other {¦{date, date, short}}}",
    ),
]

CATALOGUES = [*GETTEXT, *BRACES, *DOLLARS, *MEDIAWIKI, *QT_AND_BOOST, *PHONES, *TAGS, *NAMES, *SCRIPTS, *ROWS]
CATALOGUES += MESSAGES
"""Sentences, each with its parts that must not change, in order, separated by ¦."""


def in_capitals(text: str, stays: str) -> str:
    """Return a text with its words in capitals, except the parts that must not change."""
    parts, begin = [], 0
    for part in stays.split("¦"):
        place = text.index(part, begin)
        parts += [text[begin:place].upper(), part]
        begin = place + len(part)
    return "".join([*parts, text[begin:].upper()])
