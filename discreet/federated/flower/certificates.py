"""Keys and certificates for a deployment: one authority, one certificate for the SuperLink, one key for each client."""

from __future__ import annotations

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_DAYS = 30


@dataclass(frozen=True)
class ServerCertificate:
    """Paths of the authority's certificate and of the certificate and key of one server."""

    authority: Path
    certificate: Path
    key: Path


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
    authority_name = _name("discreet federated authority")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA384())
    )
    server = (
        _builder(_name(host), authority_name, server_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA384())
    )
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


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _private_bytes(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    signs = dict.fromkeys(("key_cert_sign", "crl_sign"), signs_certificates)
    never = ("content_commitment", "key_encipherment", "data_encipherment", "encipher_only", "decipher_only")
    return x509.KeyUsage(
        digital_signature=True, key_agreement=not signs_certificates, **signs, **dict.fromkeys(never, False)
    )
