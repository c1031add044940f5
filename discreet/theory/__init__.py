"""Bounds of the literature as functions of public numbers, with their assumptions checked."""
