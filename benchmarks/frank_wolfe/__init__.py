"""Parts of the experiment that races Frank-Wolfe on sparse rows against the plain loop."""
