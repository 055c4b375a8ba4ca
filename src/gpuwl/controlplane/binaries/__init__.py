"""Where etcd, kube-apiserver and kube-scheduler come from. Knows no running control plane."""
