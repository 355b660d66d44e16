"""Hide the key of one word: is the pronoun still right, and where must the key be hidden for it to matter?"""

from choices import attentions, hidden, pronouns, share, task_examples
from glassformer.watch.inspection import combine
from laboratory import arguments, say, trained, write

HIDDEN = {"place": "place", "animal": "animal", "adjective": "adjective", "verb": "verb", "it": "it", "none": ""}

namespace = arguments(__doc__)
results = {}
for seed in namespace.seeds:
    say(f"seed {seed}")
    translator = trained("demo", seed)
    choices = pronouns(translator, task_examples("coreference", seed, kind="unequal", limit=namespace.limit))
    encoder, cross, decoder = (attentions(translator.model, which) for which in ("encoder", "cross", "decoder"))
    found = {}
    for name, role in HIDDEN.items():
        key, written = choices.at(role), choices.written(role)
        ways = {
            "encoder": hidden(encoder, key),
            "cross": hidden(cross, key),
            "both": hidden(encoder + cross, key),
            "written": hidden(decoder, written),
            "cross and written": combine(hidden(cross, key), hidden(decoder, written)),
            "everywhere": combine(hidden(encoder + cross, key), hidden(decoder, written)),
        }
        for where, edits in ways.items():
            margins = choices.margins(edits)
            found.setdefault(name, {})[where] = {
                "pronoun": share(margins),
                "margin": margins.mean().item(),
                **{member: share(margins[choices.of(member)]) for member in ("animal", "place")},
                **{f"{member} margin": margins[choices.of(member)].mean().item() for member in ("animal", "place")},
            }
    results[str(seed)] = {"sentences": len(choices.each), "hidden": found}
write("hidden_key", {"results": results}, namespace)
