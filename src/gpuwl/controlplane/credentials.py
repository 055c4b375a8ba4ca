"""Certificates, keys, token and kubeconfigs of one local control plane: EC keys, one identity each.

The certificate authority's key is used in memory and never written, so nobody can issue further
identities later. Groups and names are those of Kubernetes' own components
(https://kubernetes.io/docs/setup/best-practices/certificates/).
"""

import base64
import datetime as dt
import ipaddress
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gpuwl.controlplane import components
from gpuwl.system.files import replace_file

VALID_BEFORE = dt.timedelta(days=1)
"""Certificates are valid from the past on, for a clock that is set back a little later."""
VALID_FOR = dt.timedelta(days=3650)

SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority that lives as long as this object."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("gpuwl local control plane")
        usage = _key_usage(sign_certificates=True)
        certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)

    def server(self) -> Pair:
        """Issue the API server's serving certificate."""
        addresses = (components.ADDRESS, components.SERVICE_ADDRESS)
        alternatives = x509.SubjectAlternativeName(
            [
                *(x509.DNSName(name) for name in SERVER_NAMES),
                *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
            ]
        )
        return self._issue(_name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, [alternatives])

    def client(self, user: str, group: str) -> Pair:
        """Issue a client certificate: the API server takes CN as the user and O as the group."""
        return self._issue(_name(user, group), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(
        self, name: x509.Name, purpose: x509.ObjectIdentifier, more: list[x509.ExtensionType]
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(name, self._name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(sign_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        )
        for extension in more:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def create(folder: Path, name: str, port: int) -> None:
    """Write every certificate, key and kubeconfig into `folder`, all with mode 0600."""
    authority = Authority()
    server = authority.server()
    admin = authority.client("gpuwl-admin", "system:masters")
    scheduler = authority.client("system:kube-scheduler", "system:masters")
    account = ec.generate_private_key(ec.SECP256R1())
    files = {
        components.CA_CERTIFICATE: authority.certificate,
        components.SERVER_CERTIFICATE: server.certificate,
        components.SERVER_KEY: server.key,
        components.SERVICE_ACCOUNT_KEY: _pem(account),
        components.SERVICE_ACCOUNT_PUBLIC: _public_pem(account),
        components.SCHEDULER_KUBECONFIG: kubeconfig(
            f"gpuwl-{name}", port, authority.certificate, scheduler
        ),
        components.LOADER_IDENTITY: _token_line("gpuwl-loader", "system:masters"),
        components.KUBECONFIG: kubeconfig(f"gpuwl-{name}", port, authority.certificate, admin),
    }
    for file, content in files.items():
        replace_file(folder / file, content, 0o600, durable=False)


def kubeconfig(context: str, port: int, ca: bytes, pair: Pair) -> bytes:
    """Return a kubeconfig that holds everything in itself."""
    return f"""\
apiVersion: v1
kind: Config
current-context: {context}
clusters:
- name: {context}
  cluster:
    server: https://{components.ADDRESS}:{port}
    certificate-authority-data: {_base64(ca)}
contexts:
- name: {context}
  context:
    cluster: {context}
    user: {context}
users:
- name: {context}
  user:
    client-certificate-data: {_base64(pair.certificate)}
    client-key-data: {_base64(pair.key)}
""".encode()


def _token_line(user: str, group: str) -> bytes:
    """Return a line of kube-apiserver's token file: token, user, uid, groups.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#static-token-file
    """
    return f'{secrets.token_urlsafe(32)},{user},{user},"{group}"\n'.encode()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _name(user: str, group: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group is not None:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID_BEFORE)
        .not_valid_after(now + VALID_FOR)
    )


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
