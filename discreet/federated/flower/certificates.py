"""Keys and certificates for a deployment: one authority, one certificate for the SuperLink, one key for each client."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from discreet.privacy.signatures import write_private

VALID_DAYS = 30


@dataclass(frozen=True)
class ServerCertificate:
    """Paths of the authority's certificate and of the certificate and key of one server."""

    authority: Path
    certificate: Path
    key: Path

    @property
    def options(self) -> list[str | Path]:
        """The certificates and the key, as options of Flower's programs."""
        named = {"certfile": self.certificate, "keyfile": self.key, "ca-certfile": self.authority}
        return [part for name, path in named.items() for part in (f"--ssl-{name}", path)]


def make_server_certificate(folder: Path, host: str = "127.0.0.1") -> ServerCertificate:
    """Make a new authority and a server certificate that it signs, for one IP address or host name.

    The authority's private key is not kept: nobody can sign a second certificate with it.

    Parameters
    ----------
    folder : Path
        Receives `ca.pem`, `server.pem` and `server.key` (the key readable by the owner only).
    host : str
        The address that clients connect to.

    Returns
    -------
    ServerCertificate
    """
    authority_key, server_key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    own, public = "discreet federated authority", authority_key.public_key()
    authority = _signed(own, public, own, authority_key, x509.SubjectKeyIdentifier.from_public_key(public), signs=True)
    names = x509.SubjectAlternativeName([_general_name(host)])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(public)
    server = _signed(host, server_key.public_key(), own, authority_key, names, identifier, signs=False)
    paths = ServerCertificate(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    paths.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    paths.certificate.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    write_private(paths.key, _private_bytes(server_key, serialization.PrivateFormat.PKCS8))
    return paths


def make_client_key(folder: Path, name: str = "client") -> tuple[Path, Path]:
    """Make the key by which the SuperLink knows a client; returns the paths of the private and the public part."""
    key = ec.generate_private_key(ec.SECP384R1())
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    write_private(private, _private_bytes(key, serialization.PrivateFormat.OpenSSH))
    openssh = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    public.write_bytes(key.public_key().public_bytes(*openssh))
    return private, public


def _private_bytes(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signed(
    subject: str,
    key: ec.EllipticCurvePublicKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
    signs: bool,
) -> x509.Certificate:
    """The certificate of a key, which an authority has signed; `signs`: of one that may sign certificates itself."""
    now = datetime.datetime.now(datetime.UTC)
    never = ("content_commitment", "key_encipherment", "data_encipherment", "encipher_only", "decipher_only")
    usage: dict[str, bool] = dict.fromkeys(("key_cert_sign", "crl_sign"), signs) | dict.fromkeys(never, False)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=signs, path_length=0 if signs else None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, key_agreement=not signs, **usage), critical=True)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(signer, hashes.SHA384())
