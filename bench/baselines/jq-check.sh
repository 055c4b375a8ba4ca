#!/bin/bash
# The checker as an engineer would write it on the spot: the strict rule in jq, without slices,
# quantities other than "0", null fields, or a word about what is no dump. Usage: jq-check.sh FILE
exec jq -r --arg key nvidia.com/gpu.workload.config '
  def kind:
    if . == "nvidia.com/gpu" then "container"
    elif test("-[0-9]+[A-Z]$") then "vm-vgpu"
    else "vm-passthrough" end;
  def advertised:
    [.status.allocatable | to_entries[]
     | select((.key | startswith("nvidia.com/")) and .value != "0") | .key];
  [.items[]
   | select(.metadata.labels[$key] != null)
   | {node: .metadata.name, label: .metadata.labels[$key], names: advertised}] as $judged
  | [$judged[] | select((.names | length) != 1 or (.names[0] | kind) != .label)] as $bad
  | if ($bad | length) == 0 then "OK=\($judged | length)"
    else ($bad[] | "MISMATCH=\(.node) \(.label) vs \(.names | join(","))"), ("" | halt_error(1))
    end' "$1"
