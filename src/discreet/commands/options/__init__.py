"""What verbs are asked with: options declared once, and text turned into values."""
