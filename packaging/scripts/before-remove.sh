#!/bin/sh
# Before the last version goes: dpkg says "remove", rpm counts 0 versions that stay. The rules stay on the node.
set -e
case "$1" in
  remove | 0)
    if [ -d /run/systemd/system ]; then systemctl disable --now kpc-apply.service || true; fi
    ;;
esac
