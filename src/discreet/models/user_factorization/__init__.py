"""The model we recommend, for ratings and for choices."""
