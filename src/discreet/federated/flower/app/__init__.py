"""The app that Flower runs; it is packed from these files, and imports flwr alone."""
