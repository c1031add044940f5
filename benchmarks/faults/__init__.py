"""Faults at live engines: what happens, what is said, and what the ledger says afterwards."""
