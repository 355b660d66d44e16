"""The nouns of the built-in corpus, as plain data: the grammar uses every noun that is listed.

Each noun has a *kind* ("pet", "food", …). Adjectives and verbs name the kinds or the single nouns that they fit, so a
new noun gets its adjectives and verbs through its kind. To add a parrot, write one line::

    Noun("parrot", "perroquet", "m", "pet"),

>>> [noun.french for noun in nouns("drink lamp")]
['lampe', 'lait', 'eau', 'thé']
"""

from functools import cache

from glassformer.corpus.tasks.world.words import Noun

__all__ = ["ASPIRATED", "NOUNS", "nouns"]

ASPIRATED = ("hérisson", "haie", "haut")
"""Beginnings of French words with an aspirated h. Articles do not elide before these words: "le hérisson"."""

NOUNS = (
    # People, and relatives; a noun for a relative always has a possessive.
    Noun("girl", "fille", "f", "person"),
    Noun("boy", "garçon", "m", "person"),
    Noun("woman", "femme", "f", "person", plural="women"),
    Noun("man", "homme", "m", "person", plural="men"),
    Noun("king", "roi", "m", "person"),
    Noun("queen", "reine", "f", "person"),
    Noun("prince", "prince", "m", "person"),
    Noun("princess", "princesse", "f", "person"),
    Noun("knight", "chevalier", "m", "person"),
    Noun("witch", "sorcière", "f", "person"),
    Noun("sister", "sœur", "f", "kin"),
    Noun("brother", "frère", "m", "kin"),
    Noun("aunt", "tante", "f", "kin"),
    Noun("uncle", "oncle", "m", "kin"),
    Noun("grandmother", "grand-mère", "f", "kin"),
    Noun("grandfather", "grand-père", "m", "kin"),
    # Animals: pets are small enough for a couch; beasts live outdoors.
    Noun("cat", "chat", "m", "pet"),
    Noun("dog", "chien", "m", "pet"),
    Noun("rabbit", "lapin", "m", "pet"),
    Noun("bird", "oiseau", "m", "pet"),
    Noun("hedgehog", "hérisson", "m", "pet"),
    Noun("monkey", "singe", "m", "pet"),
    Noun("squirrel", "écureuil", "m", "pet"),
    Noun("mouse", "souris", "f", "pet", plural="mice"),
    Noun("turtle", "tortue", "f", "pet"),
    Noun("frog", "grenouille", "f", "pet"),
    Noun("spider", "araignée", "f", "pet"),
    Noun("hen", "poule", "f", "pet"),
    Noun("goose", "oie", "f", "pet", plural="geese"),
    Noun("animal", "animal", "m", "beast"),
    Noun("horse", "cheval", "m", "beast"),
    Noun("donkey", "âne", "m", "beast"),
    Noun("elephant", "éléphant", "m", "beast"),
    Noun("wolf", "loup", "m", "beast", plural="wolves"),
    Noun("fox", "renard", "m", "beast"),
    Noun("cow", "vache", "f", "beast"),
    Noun("goat", "chèvre", "f", "beast"),
    Noun("giraffe", "girafe", "f", "beast"),
    Noun("otter", "loutre", "f", "beast"),
    Noun("panther", "panthère", "f", "beast"),
    # Furniture.
    Noun("couch", "canapé", "m", "furniture", at="on sur"),
    Noun("rug", "tapis", "m", "furniture", at="on sur"),
    Noun("chair", "chaise", "f", "furniture", at="on sur"),
    Noun("table", "table", "f", "furniture", at="on sur"),
    Noun("bed", "lit", "m", "furniture", at="on sur"),
    Noun("bench", "banc", "m", "furniture", at="on sur"),
    Noun("armchair", "fauteuil", "m", "furniture", at="in dans"),
    Noun("desk", "bureau", "m", "furniture", at="on sur"),
    Noun("shelf", "étagère", "f", "furniture", at="on sur", plural="shelves"),
    Noun("pillow", "oreiller", "m", "furniture", at="on sur"),
    Noun("box", "boîte", "f", "furniture", at="in dans"),
    Noun("basket", "panier", "m", "furniture", at="in dans"),
    # Objects can have any colour; things have no colour.
    Noun("book", "livre", "m", "object"),
    Noun("car", "voiture", "f", "object"),
    Noun("bicycle", "vélo", "m", "object"),
    Noun("boat", "bateau", "m", "object"),
    Noun("umbrella", "parapluie", "m", "object"),
    Noun("lamp", "lampe", "f", "object"),
    Noun("cup", "tasse", "f", "object"),
    Noun("plate", "assiette", "f", "object"),
    Noun("bottle", "bouteille", "f", "object"),
    Noun("flower", "fleur", "f", "object"),
    Noun("bag", "sac", "m", "object"),
    Noun("suitcase", "valise", "f", "object"),
    Noun("guitar", "guitare", "f", "object"),
    Noun("candle", "bougie", "f", "object"),
    Noun("door", "porte", "f", "object"),
    Noun("piano", "piano", "m", "object"),
    Noun("accordion", "accordéon", "m", "object"),
    Noun("letter", "lettre", "f", "thing"),
    Noun("newspaper", "journal", "m", "thing"),
    Noun("clock", "horloge", "f", "thing"),
    Noun("mirror", "miroir", "m", "thing"),
    Noun("painting", "tableau", "m", "thing"),
    Noun("knife", "couteau", "m", "thing", plural="knives"),
    Noun("tree", "arbre", "m", "thing"),
    Noun("bell", "cloche", "f", "thing"),
    Noun("window", "fenêtre", "f", "thing"),
    Noun("computer", "ordinateur", "m", "thing"),
    Noun("hat", "chapeau", "m", "clothes"),
    Noun("coat", "manteau", "m", "clothes"),
    Noun("dress", "robe", "f", "clothes"),
    Noun("shirt", "chemise", "f", "clothes"),
    # Countable food, then uncountable food and drink.
    Noun("apple", "pomme", "f", "food"),
    Noun("pear", "poire", "f", "food"),
    Noun("orange", "orange", "f", "food"),
    Noun("carrot", "carotte", "f", "food"),
    Noun("egg", "œuf", "m", "food"),
    Noun("cake", "gâteau", "m", "food"),
    Noun("bread", "pain", "m", "mass"),
    Noun("soup", "soupe", "f", "mass"),
    Noun("cheese", "fromage", "m", "mass"),
    Noun("milk", "lait", "m", "drink"),
    Noun("water", "eau", "f", "drink"),
    Noun("tea", "thé", "m", "drink"),
    # Places. If a place has no `at`, sentences say "near" the place, but not "in" or "on" it.
    Noun("bridge", "pont", "m", "place", at="on sur"),
    Noun("field", "champ", "m", "place", at="in dans"),
    Noun("garden", "jardin", "m", "place", at="in dans"),
    Noun("park", "parc", "m", "place", at="in dans"),
    Noun("path", "chemin", "m", "place", at="on sur"),
    Noun("lake", "lac", "m", "waters"),
    Noun("canal", "canal", "m", "waters"),
    Noun("stream", "ruisseau", "m", "waters"),
    Noun("river", "rivière", "f", "waters"),
    Noun("market", "marché", "m", "building", at="at à"),
    Noun("tunnel", "tunnel", "m", "place", at="in dans"),
    Noun("desert", "désert", "m", "place", at="in dans"),
    Noun("wall", "mur", "m", "place"),
    Noun("ditch", "fossé", "m", "place", at="in dans"),
    Noun("village", "village", "m", "place", at="in dans"),
    Noun("castle", "château", "m", "building", at="in dans"),
    Noun("museum", "musée", "m", "building", at="at à"),
    Noun("hotel", "hôtel", "m", "building", at="at à"),
    Noun("island", "île", "f", "place", at="on sur"),
    Noun("forest", "forêt", "f", "place", at="in dans"),
    Noun("street", "rue", "f", "place", at="in dans"),
    Noun("road", "route", "f", "place", at="on sur"),
    Noun("square", "place", "f", "place", at="in sur"),
    Noun("valley", "vallée", "f", "place", at="in dans"),
    Noun("hill", "colline", "f", "place", at="on sur"),
    Noun("mountain", "montagne", "f", "place", at="on sur"),
    Noun("cave", "grotte", "f", "place", at="in dans"),
    Noun("beach", "plage", "f", "place", at="on sur"),
    Noun("station", "gare", "f", "building", at="at à"),
    Noun("school", "école", "f", "building", at="at à"),
    Noun("church", "église", "f", "building", at="in dans"),
    Noun("house", "maison", "f", "building", at="in dans"),
    Noun("kitchen", "cuisine", "f", "building", at="in dans"),
    Noun("hedge", "haie", "f", "place"),
    Noun("tower", "tour", "f", "building"),
)


@cache
def nouns(words: str) -> tuple[Noun, ...]:
    """Return the nouns with these kinds or English names, in the order of the lexicon."""
    wanted = set(words.split())
    found = tuple(noun for noun in NOUNS if noun.kind in wanted or noun.english in wanted)
    unknown = wanted - {name for noun in found for name in (noun.kind, noun.english)}
    assert not unknown, f"neither a kind nor a noun: {sorted(unknown)}"
    return found
