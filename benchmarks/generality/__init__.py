"""Defaults on several hundred tables that nobody developed against."""
