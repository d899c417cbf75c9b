"""Models in other systems: vector stores, feature stores, MLflow, ONNX, browsers, and model cards."""
