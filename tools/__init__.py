"""What builds and checks the docs site; no part of the package."""
