"""The folder of a prepared corpus, and the steps that make the folder's parts.

    manifest.json       the corpus's files and settings, and the folder's contents (manifest.py, matching.py)
    kept.npy            one bit per line pair of the training files: whether it is used for training (texts.py)
    sample.jsonl        the first pairs, from which open settings are chosen (texts.py)
    valid.jsonl         the validation pairs, as text (texts.py, held_out.py)
    tokenizer/          the tokenizers (tokenizers.py)
    train-00000.*.npy   the training pairs as ids (shards.py)

Each file appears only when it is complete, so a second run does only the missing steps.
"""
