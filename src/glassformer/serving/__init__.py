"""The HTTP service: four APIs for models that each run in a separate process. The modules are:

process    one model in a process: batches with texts of several requests, and restarts
models     the served models, found by their languages
passages   a text of a client: its lines, its sentences, and its translation
refusals   why a request is refused, as an HTTP status and a sentence
requests   the fields of a request, read within size and time limits
reading    functions that read texts, bodies and documents
readers    the processes that read long texts and documents
files      translated files that wait to be fetched
proxies    the addresses of clients behind proxies
log        a line of JSON for each request
limits     limits per request and per client, and the keys of clients
metrics    the counters of the service, for Prometheus
endpoints  a path with its handler and the types of its request and its answer
libretranslate, deepl, immersive, own
           the four APIs: the types of their requests and answers, the handlers, and the errors
description
           the endpoints as OpenAPI and as a page, made from these types
page       the translation page, whose script is made from web/translate
explore    the explorer of the served runs
app        the whole service as one ASGI application
"""
