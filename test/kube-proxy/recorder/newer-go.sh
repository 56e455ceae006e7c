#!/bin/bash
# newer-go.sh VERSION OUT (1.38.0-beta.0, a new folder): writes OUT/go.mod and OUT/overlay.json, by which the Go that is here builds
# the recorder with a Kubernetes that asks for a newer Go. Needs GOEXPERIMENT=jsonv2 where Go is 1.26: its encoding/json/v2.
#
# "go mod download" refuses such a module, but leaves its zip in the cache. The modules are unpacked to OUT, and ask for this Go there.
# What the module proxy does not have, or this Go lacks, something stands for; a recording depends on none of it but the first:
#   sigs.k8s.io/iptables-wrappers         iptables-wrappers beside this script, which keeps rules in memory
#   sigs.k8s.io/structured-merge-diff/v7  v6 by that name: proxiers merge nothing
#   k8s.io/apiextensions-api, ktesting    nothing: what the recorder imports needs none of them
#   crypto/mldsa (Go 1.27)                the names that client-go has
set -euo pipefail
version=$1 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2" && out=$(cd "$2" && pwd)
go=$(go env GOVERSION) && go=${go#go}
modules=v0.${version#1.}
merge=sigs.k8s.io/structured-merge-diff

# unpack MODULE VERSION: to OUT/MODULE
unpack() {
  local zip
  zip=$(go env GOMODCACHE)/cache/download/$1/@v/$2.zip
  [ -e "$zip" ] || go mod download "$1@$2" >/dev/null 2>&1 || [ -e "$zip" ]
  unzip -q -o "$zip" -d "$out/zip"
  mkdir -p "$out/$1" && rmdir "$out/$1" && mv "$out/zip/$1@$2" "$out/$1"
  sed -i -E "s/^go [0-9.]+.*/go $go/; /^(toolchain|godebug) /d" "$out/$1/go.mod"
  replace "$1" "$out/$1"
}

replace() { printf 'replace %s => %s\n' "$1" "$2" >>"$out/go.mod"; }

printf 'module kpc.invalid/recorder\n\ngo %s\n\n' "$go" >"$out/go.mod"
unpack k8s.io/kubernetes "v$version"
sed -n 's/^\t\(k8s\.io\/[a-z-]*\) v0\.0\.0$/\1/p' "$out/k8s.io/kubernetes/go.mod" | while read -r module; do
  case $module in
  */apiextensions-api | */ktesting)
    mkdir -p "$out/$module" && printf 'module %s\n' "$module" >"$out/$module/go.mod"
    replace "$module" "$out/$module"
    ;;
  *) unpack "$module" "$modules" ;;
  esac
done
for module in api apimachinery apiserver client-go component-base component-helpers kube-proxy kubernetes; do
  printf 'require k8s.io/%s v0.0.0\n' "$module" >>"$out/go.mod"
done
replace sigs.k8s.io/iptables-wrappers "$here/iptables-wrappers"

v6=$(go mod download -json "$merge/v6@v6.4.2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
cp -r "$v6" "$out/merge" && chmod -R u+w "$out/merge"
grep -rl "$merge/v6" "$out/merge" | xargs sed -i "s|$merge/v6|$merge/v7|g"
replace "$merge/v7" "$out/merge"

cat >"$out/mldsa.txt" <<'GO'
package mldsa

type (
	PublicKey  struct{}
	PrivateKey struct{}
)

func (*PrivateKey) PublicKey() *PublicKey { return nil }
GO
printf '{"Replace": {"%s/src/crypto/mldsa/mldsa.go": "%s/mldsa.txt"}}\n' "$(go env GOROOT)" "$out" >"$out/overlay.json"

# Other modules that ask for a newer Go, each by go's error.
while ! said=$(cd "$here" && GOEXPERIMENT=jsonv2 GOFLAGS="-mod=mod -modfile=$out/go.mod -overlay=$out/overlay.json" go list -deps . ./gates ./start 2>&1 >/dev/null); do
  next=$(sed -n 's/.* \([^ ]*@v[^ ]*\) requires go .*/\1/p; s/^\([^ ]*@v[^ ]*\) requires go .*/\1/p' <<<"$said" | head -1)
  [ -n "$next" ] || {
    echo "$said" >&2
    exit 1
  }
  unpack "${next%@*}" "${next#*@}"
done
