"""The adjectives of the built-in corpus, as plain data, and the words that grade adjectives, such as "very".

`fits` names the kinds of nouns, or the single nouns, that an adjective can describe.

>>> [adjective.french for adjective in adjectives("white old")]
['blanc', 'vieux']
"""

from glassformer.corpus.tasks.world.words import ALIVE, Adjective

__all__ = ["ADJECTIVES", "COLOURS", "DEGREES", "GROUNDS", "OPPOSITES", "STATES", "adjectives"]

# Each row of data is on one line or two.
# fmt: off
COLOURS = (
    Adjective("black", "noir", fits="pet beast object clothes furniture", gradable=False),
    Adjective("white", "blanc", "blanche", fits="pet beast object clothes furniture house church", gradable=False),
    Adjective("brown", "marron", invariable=True, fits="pet beast object clothes furniture", gradable=False),
    Adjective("grey", "gris", fits="pet beast object clothes furniture wall castle tower bridge", gradable=False),
    Adjective("orange", "orange", invariable=True, fits="object clothes furniture", gradable=False),
    Adjective("red", "rouge", fits="object clothes furniture apple bridge house", gradable=False),
    Adjective("green", "vert", fits="object clothes furniture apple pear hill valley", gradable=False),
    Adjective("blue", "bleu", fits="object clothes furniture lake", gradable=False),
    Adjective("yellow", "jaune", fits="object clothes furniture pear house", gradable=False),
    Adjective("purple", "violet", "violette", fits="object clothes furniture", gradable=False),
)

STATES = (
    Adjective("tired", "fatigué", fits=ALIVE, comparative="more"),
    Adjective("hungry", "affamé", fits=ALIVE),
    Adjective("thirsty", "assoiffé", fits=ALIVE),
    Adjective("scared", "effrayé", fits=ALIVE),
    Adjective("sick", "malade", fits=ALIVE),
    Adjective("lazy", "paresseux", "paresseuse", fits=ALIVE),
    Adjective("nervous", "nerveux", "nerveuse", fits=ALIVE, comparative="more"),
    Adjective("shy", "timide", fits=ALIVE),
    Adjective("injured", "blessé", fits=ALIVE, gradable=False),
    Adjective("careful", "prudent", fits=ALIVE, comparative="more"),
    Adjective("curious", "curieux", "curieuse", fits=ALIVE, comparative="more"),
    Adjective("brave", "courageux", "courageuse", fits=ALIVE),
    Adjective("happy", "heureux", "heureuse", fits=ALIVE, comparative="happier"),
    Adjective("sad", "triste", fits=ALIVE),
    Adjective("angry", "furieux", "furieuse", fits=ALIVE, gradable=False),
    Adjective("jealous", "jaloux", "jalouse", fits="person kin", comparative="more"),
    Adjective("proud", "fier", "fière", fits="person kin"),
    Adjective("kind", "gentil", "gentille", fits="person kin"),
    Adjective("clever", "intelligent", fits="person kin monkey dog fox", comparative="more"),
    Adjective("rich", "riche", fits="person kin"),
)
"""Temporary states of people and animals. These adjectives never describe a place or a thing."""

GROUNDS = (
    Adjective("wide", "large", fits="street road river lake canal stream ditch valley"),
    Adjective("narrow", "étroit", fits="street bridge path tunnel cave kitchen"),
    Adjective("deep", "profond", fits="river lake canal stream ditch valley cave tunnel"),
    Adjective("steep", "escarpé", fits="path hill mountain"),
    Adjective("slippery", "glissant", fits="street road bridge path wall", comparative="more"),
    Adjective("crowded", "bondé", comparative="more",
              fits="street market station beach square park museum school church"),
    Adjective("vast", "vaste", precedes=True,
              fits="field garden park desert lake castle forest island square valley beach"),
    Adjective("dense", "dense", fits="forest hedge"),
    Adjective("high", "haut", precedes=True, fits="bridge wall hill mountain hedge tower"),
    Adjective("remote", "éloigné", fits="village castle island beach house hotel", comparative="more"),
    Adjective("rocky", "rocheux", "rocheuse", fits="path desert island hill mountain valley beach"),
    Adjective("flooded", "inondé", fits="field garden road ditch tunnel cave house kitchen", gradable=False),
    Adjective("closed", "fermé", fits="museum hotel market station school church castle", gradable=False),
)
"""Permanent qualities of places, which can be reasons not to go there. These adjectives never describe an animal."""

