#!/bin/bash
# The step "Install kpc" of action.yml: puts the built kpc into $RUNNER_TEMP/kpc-action. Takes it from KPC_PACKAGE, or else from the
# release of the action's version. An action folder with the built files needs no package.
set -euo pipefail

package=$KPC_PACKAGE
if [ -z "$package" ]; then
  if [ -e "$GITHUB_ACTION_PATH/dist/kpc.js" ]; then exit 0; fi
  version=$(node -p 'require(process.env.GITHUB_ACTION_PATH + "/package.json").version')
  package=https://github.com/$KPC_REPOSITORY/releases/download/v$version/kube-proxy-compiler-$version.tgz
fi
case $package in
  https://* | http://* | /*) ;;
  *) package=$PWD/$package ;;
esac
npm install --ignore-scripts --no-audit --no-fund --no-save --prefix "$RUNNER_TEMP/kpc-action" -- "$package"
