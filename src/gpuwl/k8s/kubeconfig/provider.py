"""The ways to log in that were built into kubectl (auth-provider): what is left of them.

Source: k8s.io/client-go, plugin/pkg/client/auth.
"""

import base64
import json
import time

from gpuwl.k8s.kubeconfig.problem import Problem
from gpuwl.k8s.kubeconfig.records import Provider

_SUCCESSORS = {"gcp": "gke-gcloud-auth-plugin", "azure": "kubelogin"}
_LEEWAY = 10.0
"""Seconds before its end at which a token no longer counts."""


def check(provider: Provider) -> None:
    """Raise Problem for a provider that kubectl does not use either."""
    if provider.name in _SUCCESSORS:
        successor = _SUCCESSORS[provider.name]
        raise Problem(
            f"its user logs in by auth-provider {provider.name}, which Kubernetes has removed",
            hint=f"log in by the plugin {successor}, then get the kubeconfig anew",
        )
    if provider.name != "oidc":
        raise Problem("its user logs in by an auth-provider that is not oidc")
    for name in ("idp-issuer-url", "client-id"):
        if not provider.settings.get(name):
            raise Problem(f"its user's auth-provider oidc needs {name}")
    _decoded(provider.settings.get("idp-certificate-authority-data", ""))


def token(provider: Provider) -> str:
    """Return the token that the kubeconfig keeps. Raises Problem where its time is over."""
    kept = provider.settings.get("id-token", "")
    if kept and _expiry(kept) > time.time() + _LEEWAY:
        return kept
    raise Problem(
        "its user's id-token has expired" if kept else "its user's auth-provider has no id-token",
        hint="let kubectl renew it (kubectl get nodes), or log in anew",
    )


def _expiry(jwt: str) -> float:
    parts = jwt.split(".")
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return float(json.loads(payload).get("exp", 0)) if len(parts) == 3 else 0.0
    except (IndexError, ValueError, TypeError, AttributeError):
        raise Problem("its user's id-token is none") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.splitlines()), validate=True)
    except ValueError:
        raise Problem("its user's idp-certificate-authority-data is not base64") from None
