"""What verbs answer with: lines, JSON, and the tables of labels and ledgers."""
