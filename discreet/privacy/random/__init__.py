"""Random numbers for noise and sampling: cryptographic by default, seeded only on request."""
