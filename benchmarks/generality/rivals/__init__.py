"""Other libraries, each in its own environment and process."""
