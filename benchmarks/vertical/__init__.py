"""Parts of the experiment about columns that are split between holders."""
