"""A run as files of ONNX, an open format that onnxruntime and, in a browser, transformers.js compute."""
