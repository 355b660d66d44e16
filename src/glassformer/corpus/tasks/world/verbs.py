"""The verbs of the built-in corpus, as plain data, grouped by their use in the grammar, and the adverbs.

`subjects` and `objects` name kinds of nouns, or single nouns. To add the verb "kick", write this line into `ACTIONS`::

    Verb("kick", "kicked", "frapper", "frappé", objects="door box"),

>>> [verb.infinitive for verb in verbs("eat, come back")]
['manger', 'revenir']
"""

from glassformer.corpus.tasks.world.words import ALIVE, Crossing, Verb

__all__ = [
    "ACTIONS",
    "ACTIVITIES",
    "CROSSINGS",
    "FEELINGS",
    "GIFTS",
    "INTENTIONS",
    "MOVEMENTS",
    "PASSAGES",
    "SPECIAL",
    "STOPS",
    "TIMES",
    "WAYS",
    "verbs",
]

_STILL = "furniture tree place building waters"
_OPEN = "field garden park path desert village island forest street road square valley hill beach bridge"
_GOALS = "market museum hotel castle station school church village beach park garden lake river tower bridge"

# Each row of data is on one line or two.
# fmt: off
ACTIVITIES = (
    # States with a place, in the imparfait.
    Verb("sleep", "slept", "dormir", imparfait="dorm", ing="sleeping", subjects=ALIVE, objects=_STILL),
    Verb("sit", "sat", "s'asseoir", posture="assis", ing="sitting", subjects=ALIVE, objects=_STILL),
    Verb("lie", "lay", "se coucher", posture="couché", ing="lying", subjects=ALIVE, objects=_STILL),
    Verb("stand", "stood", "se tenir", posture="debout", ing="standing", subjects=ALIVE, objects=_STILL),
    Verb("wait", "waited", "attendre", imparfait="attend", ing="waiting", subjects=ALIVE, objects=_STILL),
    Verb("hide", "hid", "se cacher", imparfait="cach", ing="hiding", reflexive=True, subjects=ALIVE, objects=_STILL),
    Verb("rest", "rested", "se reposer", imparfait="repos", ing="resting", reflexive=True, subjects=ALIVE,
         objects=_STILL),
    Verb("dream", "dreamed", "rêver", imparfait="rêv", ing="dreaming", objects=_STILL),
    Verb("play", "played", "jouer", imparfait="jou", ing="playing", subjects=ALIVE, objects=_OPEN),
    Verb("run", "ran", "courir", imparfait="cour", ing="running", subjects=ALIVE, objects=_OPEN),
    Verb("walk", "walked", "marcher", imparfait="march", ing="walking", subjects=ALIVE, objects=_OPEN),
    Verb("sing", "sang", "chanter", imparfait="chant", ing="singing", subjects="person kin bird",
         objects=f"{_OPEN} building"),
    Verb("dance", "danced", "danser", imparfait="dans", ing="dancing", objects=f"{_OPEN} building"),
    Verb("work", "worked", "travailler", imparfait="travaill", ing="working", objects=f"{_OPEN} building"),
    Verb("swim", "swam", "nager", imparfait="nage", ing="swimming", preposition="in dans", objects="waters",
         subjects="person kin dog frog goose turtle horse otter elephant animal"),
)

FEELINGS = (
    # States with an object.
    Verb("love", "loved", "aimer", imparfait="aim", subjects=ALIVE,
         objects="person pet beast object food mass drink clothes"),
    Verb("hate", "hated", "détester", imparfait="détest", subjects=ALIVE,
         objects="person pet beast food mass drink"),
    Verb("know", "knew", "connaître", imparfait="connaiss", objects="person"),
    Verb("wear", "wore", "porter", imparfait="port", objects="clothes"),
)

MOVEMENTS = (
    # Events with a direction (to, from, into a place), in the passé composé.
    Verb("go", "went", "aller", "allé", auxiliary="être", preposition="to à", subjects=ALIVE, objects=_GOALS),
    Verb("arrive", "arrived", "arriver", "arrivé", auxiliary="être", preposition="at à", subjects=ALIVE,
         objects=_GOALS),
    Verb("return", "returned", "retourner", "retourné", auxiliary="être", preposition="to à", subjects=ALIVE,
         objects=_GOALS),
    Verb("come back", "came back", "revenir", "revenu", auxiliary="être", preposition="from de", subjects=ALIVE,
         objects=f"{_GOALS} forest island mountain"),
    Verb("enter", "entered", "entrer", "entré", auxiliary="être", preposition="- dans", subjects=ALIVE,
         objects="building cave tunnel forest garden park"),
    Verb("walk", "walked", "marcher", "marché", preposition="to jusque à", subjects=ALIVE,
         objects="place building waters"),
    Verb("run", "ran", "courir", "couru", preposition="to jusque à", subjects=ALIVE, objects="place building waters"),
    Verb("fall", "fell", "tomber", "tombé", auxiliary="être", preposition="into dans", subjects=ALIVE,
         objects="waters ditch"),
    Verb("jump", "jumped", "sauter", "sauté", preposition="onto sur", subjects="person kin pet",
         objects="couch chair table bed bench desk"),
)

