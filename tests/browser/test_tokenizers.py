"""The page's tokenizers in a browser, which decodes UTF-8 itself; `web/tests/tokenizers.test.ts` has more texts."""

import json
from typing import Any

from cuts import tokenizers

DIFFERENCES = """(made) => {
  const wrong = [];
  for (const [kind, { data, cuts }] of Object.entries(JSON.parse(made))) {
    const tokenizer = module.makeTokenizer(data);
    for (const [text, ...expected] of cuts) {
      const ids = tokenizer.encode(text);
      const cut = [ids, tokenizer.tokens(ids), tokenizer.decode(ids), tokenizer.split(text)];
      if (JSON.stringify(cut) !== JSON.stringify(expected)) wrong.push([kind, text, cut, expected]);
    }
  }
  return wrong.slice(0, 3);
}"""


def test_hard_texts_are_split_as_in_python(engine_page: Any) -> None:
    # Sent as ASCII, so that unpaired surrogates reach the page unchanged.
    assert engine_page.evaluate(DIFFERENCES, json.dumps(tokenizers(0))) == []
