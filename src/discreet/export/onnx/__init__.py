"""A model as a graph for ONNX Runtime."""