STOPS = (
    # Events that happen in a place.
    Verb("stay", "stayed", "rester", "resté", auxiliary="être", subjects=ALIVE, objects=_STILL),
    Verb("stop", "stopped", "s'arrêter", "arrêté", auxiliary="être", reflexive=True, subjects=ALIVE,
         objects="place building waters"),
    Verb("fall asleep", "fell asleep", "s'endormir", "endormi", auxiliary="être", reflexive=True, subjects=ALIVE,
         objects=_STILL),
)

PASSAGES = (
    # Events whose object is a place.
    Verb("cross", "crossed", "traverser", "traversé", subjects=ALIVE,
         objects="street road waters ditch bridge field park desert square valley forest tunnel hedge market beach"),
    Verb("leave", "left", "quitter", "quitté", subjects=ALIVE,
         objects="garden park forest street road path market station beach house kitchen hotel island village cave"),
    Verb("reach", "reached", "atteindre", "atteint", subjects=ALIVE,
         objects="village castle island house beach hotel station"),
    Verb("explore", "explored", "explorer", "exploré", subjects=ALIVE,
         objects="garden cave tunnel desert island forest valley castle park"),
    Verb("avoid", "avoided", "éviter", "évité", subjects=ALIVE,
         objects="street road bridge square market station path forest beach"),
    Verb("climb", "climbed", "escalader", "escaladé", subjects=ALIVE, objects="hill mountain wall tower"),
    Verb("follow", "followed", "suivre", "suivi", subjects=ALIVE, objects="path road stream river"),
    Verb("visit", "visited", "visiter", "visité", objects="museum castle church island village cave tower garden"),
)

ACTIONS = (
    # Events whose object is a thing, a person or an animal.
    Verb("see", "saw", "voir", "vu", subjects=ALIVE,
         objects="person pet beast object thing furniture clothes tower castle island mountain"),
    Verb("hear", "heard", "entendre", "entendu", subjects=ALIVE,
         objects="person pet beast bell guitar piano accordion"),
    Verb("watch", "watched", "regarder", "regardé", subjects=ALIVE, objects="person pet beast boat"),
    Verb("follow", "followed", "suivre", "suivi", subjects=ALIVE, objects="person pet beast"),
    Verb("chase", "chased", "poursuivre", "poursuivi", subjects="pet beast", objects="pet beast"),
    Verb("help", "helped", "aider", "aidé", objects="person pet beast"),
    Verb("feed", "fed", "nourrir", "nourri", objects="pet beast"),
    Verb("buy", "bought", "acheter", "acheté", objects="object thing furniture clothes food mass drink"),
    Verb("sell", "sold", "vendre", "vendu", objects="object furniture clothes clock mirror painting house"),
    Verb("find", "found", "trouver", "trouvé", objects="object thing furniture clothes food pet"),
    Verb("lose", "lost", "perdre", "perdu", objects="book umbrella bag suitcase letter clothes knife"),
    Verb("forget", "forgot", "oublier", "oublié", objects="book umbrella bag suitcase letter clothes"),
    Verb("choose", "chose", "choisir", "choisi", done="chosen", objects="object clothes painting furniture food"),
    Verb("break", "broke", "casser", "cassé", done="broken", objects="cup plate bottle window mirror lamp clock chair"),
    Verb("repair", "repaired", "réparer", "réparé", objects="car bicycle boat clock lamp chair door window computer"),
    Verb("wash", "washed", "laver", "lavé", objects="cup plate bottle car window clothes rug pet apple"),
    Verb("paint", "painted", "peindre", "peint", objects="door chair table boat shelf box wall house"),
    Verb("draw", "drew", "dessiner", "dessiné", done="drawn", objects="pet beast tree flower boat castle person"),
    Verb("open", "opened", "ouvrir", "ouvert", objects="door window box letter bottle bag suitcase book umbrella"),
    Verb("close", "closed", "fermer", "fermé", objects="door window box bag suitcase book umbrella"),
    Verb("fill", "filled", "remplir", "rempli", objects="cup bottle plate basket box bag"),
    Verb("empty", "emptied", "vider", "vidé", objects="cup bottle plate basket box bag suitcase"),
    Verb("carry", "carried", "porter", "porté", objects="box basket bag suitcase chair table book bottle boat"),
    Verb("read", "read", "lire", "lu", objects="book letter newspaper"),
    Verb("write", "wrote", "écrire", "écrit", done="written", objects="letter book"),
    Verb("burn", "burned", "brûler", "brûlé", objects="letter newspaper book candle bread cake"),
    Verb("eat", "ate", "manger", "mangé", done="eaten", subjects=ALIVE, objects="food bread cheese"),
    Verb("taste", "tasted", "goûter", "goûté", objects="food mass drink"),
    Verb("cut", "cut", "couper", "coupé", objects="bread cake cheese apple pear orange carrot flower tree"),
    Verb("prepare", "prepared", "préparer", "préparé", objects="soup cake tea"),
    Verb("drink", "drank", "boire", "bu", subjects=ALIVE, objects="drink"),
    Verb("catch", "caught", "attraper", "attrapé", objects="pet hat umbrella"),
    Verb("throw", "threw", "lancer", "lancé", objects="apple orange pillow hat bottle egg"),
    Verb("water", "watered", "arroser", "arrosé", objects="flower tree"),
    Verb("turn on", "turned on", "allumer", "allumé", objects="lamp computer"),
    Verb("turn off", "turned off", "éteindre", "éteint", objects="lamp computer"),
    Verb("put on", "put on", "mettre", "mis", objects="clothes"),
)

