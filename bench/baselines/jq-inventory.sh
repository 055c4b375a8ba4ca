#!/usr/bin/env bash
# The inventory's sums with jq: advertised, requested and waiting slots by nvidia.com/ name.
# Only containers' limits are counted, which is less than what a scheduler does.
#
#     bench/baselines/jq-inventory.sh NODES.json PODS.json
set -euo pipefail
jq '[.items[].status.allocatable | to_entries[] | select(.key | startswith("nvidia.com/"))]
    | group_by(.key) | map({name: .[0].key, advertised: (map(.value | tonumber) | add)})' "$1"
jq '[.items[] | select(.status.phase | IN("Succeeded", "Failed") | not)
      | (.spec.nodeName != null) as $bound | .spec.containers[].resources.limits // {} | to_entries[]
      | select(.key | startswith("nvidia.com/")) | {name: .key, bound: $bound, slots: (.value | tonumber)}]
    | group_by(.name) | map({name: .[0].name,
        requested: (map(select(.bound) | .slots) | add), asked: (map(select(.bound | not) | .slots) | add)})' "$2"
