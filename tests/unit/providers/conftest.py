"""What several suites of this folder share."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def untrusted(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """The certificate of a server that nobody has heard of."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    folder: Path = tmp_path_factory.mktemp("certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    where = ["-subj", "/CN=127.0.0.1", "-days", "2", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *where], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
