"""Where the real scheduler would put Pods on somebody's cluster, why not elsewhere, and what if."""
