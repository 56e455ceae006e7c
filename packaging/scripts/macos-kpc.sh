#!/bin/bash
# Starts kpc with the Node beside it, which stays as its authors signed it: macOS on arm64 runs no program without a signature.
# Node sees the name that this was called by, which is kubectl-kpc for a plugin of kubectl.
set -eu
path=$0
while [ -L "$path" ]; do
  link=$(readlink "$path")
  case $link in
    /*) path=$link ;;
    *) path=$(dirname "$path")/$link ;;
  esac
done
lib=$(cd "$(dirname "$path")" && pwd)/lib
if [ ! -x "$lib/node" ]; then
  echo "error: $lib/node is missing: install the whole archive, not this file alone" >&2
  exit 2
fi
exec -a "$0" "$lib/node" "$lib/kpc.js" "$@"
