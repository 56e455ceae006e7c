// Compiles a few Services in each mode, and keeps the code that V8 compiled for that beside the program: dist/kpc.cache, which
// bin/load.js reads. It runs when the program is built or installed, and never later.
// @ts-check
const { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const v8 = require('node:v8');
const { cachePath, compile, digest, evaluate } = require('./load.js');

const manifests = `
apiVersion: v1
kind: Node
metadata:
  name: node-0
spec:
  podCIDR: 10.0.0.0/24
status:
  addresses:
  - type: InternalIP
    address: 192.168.0.10
${[1, 2, 3].map(service).join('')}`;

/** @param {number} number */
function service(number) {
  return `---
apiVersion: v1
kind: Service
metadata:
  name: service-${number}
  namespace: default
spec:
  type: NodePort
  clusterIP: 10.96.0.${number}
  clusterIPs:
  - 10.96.0.${number}
  ipFamilies:
  - IPv4
  ports:
  - name: http
    port: 80
    protocol: TCP
    targetPort: 8080
    nodePort: ${30000 + number}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: service-${number}-1
  namespace: default
  labels:
    kubernetes.io/service-name: service-${number}
addressType: IPv4
endpoints:
- addresses:
  - 10.0.0.${number}
  conditions:
    ready: true
  nodeName: node-0
- addresses:
  - 10.0.1.${number}
  conditions:
    ready: true
  nodeName: node-1
ports:
- name: http
  port: 8080
  protocol: TCP
`;
}

/** @param {string} path */
async function writeCache(path) {
  const program = readFileSync(path);
  const script = compile(path, program.toString('latin1'));
  // V8 rejects a cache of other settings than it has when it reads one, and the program changes them later.
  v8.setFlagsFromString = () => {};
  const { main } = evaluate(script, path);
  const nowhere = async () => {};
  const terminal = {
    out: nowhere,
    err: nowhere,
    status: nowhere,
    readStdin: async () => manifests,
    colour: { out: false, err: false },
    interactive: false,
  };
  const scratch = mkdtempSync(join(tmpdir(), 'kpc-cache-'));
  try {
    for (const mode of ['ipvs', 'iptables', 'nftables']) {
      const status = await main(['compile', '-f', '-', '--proxy-mode', mode, '-o', join(scratch, mode)], terminal);
      if (status !== 0) throw new Error(`the compilation in mode ${mode} ended with ${status}`);
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const code = script.createCachedData();
  const unfinished = `${cachePath(path)}.${process.pid}`;
  writeFileSync(unfinished, Buffer.concat([digest(program, code), code]));
  renameSync(unfinished, cachePath(path));
}

const path = join(__dirname, '..', 'dist', 'kpc.js');
// A checkout whose packages are being installed is not built yet.
if (existsSync(path)) {
  writeCache(path).catch((error) => {
    // Without the cache, each start takes a little longer.
    console.error(`note: ${cachePath(path)} could not be written: ${error.message}`);
  });
}
