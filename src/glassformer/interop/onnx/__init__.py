"""Export to ONNX, an open format for onnxruntime and, in a browser, for transformers.js."""
