#!/bin/bash
# The step "Compare" of action.yml: reads the action's inputs from KPC_… variables, as data and never as part of a command.
set -euo pipefail

installed=${RUNNER_TEMP:-/tmp}/kpc-action/node_modules/kube-proxy-compiler
[ -e "$installed" ] || installed=$GITHUB_ACTION_PATH
kpc() { node "$installed/bin/kpc.js" "$@"; }

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

# Reports whether --check can compare with a folder: the golden or bundle of one node.
is_checked() {
  local name
  for name in golden.json manifest.json; do
    if [ -e "$1/$name" ] || git cat-file -e "$1/$name" 2>/dev/null; then return 0; fi
  done
  return 1
}

# An up-to-date golden does not show the change, so use the golden of the commit before.
before=$KPC_BEFORE
if [ -z "$before" ]; then
  before=$KPC_GOLDEN
  if [ "$changed" = false ] && is_checked "HEAD^1:./$KPC_GOLDEN"; then before=HEAD^1:./$KPC_GOLDEN; fi
fi

status=0
if is_checked "$before" || [ "$before" = "$KPC_GOLDEN" ]; then
  kpc compile "${arguments[@]}" "--check=$before" --output=markdown --quiet >>"$GITHUB_STEP_SUMMARY" || status=$?
else
  work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/kpc.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  kpc compile "${arguments[@]}" "--out=$work/after"
  kpc diff --output=markdown -- "$before" "$work/after" >>"$GITHUB_STEP_SUMMARY" || status=$?
fi
case $status in
  0) ;;
  1) changed=true ;;
  *) exit "$status" ;;
esac

echo "changed=$changed" >>"$GITHUB_OUTPUT"
exit "$verdict"
