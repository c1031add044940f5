"""Parts of the experiment about speed and memory: each gives rows of one table."""
