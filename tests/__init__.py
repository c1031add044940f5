"""A package of its own, so that a library which installs one of the same name does not hide it from child processes."""
