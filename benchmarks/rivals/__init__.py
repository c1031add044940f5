"""Methods of others, as the scoreboard (`make bench-rivals`) and the benchmark on many tables run them."""
