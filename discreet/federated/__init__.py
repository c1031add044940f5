"""Models trained over many data holders: with a server, on a graph without one, or with the columns split."""
