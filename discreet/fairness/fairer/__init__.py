"""Fairer models: directions between groups, and features without them."""
