"""What Flower is given: no calls home, keys that only their owner reads, certificates for one address."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import discreet
from discreet.federated.flower.certificates import make_client_key, make_server_certificate

flower = pytest.importorskip("flwr", reason="needs Flower: pip install 'discreet[flower]'")

# Counts the connections that Flower tries to open for one event, and for its check for updates.
PROBE = """
import json, sys, urllib.request
import requests
{imports}
import flwr.supercore.telemetry as telemetry, flwr.supercore.update_check as update_check
calls = []
def refuse(*arguments, **keywords):
    calls.append(1)
    raise urllib.error.URLError("no network here")
urllib.request.urlopen = refuse
update_check._request_flwr_update_check = lambda process_name=None: calls.append(1)
telemetry.event(telemetry.EventType.PING).result(10)
before = set(__import__("threading").enumerate())
update_check.warn_if_flwr_update_available("test")
for thread in set(__import__("threading").enumerate()) - before:
    thread.join(10)
print(json.dumps(len(calls)))
"""


def calls_home(imports, home, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLWR_")}
    environment |= {"FLWR_HOME": str(home), **variables}
    code = PROBE.format(imports=imports)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_flower_does_not_call_home(tmp_path):
    assert calls_home("import discreet.federated.flower", tmp_path / "first") == 0
    assert calls_home("import flwr.supercore.telemetry, discreet.federated.flower", tmp_path / "second") == 0
    assert calls_home("", tmp_path / "third") == 2  # the probe sees both calls of a Flower without this package
    wanted = {"FLWR_TELEMETRY_ENABLED": "1", "FLWR_DISABLE_UPDATE_CHECK": "0"}
    assert calls_home("import discreet.federated.flower", tmp_path / "fourth", **wanted) == 2


def test_private_keys_are_for_their_owner_alone(tmp_path):
    private, public = make_client_key(tmp_path)
    certificate = make_server_certificate(tmp_path)
    for path in (private, certificate.key):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert public.read_bytes().startswith(b"ecdsa-sha2-nistp384 ")


def connect(certificate, authority, host):
    """Connect to a server with this certificate, as a client that trusts this authority."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate.certificate, certificate.key)
    ours, theirs = socket.socketpair()

    def serve():
        try:
            server.wrap_socket(theirs, server_side=True).close()
        except (ssl.SSLError, OSError):
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        ssl.create_default_context(cafile=authority).wrap_socket(ours, server_hostname=host).close()
    finally:
        ours.close()
        thread.join()


def test_a_certificate_is_good_for_its_address_and_its_authority_only(tmp_path):
    (tmp_path / "other").mkdir()
    certificate, other = make_server_certificate(tmp_path), make_server_certificate(tmp_path / "other")
    connect(certificate, certificate.authority, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(certificate, certificate.authority, "127.0.0.2")
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(certificate, other.authority, "127.0.0.1")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent was killed")
def test_programs_end_when_the_process_that_started_them_is_killed(tmp_path):
    start = """
import sys, time
from pathlib import Path
from discreet.federated.flower.processes import Program
program = Program([sys.executable, "-c", "import time; time.sleep(60)"], Path("log"), None)
print(program.process.pid, flush=True)
time.sleep(60)
"""
    command = [sys.executable, "-c", start]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=source_first()) as parent:
        started = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 10.0
    while (ended := is_gone(started)) is False and time.monotonic() < deadline:
        time.sleep(0.05)
    if not ended:
        os.kill(started, signal.SIGKILL)
    assert ended


def source_first():
    return os.environ | {"PYTHONPATH": str(Path(discreet.__file__).parents[1])}


def is_gone(process):
    """Whether a process has ended; one whose parent has not asked yet is a zombie."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return True
