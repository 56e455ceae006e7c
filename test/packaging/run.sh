#!/bin/bash
# Builds the packages twice, compares them, and installs and removes each. It takes root on Debian, with the packages dpkg,
# rpm, unzip, man-db and systemd; of Debian's qemu-user-static and libstdc++6-arm64-cross, the programs for arm64 run too, and of
# wine64 that for Windows.
# The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/../.."

if [ "$(id -u)" -ne 0 ] || ! command -v dpkg >/dev/null; then
  echo 'skipped: it installs packages, which takes root and dpkg'
  exit 0
fi
# A package that was removed but not purged is known to dpkg, too.
if [ "$(dpkg-query --show --showformat '${db:Status-Status}' kpc 2>/dev/null)" = installed ]; then
  echo 'kpc is installed as a package already: remove it first' >&2
  exit 1
fi
scratch=$(mktemp -d)
again=
trap '[ -z "$again" ] || kill "$again" 2>/dev/null; dpkg -P kpc >/dev/null 2>&1; rm -rf "$scratch"' EXIT
passed=0 failed=0
version=$(node -p "require('./package.json').version")
manifests=fixtures/quickstart/svc.yaml
# One moment for both builds: a commit that is made meanwhile changes nothing.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

# check NAME COMMAND...: passes if the command does.
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'failed: %s\n%s\n' "$name" "$output" >&2
  fi
}

prints() { [ "$("${@:2}" 2>&1)" = "$1" ] || { "${@:2}"; return 1; }; }
contains() { grep -qF -e "$1" <<<"$("${@:2}" 2>&1)"; }
same() { for file in "$scratch"/first/*"$1"; do cmp "$file" "dist/packages/${file##*/}" || return 1; done; }
# none FOLDER PATH...: nothing is left of what a package held, but for folders that others have too.
none() {
  local path folder=$1
  shift
  for path in "$@"; do
    if [ ! -d "$folder$path" ] && [ -e "$folder$path" ]; then echo "$path is left"; return 1; fi
  done
}

npm run --silent package || { echo '0 passed, 1 failed'; exit 1; }
packages=$scratch/first
cp -r dist/packages "$packages"
# Again, beside what follows, which reads the first ones.
(umask 077 && mkdir "$scratch/tmp" && TMPDIR=$scratch/tmp exec node packaging/build.mjs x64 >/dev/null) &
again=$!
cd_check() { (cd "$packages" && sha256sum --check --strict SHA256SUMS); }
check 'the checksums are right' cd_check
check 'what each package holds is listed, and no more' node test/packaging/check-contents.mjs "$packages"

# What works from wherever a package has put it.
check_programs() {
  local name=$1 bin=$2
  check "$name: kpc" prints "$version" "$bin/kpc" --version
  check "$name: kpc-apply" prints "$version" "$bin/kpc-apply" --version
  check "$name: kpc compiles" diff <("$bin/kpc" compile -q -f "$manifests" --proxy-mode ipvs --print ipvsadm) \
    fixtures/quickstart/expected-ipvs/ipvsadm.restore
  check "$name: kpc-apply reads bundles" contains 'nothing-here' "$bin/kpc-apply" plan nothing-here
}

# docs/install.md: the commands that say how to install what is built here.
commands=$(awk '/^```sh packages$/ { shown = 1; next } /^```$/ { shown = 0 } shown' docs/install.md)
as_shown() { (cd "$packages" && HOME=$scratch/home bash -euo pipefail -c "$commands"); }
check 'the commands of docs/install.md' as_shown
dpkg -P kpc >/dev/null 2>&1

deb=$packages/kpc_${version}_amd64.deb
check 'deb: installs' dpkg -i --force-depends "$deb"
check_programs deb /usr/bin
mapfile -t installed < <(dpkg -L kpc)
# As an image for containers leaves them out, dpkg may have been set to.
if ! grep -rqs 'path-exclude=/usr/share/man' /etc/dpkg/dpkg.cfg.d; then
  check 'deb: man kpc-compile' man --where kpc-compile
  check 'deb: man kpc-apply' man --where 8 kpc-apply
fi
completed() {
  bash --norc -c 'source /usr/share/bash-completion/completions/kpc; COMP_LINE="kpc desc" COMP_POINT=8; _kpc kpc desc; echo "${COMPREPLY[@]}"'
}
check 'deb: completion' prints describe completed
if command -v systemd-analyze >/dev/null; then
  check 'deb: the unit' systemd-analyze verify /usr/lib/systemd/system/kpc-apply.service
fi
check 'deb: removes' dpkg -r kpc
check 'deb: purges' dpkg -P kpc
check 'deb: nothing is left' none '' "${installed[@]}"

