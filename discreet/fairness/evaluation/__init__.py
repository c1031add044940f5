"""What is computed from private rows: certificates and distances that are paid for, or are for the owner alone."""
