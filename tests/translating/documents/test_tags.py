"""Tags by projection: none is lost or invented, and they stay nested, whatever the links are."""

from hypothesis import given
from hypothesis import strategies as st

from glassformer.translating.documents.chunks import Chunk, closings_of
from glassformer.translating.documents.tags import detagged, projected, proportional_links
from profiles import scaled

TEXT = st.sampled_from(["one ", "two", " three.", "(", " ", "four five six ", "\n", "é,", "seven eight"])
CHUNK = st.builds(Chunk, st.just("text"), TEXT) | st.builds(
    lambda role, name, number: Chunk(role, f"<{role}-{name}-{number}>", name=name),
    st.sampled_from(["open", "close", "point"]),
    st.sampled_from("ab"),
    st.integers(0, 3),
)
PAIR = st.deferred(
    lambda: st.builds(
        lambda name, inner: [
            Chunk("open", f"<{name}>", name=name),
            *inner,
            Chunk("close", f"</{name}>", name=name),
        ],
        st.sampled_from("abc"),
        UNITS,
    )
)
UNITS = st.lists(PAIR | CHUNK.map(lambda chunk: [chunk]), max_size=5).map(
    lambda many: [one for some in many for one in some]
)


def words(text):
    return [chunk[1] for chunk in proportional_links(text, text)]


def nested(chunks):
    """Return the pairs of tags by their texts."""
    return sorted((chunks[begin].text, chunks[end].text) for begin, end in closings_of(chunks).items())


@given(UNITS, st.lists(TEXT, max_size=8).map("".join), st.data())
@scaled(120)
def test_tags_are_kept_and_nested_for_any_links(chunks, target, data):
    source, tags = detagged(chunks)
    if sources := words(source):
        links = [(data.draw(st.sampled_from(sources)), one) for one in words(target) if data.draw(st.booleans())]
    else:
        links = []
    found = projected(source, target, tags, links)
    marks = [[chunk.text for chunk in some if chunk.role != "text"] for some in (chunks, found)]
    assert sorted(marks[0]) == sorted(marks[1])
    assert nested(found) == nested(chunks)
    assert "".join("".join(chunk.text for chunk in found if chunk.role == "text").split()) == "".join(target.split())


def text_of(chunks):
    return "".join(chunk.text for chunk in chunks)


BOLD = [Chunk("open", "<b>", name="b"), Chunk("text", "black"), Chunk("close", "</b>", name="b")]


def test_a_tag_goes_to_the_words_aligned_to_its_own():
    source, tags = detagged([Chunk("text", "the "), *BOLD, Chunk("text", " cat.")])
    assert source == "the black cat."
    links = [((0, 3), (0, 2)), ((10, 14), (3, 7)), ((4, 9), (8, 13))]
    assert text_of(projected(source, "le chat noir.", tags, links)) == "le chat <b>noir.</b>"
    assert text_of(projected(source, "a b c", tags, [])) == "a b c<b></b>"


def test_punctuation_after_a_tag_stays_after_it():
    source, tags = detagged([Chunk("text", "it is "), *BOLD, Chunk("text", ".")])
    links = [((0, 2), (0, 2)), ((6, 12), (3, 9))]
    assert text_of(projected(source, "il noires.", tags, [((6, 12), (3, 10))])) == "il <b>noires</b>."
    assert links


def test_a_point_goes_before_the_word_that_followed_it():
    chunks = [Chunk("text", "use "), Chunk("point", "{x}"), Chunk("text", " here now")]
    source, tags = detagged(chunks)
    assert source == "use here now"
    links = [((0, 3), (9, 16)), ((4, 8), (0, 3)), ((9, 12), (4, 8))]
    assert text_of(projected(source, "ici main utilise", tags, links)) == "{x} ici main utilise"


def test_words_on_both_sides_of_a_point_stay_apart():
    source, tags = detagged([Chunk("text", "one"), Chunk("point", "<br>"), Chunk("text", "two")])
    assert source == "one two"
    assert text_of(projected(source, "UN DEUX", tags, proportional_links(source, "UN DEUX"))) == "UN<br>DEUX"


def test_without_links_tags_go_by_position():
    source, tags = detagged([*BOLD, Chunk("text", " cats sleep")])
    target = "schwarze Katzen schlafen"
    assert (
        text_of(projected(source, target, tags, proportional_links(source, target)))
        == "<b>schwarze</b> Katzen schlafen"
    )


def test_tags_that_share_a_word_do_not_double_it():
    italic = [Chunk("open", "<i>", name="i"), Chunk("text", "bird"), Chunk("close", "</i>", name="i")]
    source, tags = detagged([*BOLD, *italic])
    assert source == "blackbird"
    assert text_of(projected(source, "merle", tags, [((0, 9), (0, 5))])) == "<i></i><b>merle</b>"
