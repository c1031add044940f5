"""`discreet key`, `sign` and `verify`: who answers for a model file or an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from discreet.cli import options
from discreet.cli.console import answer, command

Signed = Annotated[Path, Argument(metavar="FILE", help="A model file, or an evaluation from discreet evaluate --out.")]
Encrypted = Annotated[bool, Option("--passphrase", help="Ask for the passphrase of the private key.")]
AskedLedger = Annotated[str | None, Option("--ledger", metavar="URL", help="The ledger that granted the release.")]


@command("discreet key --out steward.key")
def key(
    out: Annotated[Path, Option(help="The private key; the public one is written beside it, with the ending .pub.")],
    passphrase: Encrypted = False,
    json: options.Json = False,
) -> None:
    """Make a pair of keys to sign with. Keep the private one; give the public one to those who verify."""
    from discreet.privacy.signatures import new_key

    secret = typer.prompt("passphrase", hide_input=True, confirmation_prompt=True, err=True) if passphrase else None
    public = new_key(out, secret)
    answer(json, {"private": str(out), "public": str(public)}, f"private key  {out}\npublic key   {public}")


@command("discreet sign model.json --key steward.key --ledger budget.db")
def sign(
    file: Signed,
    key: Annotated[Path, Option(help="The private key.")],
    ledger: AskedLedger = None,
    passphrase: Encrypted = False,
    force: Annotated[bool, Option("--force", help="Replace an earlier signature.")] = False,
    json: options.Json = False,
) -> None:
    """Sign a file: its guarantee is proved again, the ledger must confirm it, and the ledger's head is signed, too."""
    from discreet.report import sign_file

    secret = typer.prompt("passphrase", hide_input=True, err=True) if passphrase else None
    signed = sign_file(file, key, ledger=ledger, passphrase=secret, overwrite=force)
    answer(json, signed.to_dict, f"{signed}\nwritten to {file}.sig; keep both files together")


@command("discreet verify model.json --key steward.pub")
def verify(
    file: Signed,
    key: Annotated[list[Path], Option(help="A public key that you trust; may be given again.")],
    ledger: AskedLedger = None,
    json: options.Json = False,
) -> None:
    """Check that a file was signed with a key that you trust and was not changed since; exit code 2 if not."""
    from discreet.report import verify_file

    signed = verify_file(file, key, ledger=ledger)
    told = f"{file} is as it was signed {signed.date}, with a key that you trust ({signed.fingerprint})"
    answer(json, signed.to_dict, told)
