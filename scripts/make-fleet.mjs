// Writes the manifests of a large cluster: N Services with M endpoints each, one in ten with a node port, and Nodes. The endpoints run on
// the first L Nodes. The same numbers give the same manifests.
//
//   node scripts/make-fleet.mjs FOLDER --services 2000 --endpoints 10 --nodes 5000 --local-nodes 2000 [--json]
import { createWriteStream, mkdirSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * @typedef {string | number | boolean} Scalar
 * @typedef {{ [key: string]: Scalar | Mapping | (Scalar | Mapping)[] }} Mapping
 */

/**
 * Writes nodes.yaml, and services.yaml or services.json, to the folder.
 *
 * @param {string} folder
 * @param {{ services: number, endpoints: number, nodes?: number, localNodes?: number, json?: boolean }} size
 */
export async function writeFleet(folder, { services, endpoints, nodes = 1, localNodes = nodes, json = false }) {
  mkdirSync(folder, { recursive: true });
  const objects = makeServices(services, endpoints, localNodes);
  if (json) await writeLines(join(folder, 'services.json'), listOf(objects));
  else await writeLines(join(folder, 'services.yaml'), documents(objects));
  await writeLines(join(folder, 'nodes.yaml'), documents(makeNodes(nodes)));
}

/**
 * @param {number} services
 * @param {number} endpoints
 * @param {number} localNodes
 * @returns {Generator<Mapping, void>}
 */
function* makeServices(services, endpoints, localNodes) {
  for (let i = 0; i < services; i++) {
    const metadata = { name: `svc-${i}`, namespace: `ns-${i % 20}` };
    const clusterIP = address(172, 16, i + 1);
    yield {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: {
        clusterIP,
        clusterIPs: [clusterIP],
        ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080, ...(i % 10 === 0 ? nodePort(i) : {}) }],
        selector: { app: metadata.name },
        type: i % 10 === 0 ? 'NodePort' : 'ClusterIP',
      },
    };
    yield {
      addressType: 'IPv4',
      apiVersion: 'discovery.k8s.io/v1',
      endpoints: Array.from({ length: endpoints }, (_, e) => ({
        addresses: [address(10, 0, i * endpoints + e + 2)],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: nodeName((i * endpoints + e) % localNodes),
        zone: zoneOf((i * endpoints + e) % localNodes),
      })),
      kind: 'EndpointSlice',
      metadata: {
        labels: { 'kubernetes.io/service-name': metadata.name },
        name: `${metadata.name}-abcde`,
        namespace: metadata.namespace,
      },
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    };
  }
}

/**
 * Returns a node port, or none beyond 27,680 Services of type NodePort, because numbers would repeat.
 *
 * @param {number} i
 * @returns {Record<string, number>}
 */
function nodePort(i) {
  return i / 10 < 27_680 ? { nodePort: 5000 + i / 10 } : {};
}

/**
 * @param {number} count
 * @returns {Generator<Mapping, void>}
 */
function* makeNodes(count) {
  for (let n = 0; n < count; n++) {
    const podCIDR = `${address(10, 0, n * 256)
      .split('.')
      .slice(0, 3)
      .join('.')}.0/24`;
    yield {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        labels: { 'kubernetes.io/hostname': nodeName(n), 'topology.kubernetes.io/zone': zoneOf(n) },
        name: nodeName(n),
      },
      spec: { podCIDR, podCIDRs: [podCIDR] },
      status: {
        addresses: [
          { address: nodeName(n), type: 'Hostname' },
          { address: address(192, 168, n + 10), type: 'InternalIP' },
        ],
      },
    };
  }
}

/** @param {number} n */
function nodeName(n) {
  return `node-${n}`;
}

/** @param {number} n */
function zoneOf(n) {
  return `zone-${'abc'[n % 3]}`;
}

/**
 * Returns the n-th address of a.b.0.0, continuing into the networks after it.
 *
 * @param {number} a
 * @param {number} b
 * @param {number} n
 */
function address(a, b, n) {
  return `${a}.${b + Math.floor(n / 65536)}.${Math.floor(n / 256) % 256}.${n % 256}`;
}

/** @param {Iterable<Mapping>} objects */
function* documents(objects) {
  let first = true;
  for (const object of objects) {
    yield `${first ? '' : '---\n'}${toYaml(object, '')}`;
    first = false;
  }
}

/** @param {Iterable<Mapping>} objects */
function* listOf(objects) {
  yield '{\n"apiVersion": "v1",\n"kind": "List",\n"items": [\n';
  let first = true;
  for (const object of objects) {
    yield `${first ? '' : ',\n'}${JSON.stringify(object, undefined, 1)}`;
    first = false;
  }
  yield '\n]\n}\n';
}

/**
 * Writes a mapping in the style of kubectl's output.
 *
 * @param {Mapping} object
 * @param {string} indent
 * @returns {string}
 */
function toYaml(object, indent) {
  let text = '';
  for (const [key, value] of Object.entries(object)) {
    if (Array.isArray(value)) text += `${indent}${key}:\n${value.map((item) => toItem(item, indent)).join('')}`;
    else if (typeof value === 'object') text += `${indent}${key}:\n${toYaml(value, `${indent}  `)}`;
    else text += `${indent}${key}: ${value}\n`;
  }
  return text;
}

/**
 * @param {Scalar | Mapping} item
 * @param {string} indent
 */
function toItem(item, indent) {
  if (typeof item !== 'object') return `${indent}- ${item}\n`;
  return `${indent}- ${toYaml(item, `${indent}  `).slice(indent.length + 2)}`;
}

/**
 * @param {string} path
 * @param {Iterable<string>} pieces
 */
async function writeLines(path, pieces) {
  const stream = createWriteStream(path);
  for (const piece of pieces) if (!stream.write(piece)) await once(stream, 'drain');
  stream.end();
  await once(stream, 'finish');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      services: { type: 'string', default: '2000' },
      endpoints: { type: 'string', default: '10' },
      nodes: { type: 'string', default: '1' },
      'local-nodes': { type: 'string' },
      json: { type: 'boolean' },
    },
  });
  const [folder] = positionals;
  if (folder === undefined) throw new Error('name the folder to write to');
  const nodes = Number(values.nodes);
  await writeFleet(folder, {
    services: Number(values.services),
    endpoints: Number(values.endpoints),
    nodes,
    localNodes: Number(values['local-nodes'] ?? nodes),
    json: values.json ?? false,
  });
}
