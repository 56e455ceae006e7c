// Compares, for folders of input, what a kube-proxy in nftables mode leaves in a kernel with what kpc's files leave there:
//
//   node scripts/compare-kernels.mjs --kube-proxy 'COMMAND {}' [--node node-1] FOLDER...
//
// COMMAND programs the kernel that it runs in from the folder that replaces {}. Each folder holds cluster.yaml, node.yaml, config.yaml
// (mode nftables) and ip-addr.json (the node's output of `ip -j addr`). Each side runs in a network namespace of its own, with the node's
// addresses on lo. The outputs of `nft -j list ruleset` are compared object by object. Needs root, nft and the built program.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'kube-proxy': { type: 'string' },
    node: { type: 'string', default: 'node-1' },
    'kubernetes-version': { type: 'string', default: '1.37' },
  },
});
const kubeProxy = values['kube-proxy'];
if (kubeProxy === undefined || positionals.length === 0) {
  console.error("usage: node scripts/compare-kernels.mjs --kube-proxy 'COMMAND {}' FOLDER...");
  process.exit(2);
}

/**
 * Runs a script in an empty network namespace with the folder's addresses. Returns nft's listing afterwards.
 * @param {string} folder
 * @param {string} script
 */
function inNamespace(folder, script, input = '') {
  /** @type {{ addr_info: { local: string, prefixlen: number }[] }[]} */
  const links = JSON.parse(readFileSync(join(folder, 'ip-addr.json'), 'utf8'));
  const addresses = links
    .flatMap(({ addr_info: infos }) => infos)
    .map(
      ({ local, prefixlen }) =>
        `ip addr add ${local}/${prefixlen} dev lo nodad 2>/dev/null || ip addr add ${local}/${prefixlen} dev lo`,
    )
    .filter((line) => !/ (?:127\.0\.0\.1|::1)\//.test(line));
  const all = ['ip link set lo up', ...addresses, 'set -e', `{ ${script}\n} >&2`, 'nft -j list ruleset'];
  return execFileSync('unshare', ['-n', 'sh', '-c', all.join('\n')], {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/**
 * Returns the text of each object by its name, without handles, with elements sorted and rules in order.
 * @param {string} listed
 */
function objectsIn(listed) {
  /** @type {Map<string, string[]>} */
  const objects = new Map();
  for (const item of JSON.parse(listed).nftables) {
    const [kind, body] = /** @type {[string, any]} */ (Object.entries(item)[0]);
    if (kind === 'metainfo') continue;
    const { handle: _, index: __, ...rest } = body;
    if (Array.isArray(rest.elem))
      rest.elem = rest.elem.map((/** @type {unknown} */ each) => JSON.stringify(each)).sort();
    if (kind === 'counter') Object.assign(rest, { packets: 0, bytes: 0 });
    const key = `${body.family} ${kind} ${body.table ?? ''} ${kind === 'rule' ? body.chain : body.name}`;
    objects.set(key, [...(objects.get(key) ?? []), JSON.stringify(rest)]);
  }
  return objects;
}

/** @param {string} folder */
function compile(folder) {
  const at = (/** @type {string} */ name) => join(folder, name);
  const { node } = values;
  const inputs = ['-f', at('cluster.yaml'), '-f', at('node.yaml'), '--config', at('config.yaml'), '--node', node];
  const form = ['--host-addresses', at('ip-addr.json'), '--ip-family', 'dual', '--print', 'nftables'];
  const release = ['--kubernetes-version', values['kubernetes-version']];
  return execFileSync('node', ['dist/kpc.js', 'compile', ...inputs, ...form, ...release], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

let passed = 0;
let failed = 0;
for (const folder of positionals) {
  /** @type {string[]} */
  const problems = [];
  try {
    const theirs = objectsIn(inNamespace(folder, kubeProxy.replaceAll('{}', folder)));
    const ours = objectsIn(inNamespace(folder, 'nft -f -', compile(folder)));
    for (const key of new Set([...theirs.keys(), ...ours.keys()])) {
      const [wanted, found] = [theirs.get(key)?.join('\n'), ours.get(key)?.join('\n')];
      if (wanted !== found) problems.push(`${key}\n  kube-proxy: ${wanted ?? 'none'}\n  kpc: ${found ?? 'none'}`);
    }
    if (theirs.size === 0) problems.push('kube-proxy left nothing');
  } catch (error) {
    problems.push(String(/** @type {{ stderr?: string }} */ (error).stderr || error));
  }
  if (problems.length === 0) passed++;
  else {
    failed++;
    console.log(`${folder}: ${problems.length} differences\n${problems.slice(0, 3).join('\n')}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