GIFTS = (
    # Events with two objects.
    Verb("give", "gave", "donner", "donné", objects="object clothes food letter painting knife pet"),
    Verb("show", "showed", "montrer", "montré", objects="object clothes letter painting clock computer"),
    Verb("lend", "lent", "prêter", "prêté", objects="book car bicycle boat umbrella bag suitcase guitar coat knife"),
)

INTENTIONS = (
    # Verbs followed by an infinitive; the preposition is between the verb and the infinitive.
    Verb("want", "wanted", "vouloir", imparfait="voul"),
    Verb("try", "tried", "essayer", "essayé", preposition="to de"),
    Verb("decide", "decided", "décider", "décidé", preposition="to de"),
    Verb("forget", "forgot", "oublier", "oublié", preposition="to de"),
    Verb("refuse", "refused", "refuser", "refusé", preposition="to de"),
    Verb("begin", "began", "commencer", "commencé", preposition="to à"),
)

SPECIAL = (
    # Verbs that occur only with ambiguous words (senses.py).
    Verb("strike", "struck", "craquer", "craqué"),
    Verb("win", "won", "gagner", "gagné"),
    Verb("miss", "missed", "manquer", "manqué"),
    Verb("hammer in", "hammered in", "enfoncer", "enfoncé"),
    Verb("pull out", "pulled out", "arracher", "arraché"),
    Verb("file", "filed", "limer", "limé"),
    Verb("bite", "bit", "ronger", "rongé"),
    Verb("tighten", "tightened", "serrer", "serré"),
    Verb("unscrew", "unscrewed", "dévisser", "dévissé"),
)


def _across(base: str, past: str, way: str, places: str, subjects: str = "person kin") -> Crossing:
    """Return a way of crossing in both languages, such as "swim across" ("traverser … à la nage")."""
    verb = Verb(f"{base} across", f"{past} across", "traverser", "traversé", subjects=subjects)
    return Crossing(verb, way, places)


CROSSINGS = (
    _across("swim", "swam", "à la nage", "waters", "person kin dog frog goose turtle horse otter elephant animal"),
    _across("row", "rowed", "en barque", "waters"),
    _across("walk", "walked", "à pied", "street road square park bridge field desert valley forest", ALIVE),
    _across("run", "ran", "en courant", "street road square park bridge field", ALIVE),
    _across("drive", "drove", "en voiture", "street road square park bridge desert valley forest"),
    _across("cycle", "cycled", "à vélo", "street road square park bridge forest field valley"),
)
# fmt: on

TIMES = {
    "yesterday": "hier",
    "yesterday evening": "hier soir",
    "this morning": "ce matin",
    "on Monday": "lundi",
    "last week": "la semaine dernière",
    "in winter": "en hiver",
    "in summer": "en été",
    "after lunch": "après le déjeuner",
    "during the night": "pendant la nuit",
}
WAYS = {"slowly": "lentement", "quickly": "rapidement", "carefully": "prudemment"}


def verbs(words: str) -> tuple[Verb, ...]:
    """Return the verbs with these English base forms, separated by commas; "walk" is the activity, not the crossing."""
    everything = (*SPECIAL, *GIFTS, *ACTIONS, *PASSAGES, *MOVEMENTS, *FEELINGS, *ACTIVITIES)
    known = {verb.base: verb for verb in everything}
    return tuple(known[word.strip()] for word in words.split(","))
