"""Title.

Some text."""

print(1)
