"""Parts of the experiment that compares our accounting with dp-accounting."""