ADJECTIVES = (
    # Before the noun in French: size, age, beauty, goodness.
    Adjective("small", "petit", precedes=True, comparative="smaller",
              fits="pet object thing furniture building village park island garden"),
    Adjective("big", "grand", precedes=True, comparative="bigger",
              fits="beast dog bird object thing furniture building park forest island"),
    Adjective("fat", "gros", "grosse", precedes=True, fits="cat rabbit hen goose frog mouse squirrel cow wolf"),
    Adjective("old", "vieux", "vieille", before_vowel="vieil", precedes=True, comparative="older",
              fits="woman man king queen prince princess knight witch kin pet beast object thing clothes furniture "
                   "building bridge wall village park"),
    Adjective("young", "jeune", fits="person pet beast", precedes=True, comparative="younger"),
    Adjective("beautiful", "beau", "belle", before_vowel="bel", precedes=True, comparative="more",
              fits="woman girl queen princess man prince pet beast object thing clothes furniture "
                   "garden forest island hotel castle church beach"),
    Adjective("new", "nouveau", "nouvelle", before_vowel="nouvel", precedes=True,
              fits="object clothes computer pillow bench desk hotel museum school station bridge clock"),
    Adjective("pretty", "joli", precedes=True, fits="girl princess clothes village house flower boat cup plate lamp"),
    Adjective("good", "bon", "bonne", precedes=True, gradable=False, fits="book mass food tea milk bed knife"),
    Adjective("bad", "mauvais", precedes=True, gradable=False, fits="book mass food tea milk"),
    Adjective("long", "long", "longue", precedes=True, comparative="longer",
              fits="dress coat letter book knife path bridge road tunnel wall street"),
    # After the noun: colours, states, qualities of places.
    *COLOURS,
    *STATES,
    *GROUNDS,
    # After the noun: qualities of things.
    Adjective("heavy", "lourd", comparative="heavier",
              fits="box basket bag suitcase table book bell door coat bottle desk"),
    Adjective("light", "léger", "légère", fits="box basket bag suitcase chair coat dress bicycle boat umbrella"),
    Adjective("clean", "propre", fits="clothes cup plate bottle car window rug kitchen"),
    Adjective("dirty", "sale", fits="clothes cup plate bottle car window rug kitchen mirror"),
    Adjective("expensive", "cher", "chère", comparative="more",
              fits="object clothes clock mirror painting computer hotel"),
    Adjective("broken", "cassé", gradable=False,
              fits="cup plate bottle window mirror lamp clock chair umbrella guitar"),
    Adjective("empty", "vide", gradable=False,
              fits="box basket bag bottle cup plate suitcase shelf house street church beach"),
    Adjective("fragile", "fragile", comparative="more", fits="cup plate bottle mirror window lamp clock guitar"),
    Adjective("round", "rond", gradable=False,
              fits="table mirror box rug basket cake clock window plate pillow tower"),
    Adjective("soft", "doux", "douce", fits="rug pillow coat dress shirt hat"),
    Adjective("wet", "mouillé", gradable=False,
              fits="cat dog horse clothes rug pillow bench newspaper umbrella bag letter street road"),
    Adjective("dry", "sec", "sèche", gradable=False, fits="clothes bread rug field stream cake tree flower garden"),
    Adjective("rusty", "rouillé", gradable=False, fits="bell knife bicycle car boat lamp clock"),
    Adjective("important", "important", comparative="more", fits="letter book painting newspaper king queen"),
    Adjective("secret", "secret", "secrète", gradable=False, fits="letter garden path tunnel island cave door"),
    # After the noun: qualities of food and drink.
    Adjective("fresh", "frais", "fraîche", fits="bread egg cheese milk water carrot apple"),
    Adjective("delicious", "délicieux", "délicieuse", gradable=False, fits="food mass tea"),
    Adjective("ripe", "mûr", fits="apple pear orange"),
    Adjective("sweet", "sucré", fits="apple pear orange tea cake"),
    Adjective("hot", "chaud", fits="soup tea milk bread water"),
    Adjective("cold", "froid", fits="soup tea milk water river lake stream"),
)
# fmt: on

OPPOSITES = frozenset(
    frozenset(pair.split())
    for pair in (
        "small big", "small vast", "small fat", "old young", "old new", "good bad", "delicious bad", "fresh bad",
        "clean dirty", "wet dry", "hot cold", "happy sad", "happy angry", "heavy light", "wide narrow",
        "brave scared", "brave shy", "empty crowded", "empty closed", "deep dry", "clean wet",
    )
)  # fmt: skip
"""Pairs of opposite adjectives, which never describe the same thing."""

DEGREES = {"very": "très", "too": "trop", "so": "si", "rather": "plutôt"}


def adjectives(words: str) -> tuple[Adjective, ...]:
    """Return the adjectives with these English names, in the order given."""
    known = {adjective.english: adjective for adjective in ADJECTIVES}
    return tuple(known[word] for word in words.split())
