"""`discreet schema`: a form to fill in with what is public about the columns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from discreet.cli import options
from discreet.cli.console import check_free, command, print_json


@command("discreet schema patients.csv --out schema.json")
def schema(
    table: options.TableFile,
    no_header: options.NoHeader = False,
    out: Annotated[Path, Option(help="Where to write the schema.")] = Path("schema.json"),
    json: Annotated[bool, Option("--json", help="Print the schema instead of writing it.")] = False,
    force: options.Force = False,
) -> None:
    """Write a schema to fill in, from the header alone: no row is read.

    Then: discreet fit patients.csv --schema schema.json
    """
    import json as json_module

    from discreet.data.files import read_header
    from discreet.data.schema import skeleton

    if not json:
        check_free(out, force)
    form = skeleton(read_header(table, header=not no_header)).to_dict()
    if json:
        print_json(form)
        return
    out.write_text(json_module.dumps(form, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(form['columns'])} columns written to {out}; fill in the target, types, limits and categories")
