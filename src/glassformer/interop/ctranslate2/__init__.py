"""CTranslate2: its folders, written and read, and the engine that translates with them."""
