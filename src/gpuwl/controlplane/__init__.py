"""The local control plane: etcd, kube-apiserver and kube-scheduler as processes of this machine."""
