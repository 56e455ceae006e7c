#!/bin/bash
# Tries kpc.exe of an archive for Windows with Wine, on its drive C: paths with \\, line ends of Windows, and that what it writes has the
# same bytes as on Linux. Prints what is wrong. Wine cannot give Node a pipe, so all output goes to files.
set -uo pipefail
archive=$1
scratch=$(mktemp -d)
trap 'WINEPREFIX=$scratch wineserver -k; rm -rf "$scratch"' EXIT
export WINEPREFIX=$scratch WINEDEBUG=-all DISPLAY=
wine reg add 'HKCU\Software\Wine' /v Version /d win10 /f >/dev/null 2>&1 || { echo 'Wine does not start'; exit 1; }
desk=$scratch/drive_c/desk
mkdir "$desk"
unzip -q "$archive" -d "$scratch/drive_c"
program=$(echo "$scratch"/drive_c/kpc-*/kpc.exe)
cp fixtures/quickstart/svc.yaml "$desk"
sed 's/$/\r/' fixtures/quickstart/svc.yaml >"$desk/crlf.yaml"
printf 'apiVersion: v1\r\nkind: Service\r\nmetadata: { name: web }\r\nspec: { clusterIP: 10.96.0.800, ports: [{ port: 80 }] }\r\n' >"$desk/bad.yaml"
wrong=0

# try STATUS WORD...: runs kpc there, or in the folder $below there; what it prints is in $desk/stdout and $desk/stderr.
try() {
  (cd "$desk/${below:-}" && timeout 120 wine "$program" "${@:2}" >"$desk/stdout" 2>"$desk/stderr" </dev/null)
  local status=$?
  [ "$status" -eq "$1" ] && return
  echo "kpc ${*:2}: status $status"
  cat "$desk/stdout" "$desk/stderr"
  wrong=1
}
# says TEXT FILE
says() { grep -qF -e "$1" "$desk/$2" || { echo "not printed: $1"; cat "$desk/$2"; wrong=1; }; }

try 0 --version
try 0 compile -f crlf.yaml --proxy-mode ipvs --print ipvsadm
cmp "$desk/stdout" fixtures/quickstart/expected-ipvs/ipvsadm.restore || wrong=1
node bin/kpc.js compile -q -f fixtures/quickstart/svc.yaml --proxy-mode ipvs -o "$scratch/here"
# The second one replaces the first.
for _ in 1 2; do try 0 compile -f 'C:\desk\svc.yaml' --proxy-mode ipvs -o 'out\bundle'; done
diff -r "$desk/out/bundle" "$scratch/here" || wrong=1
try 0 bundle pack 'out\bundle' -o 'out\node.tgz'
try 0 bundle verify 'out\node.tgz'
try 0 diff 'out\bundle' svc.yaml

mkdir -p "$desk/deploy/shop"
cp "$desk/svc.yaml" "$desk/deploy/shop"
try 0 init 'deploy\shop' --golden 'deploy\golden'
grep -qx 'file: deploy/shop' "$desk/kpc.yaml" || { cat "$desk/kpc.yaml"; wrong=1; }
try 0 compile --check deploy/golden
says 'kpc.yaml' stderr
# Above the working folder, only that of a repository.
below=deploy try 2 compile --check golden
says 'nothing to compile' stderr
mkdir "$desk/.git"
below=deploy try 0 compile --check golden
says '../kpc.yaml' stderr

try 1 lint 'C:\desk\bad.yaml'
says 'C:/desk/bad.yaml:4:' stdout
says '  spec: { clusterIP: 10.96.0.800' stdout
try 1 lint 'C:\desk\bad.yaml' --output sarif
says '"uri": "file:///C:/desk/bad.yaml"' stdout
try 1 lint '.\deploy\..\bad.yaml' --output sarif
says '"uri": "deploy/../bad.yaml"' stdout
try 2 compile -f 'C:\desk\nosuch.yaml'
says 'C:/desk/nosuch.yaml: error: there is no such file or folder' stderr
try 2 compile -f 'deploy\*.yaml'
says 'kpc does not expand patterns' stderr
exit "$wrong"
