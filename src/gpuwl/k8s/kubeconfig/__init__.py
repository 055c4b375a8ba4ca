"""Kubeconfigs by kubectl's rules: files, contexts, trust, identities, proxies; no secret on disk."""

from gpuwl.k8s.kubeconfig.credentials import Credentials, current_context, in_cluster, load
from gpuwl.k8s.kubeconfig.transport import client

__all__ = ["Credentials", "client", "current_context", "in_cluster", "load"]