if command -v rpm >/dev/null; then
  rpm=$packages/kpc-$version-1.x86_64.rpm
  tree=$scratch/rpm-root
  mkdir "$tree"
  in_tree() { rpm --root "$tree" --nodeps --noscripts "$@"; }
  check 'rpm: installs' in_tree -i "$rpm"
  check_programs rpm "$tree/usr/bin"
  mapfile -t installed < <(rpm -qlp "$rpm")
  check 'rpm: has the man pages' contains /usr/share/man/man8/kpc-apply-plan.8.gz printf '%s\n' "${installed[@]}"
  check 'rpm: holds up' in_tree -V kpc
  check 'rpm: removes' in_tree -e kpc
  check 'rpm: nothing is left' none "$tree" "${installed[@]}"
else
  echo 'left out: rpm, which is not installed'
fi

tar -C "$scratch" -xzf "$packages/kpc_${version}_linux_amd64.tar.gz"
archive=$scratch/kpc-$version
ln -s kpc "$archive/kpc-apply"
check_programs archive "$archive"
warnings_of() { man --warnings --encoding UTF-8 --local-file "$1" 2>&1 >/dev/null; }
ln -s kpc "$archive/kubectl-kpc"
check 'a plugin of kubectl' contains 'Usage: kubectl kpc compile' "$archive/kubectl-kpc" compile --help
for page in "$archive"/man/*/*; do
  check "man page ${page##*/}" prints '' warnings_of "$page"
done

libraries=/usr/aarch64-linux-gnu
if command -v qemu-aarch64-static >/dev/null && [ -e "$libraries/lib/libstdc++.so.6" ]; then
  mkdir "$scratch/arm64"
  tar -C "$scratch/arm64" -xzf "$packages/kpc_${version}_linux_arm64.tar.gz"
  arm64() { qemu-aarch64-static -L "$libraries" -0 "$1" "$scratch/arm64/kpc-$version/kpc" "${@:2}"; }
  check 'arm64: kpc' prints "$version" arm64 kpc --version
  check 'arm64: kpc-apply' contains 'Usage: kpc-apply' arm64 kpc-apply --help
else
  echo 'left out: running the programs for arm64, which takes qemu-user-static and libstdc++6-arm64-cross'
fi

# The archive for macOS with this machine's Node in the place of its own: all but that Node runs here.
mkdir "$scratch/macos" "$scratch/links"
tar -C "$scratch/macos" -xzf "$packages/kpc_${version}_darwin_arm64.tar.gz"
ln -sf "$(command -v node)" "$scratch/macos/kpc-$version/lib/node"
ln -s "../macos/kpc-$version/kpc" "$scratch/links/kpc"
ln -s kpc "$scratch/links/kubectl-kpc"
check 'macos: kpc, through a link' prints "$version" "$scratch/links/kpc" --version
check 'macos: a plugin of kubectl' contains 'Usage: kubectl kpc compile' "$scratch/links/kubectl-kpc" compile --help
check 'macos: kpc compiles in threads' "$scratch/links/kpc" compile -q -f "$manifests" --proxy-mode ipvs --all-nodes --jobs 2 \
  -o "$scratch/macos/bundles"

if command -v wine >/dev/null; then
  check 'windows' bash test/packaging/windows.sh "$packages/kpc_${version}_windows_amd64.zip"
else
  echo 'left out: running the program for Windows, which takes wine64'
fi

prefix=$scratch/npm
check 'npm: kpc-mcp installs' npm install --global --offline --no-audit --no-fund --prefix "$prefix" "$packages/kpc-mcp-$version.tgz"
mcp_answers() {
  local request='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}'
  "$prefix/bin/kpc-mcp" fixtures/quickstart <<<"$request" | grep -qF '"name":"kpc'
}
check 'npm: kpc-mcp answers' mcp_answers
check 'npm: kpc-mcp is no link' test ! -L "$prefix/lib/node_modules/kpc-mcp"

wait "$again"
again=
check 'the .deb has the same bytes when it is built again' same _amd64.deb
check 'the .rpm has the same bytes when it is built again' same x86_64.rpm
check 'the archives have the same bytes when they are built again' same _amd64.tar.gz
check 'the archive for Windows has the same bytes when it is built again' same _amd64.zip
# Both architectures are what there is to publish.
rm -r dist/packages && cp -r "$packages" dist/packages

if command -v ruby >/dev/null; then check 'Homebrew: the formula' ruby -c "$packages/homebrew-kpc.rb"; fi
check 'mise: the entry' python3 -c 'import sys, tomllib; tomllib.load(open(sys.argv[1], "rb"))' "$packages/mise-kpc.toml"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
