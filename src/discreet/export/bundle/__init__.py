"""Bundle a model for browsers and apps: its parts, their encoding, a folder to serve, a graph for ONNX."""
