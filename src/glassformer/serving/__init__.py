"""The HTTP service: the APIs of others and our own, over models in processes of their own.

process    one model in a process: batches of texts across requests, restarts
models     the served models, found by their languages
passages   a text of a client: its lines, what is translated of them, and the answer
refusals   why a request is refused, as an HTTP status and a sentence
requests   the fields of a request, read within limits
reading    what is read of texts, bodies and documents
readers    the processes that read what may take long
files      translated files that wait to be fetched
proxies    the addresses of clients behind proxies
log        a line of JSON for each request
limits     how much one request may ask for, how many requests a client may send, and who may send any
metrics    what the service counts, for Prometheus
endpoints  a path and what answers it, with the types of its request and its answer
libretranslate, deepl, immersive, own
the four APIs: the types of their requests and answers, the handlers, and the errors
description
the endpoints as OpenAPI and as a page, by these types
page       the translation page, whose script is made from web/translate
explore    the explorer of the served runs
app        all of it as one ASGI application
"""
