"""Reviewing manifests before they are applied: names, nodes and rights that do not fit. Behind `gpuwl review`."""
