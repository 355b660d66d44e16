"""Send requests to a service with Python clients: libretranslatepy, deep-translator and deepl."""

import json
import os
import subprocess
import sys
from pathlib import Path

import deepl
import deepl.http_client
from deep_translator import LibreTranslator
from deep_translator.exceptions import AuthorizationException
from libretranslatepy import LibreTranslateAPI

given = json.load(sys.stdin)
url, texts, key = given["url"], given["texts"], given["key"]
deepl.http_client.max_network_retries = 0

libre = LibreTranslateAPI(f"{url}/", api_key=key)
deep = LibreTranslator(source="en", target="es", api_key=key, custom_url=f"{url}/")
client = deepl.DeepLClient(key, server_url=url)
translated = client.translate_text(texts, source_lang="EN", target_lang="ES")


def refused(function):
    try:
        function()
    except (deepl.AuthorizationException, deepl.TooManyRequestsException, AuthorizationException) as error:
        return type(error).__name__
    return None


command = [str(Path(sys.executable).parent / "deepl"), "--auth-key", key, "--server-url", url]
typed = subprocess.run(
    [*command, "text", "--from", "EN", "--to", "ES", *texts], capture_output=True, text=True, check=True, env=os.environ
)
usage = client.get_usage()
json.dump(
    {
        "libretranslatepy": [libre.translate(text, "en", "es") for text in texts],
        "languages": libre.languages(),
        "detected": libre.detect(texts[0]),
        "deep-translator": [deep.translate(text) for text in texts],
        "deepl": [one.text for one in translated],
        "deepl command": typed.stdout.splitlines(),
        "detected by deepl": [one.detected_source_lang for one in translated],
        "billed": [one.billed_characters for one in translated],
        "targets": [[one.code, one.name] for one in client.get_target_languages()],
        "sources": [[one.code, one.name] for one in client.get_source_languages()],
        "usage": [usage.character.count, usage.any_limit_reached],
        "wrong key": [
            refused(lambda: deepl.DeepLClient("wrong", server_url=url).translate_text("a", target_lang="ES")),
            refused(
                lambda: LibreTranslator(source="en", target="es", api_key="wrong", custom_url=f"{url}/").translate("a")
            ),
        ],
    },
    sys.stdout,
)
