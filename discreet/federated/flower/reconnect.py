"""How a client that was killed comes back at once.

A SuperLink takes a client for connected until its signs of life are 60 seconds old, and turns a second connection with
the same key away until then. So a client keeps the number that the SuperLink knows it by in a file, and when it starts
again it first says, signed with its key, that the earlier connection has ended.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.proto.fleet_pb2 import DeactivateNodeRequest
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor


class EarlierConnection:
    """The number of a client at its SuperLink, in a file.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def remember(self, node: int) -> None:
        """Keep the number."""
        if self._number() != node:
            self.path.write_text(str(node))

    def end(self, superlink: str, authority: Path, key: Path) -> None:
        """Tell the SuperLink that the connection has ended; without a number or an answer, it finds out by itself."""
        node = self._number()
        if node is None:
            return
        private = load_ssh_private_key(key.read_bytes(), None)
        if not isinstance(private, EllipticCurvePrivateKey):
            raise ValueError(f"{key} is not a key on an elliptic curve; make one with: ssh-keygen -t ecdsa -b 384")
        signature = NodeAuthHttpInterceptor(private, private.public_key())
        version = RuntimeVersionHttpInterceptor(component_name="SuperNode")
        with (
            contextlib.suppress(httpx.HTTPError),
            FleetHttpClient.from_server_address(
                superlink, False, authority.read_bytes(), interceptors=[version, signature]
            ) as connection,
        ):
            connection.DeactivateNode(DeactivateNodeRequest(node_id=node))

    def _number(self) -> int | None:
        try:
            return int(self.path.read_text())
        except (FileNotFoundError, ValueError):
            return None
