"""The command `discreet`: each of its commands parses, calls the library and prints.

Nothing heavy is imported when a command is loaded: `discreet --help` must be quick. To add one: a function with
`@command(...)` in a file that `FILES` of `discreet/cli/app.py` names.
"""


def main() -> None:
    """Run the command line."""
    from discreet.cli.app import app

    app(prog_name="discreet")
