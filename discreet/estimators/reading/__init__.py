"""What people do with a fitted model: read it, and score with it elsewhere (docs/reading_models.md)."""
