"""What every layer uses: checks, array types, CSR rows, randomness, files, lazy exports."""
