"""The command `discreet`: one file a command, which parses, calls the library and prints.

Nothing heavy is imported when a command is loaded: `discreet --help` must be quick. To add one: a file here, and its
name in `COMMANDS` of `discreet/cli/app.py`.
"""


def main() -> None:
    """Run the command line."""
    from discreet.cli.app import app

    app(prog_name="discreet")
