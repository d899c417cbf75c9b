"""What private models are measured against: good models without any privacy."""
