#!/bin/bash
# new-release.sh VERSION (such as 1.36.3): writes go-1.36.mod, the module that records with the kube-proxy of that release.
# Kubernetes replaces its own modules by folders of its repository; here they are of the same release. The first build with
# "go build -mod=mod -modfile=go-1.36.mod -tags ..." (see record.mjs for the tags) adds what they need, and go-1.36.sum.
set -euo pipefail
cd "$(dirname "$0")"

version=$1
modules=0.${version#1.}
kubernetes=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')

{
  printf 'module kpc.invalid/recorder\n\ngo 1.26.0\n\nrequire (\n'
  for module in api apimachinery apiserver client-go component-helpers kube-proxy; do
    printf '\tk8s.io/%s v%s\n' "$module" "$modules"
  done
  printf '\tk8s.io/kubernetes v%s\n)\n\nreplace (\n' "$version"
  sed -n 's|^\t\(k8s.io/[a-z-]*\) => ./staging.*|\1|p' "$kubernetes/go.mod" | while read -r module; do
    printf '\t%s => %s v%s\n' "$module" "$module" "$modules"
  done
  printf ')\n'
} >"go-${version%.*}.mod"
