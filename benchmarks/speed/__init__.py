"""The speed of training and of translation with one configuration or run, and where the time goes."""

import os

# Keep the messages of torch's profiler off stderr; torch reads this environment variable on import.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
