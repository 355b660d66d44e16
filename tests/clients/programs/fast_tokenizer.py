"""Use the library `tokenizers`: read {"tokenizer", "texts", "ids"} as JSON, and print {"ids", "texts"} as JSON."""

import json
import sys

from tokenizers import Tokenizer

asked = json.load(sys.stdin)
tokenizer = Tokenizer.from_str(json.dumps(asked["tokenizer"]))
ids = [one.ids for one in tokenizer.encode_batch(asked["texts"])]
json.dump({"ids": ids, "texts": tokenizer.decode_batch(asked["ids"])}, sys.stdout)
