#!/bin/bash
# The step "Compare" of action.yml: reads the action's inputs from KPC_… variables, each as data, never as a part of a command.
set -euo pipefail

kpc() { node "$GITHUB_ACTION_PATH/bin/kpc.js" "$@"; }

fail() {
  echo "::error title=kpc::$1"
  exit 2
}

arguments=()
while IFS= read -r line; do
  line=${line%$'\r'}
  [ -z "$line" ] || arguments+=(-f "$line")
done <<<"$KPC_FILES"
[ ${#arguments[@]} -gt 0 ] || fail 'The input "files" names no manifests.'
[ -n "$KPC_GOLDEN$KPC_BEFORE" ] || fail 'Give the input "golden", "before", or both.'
[ -z "$KPC_NODE" ] || arguments+=("--node=$KPC_NODE")
[ -z "$KPC_CONFIG" ] || arguments+=("--config=$KPC_CONFIG")
[ -z "$KPC_HOST_ADDRESSES" ] || arguments+=("--host-addresses=$KPC_HOST_ADDRESSES")
while IFS= read -r line; do
  line=${line%$'\r'}
  [ -z "$line" ] || arguments+=("$line")
done <<<"$KPC_FLAGS"

changed=false
verdict=0

if [ -n "$KPC_GOLDEN" ]; then
  status=0
  kpc compile "${arguments[@]}" "--check=$KPC_GOLDEN" --output=github || status=$?
  case $status in
    0) ;;
    1)
      changed=true
      if [ "$KPC_FAIL_ON_CHANGE" != false ]; then verdict=1; fi
      ;;
    *) exit "$status" ;;
  esac
fi

if [ -n "$KPC_BEFORE" ]; then
  work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/kpc.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  kpc compile "${arguments[@]}" "--out=$work/after"
  status=0
  kpc diff --output=markdown -- "$KPC_BEFORE" "$work/after" >>"$GITHUB_STEP_SUMMARY" || status=$?
  case $status in
    0) ;;
    1) changed=true ;;
    *) exit "$status" ;;
  esac
fi

echo "changed=$changed" >>"$GITHUB_OUTPUT"
exit "$verdict"
