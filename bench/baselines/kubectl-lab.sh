#!/bin/bash
# The lab the way an engineer would do it by hand, kubectl and bash: kubectl-lab.sh ROOT, which is
# emptied first. The other side of bench/lab.py; prints nothing, and spares itself step 8's checker.
set -e
R=${1:?names no root}; rm -rf "$R"; mkdir -p "$R/out" "$R/bin" "$R/k8s"
K="kubectl"
$K create namespace gpu-vm --dry-run=client -o yaml | $K apply -f - >/dev/null
L=nvidia.com/gpu.workload.config
$K label node lab-node-0 --overwrite $L=container >/dev/null
$K label node lab-node-1 --overwrite $L=vm-passthrough >/dev/null
$K label node lab-node-2 --overwrite $L=vm-vgpu >/dev/null
$K get nodes lab-node-0 lab-node-1 lab-node-2 -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.labels.nvidia\.com/gpu\.workload\.config}{"\n"}{end}' | sort > "$R/out/01-nodes.txt"
cat > "$R/out/operands.txt" <<O
container=datacenter-driver,container-toolkit,device-plugin,dcgm-exporter
vm-passthrough=vfio-manager,sandbox-device-plugin
vm-vgpu=vgpu-manager,vgpu-device-manager,sandbox-device-plugin
NO_LABEL=container
ENABLE_FLAG=sandboxWorkloads.enabled
O
p(){ $K patch node "$1" --subresource=status --type=merge -p "{\"status\":{\"capacity\":{\"$2\":\"$3\"},\"allocatable\":{\"$2\":\"$3\"}}}" >/dev/null; }
p lab-node-0 nvidia.com/gpu 4; p lab-node-1 nvidia.com/GA102GL_A10 2; p lab-node-2 nvidia.com/NVIDIA_A10-12Q 4
for t in "lab-node-0 nvidia.com/gpu" "lab-node-1 nvidia.com/GA102GL_A10" "lab-node-2 nvidia.com/NVIDIA_A10-12Q"; do set -- $t; r=${2//./\\.}; echo "$1 $2 $($K get node $1 -o jsonpath="{.status.allocatable.$r}")"; done > "$R/out/03-resources.txt"
pod(){ cat > "$R/k8s/$1.yaml" <<Y
apiVersion: v1
kind: Pod
metadata: {name: $2, namespace: gpu-vm}
spec:
$4
  containers:
  - name: cuda
    image: nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04
    resources: {limits: {$3: 1}}
Y
$K apply -f "$R/k8s/$1.yaml" >/dev/null; }
w(){ $K wait -n gpu-vm pod/$1 --for=condition=PodScheduled --timeout=30s >/dev/null; }
pod pod-container job-container nvidia.com/gpu; w job-container
echo "NODE=$($K get pod -n gpu-vm job-container -o jsonpath='{.spec.nodeName}')" > "$R/out/04-container.txt"
pod pod-passthrough vmi-passthrough nvidia.com/GA102GL_A10; w vmi-passthrough
{ echo "NODE=$($K get pod -n gpu-vm vmi-passthrough -o jsonpath='{.spec.nodeName}')"; echo RESOURCE=nvidia.com/GA102GL_A10; } > "$R/out/05-passthrough.txt"
pod pod-vgpu vmi-vgpu nvidia.com/NVIDIA_A10-12Q; w vmi-vgpu
$K get pods -n gpu-vm job-container vmi-passthrough vmi-vgpu --no-headers -o custom-columns=N:.metadata.name,D:.spec.nodeName | awk '{print $1" "$2}' | sort > "$R/out/06-placement.txt"
pod pod-cross job-cross nvidia.com/gpu "  nodeSelector: {$L: vm-passthrough}"
$K wait -n gpu-vm pod/job-cross --for=jsonpath='{.status.conditions[0].reason}'=Unschedulable --timeout=30s >/dev/null
{ echo "PHASE=$($K get pod -n gpu-vm job-cross -o jsonpath='{.status.phase}')"; n=$($K get pod -n gpu-vm job-cross -o jsonpath='{.spec.nodeName}'); echo "NODE=${n:-none}"; echo "MESSAGE=$($K get pod -n gpu-vm job-cross -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].message}')"; } > "$R/out/07-cross.txt"
$K get nodes -o json > "$R/out/nodes.json"
