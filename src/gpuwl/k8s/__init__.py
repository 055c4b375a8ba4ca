"""Kubernetes in general: no lab and no local control plane in here."""
