// The inputs to measure, and the commands to run on them.
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeFleet } from '../make-fleet.mjs';

/** @typedef {import('./measure.mjs').Command} Command */

export const endpoints = 10;
export const modes = /** @type {const} */ (['ipvs', 'iptables', 'nftables']);
/** @type {Record<typeof modes[number], string>} */
export const modeNames = { ipvs: 'IPVS', iptables: 'iptables', nftables: 'nftables' };

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const nodeName = 'node-0';

/** Unsets a file of certificates, which kpc never uses. Reading it costs Node 50 ms at each start, and other programs nothing. */
export const env = { ...process.env, NODE_EXTRA_CA_CERTS: undefined };

const hostLink = {
  ifindex: 2,
  ifname: 'eth0',
  addr_info: [{ family: 'inet', local: '192.168.0.10', prefixlen: 24, scope: 'global' }],
};

/** The folder of one bench, with a copy of the program and the clusters made so far. */
export class Cases {
  scratch = mkdtempSync(join(tmpdir(), 'kpc-bench-'));
  /** The program, laid out as in an installation. */
  kpc = join(this.scratch, 'bin', 'kpc.js');
  kpcApply = join(root, 'dist', 'kpc-apply.js');
  oracle = process.env['KPC_ORACLE'] || undefined;
  /** The program or data that kpc is compared with. */
  against = this.oracle ? "kube-proxy's code" : 'JSON.parse of the same data';
  /** @type {Map<number, string>} */
  #made = new Map();

  constructor() {
    process.on('exit', () => rmSync(this.scratch, { recursive: true, force: true }));
    // Copy the program, so that a build during the measurement has no effect.
    for (const path of ['package.json', 'bin', 'dist/package.json', 'dist/kpc.js']) {
      cpSync(join(root, path), join(this.scratch, path), { recursive: true });
    }
  }

  /**
   * Writes a cluster with this many Services once, in YAML and in JSON. Returns the folder.
   *
   * @param {number} services
   */
  async make(services) {
    const known = this.#made.get(services);
    if (known) return known;
    const folder = join(this.scratch, `case-${services}`);
    await writeFleet(folder, { services, endpoints, nodes: 10 });
    await writeFleet(folder, { services, endpoints, nodes: 10, json: true });
    // kube-proxy's side of the comparison reads files with these names.
    copyFileSync(join(folder, 'services.yaml'), join(folder, 'cluster.yaml'));
    const [node] = /** @type {[string]} */ (readFileSync(join(folder, 'nodes.yaml'), 'utf8').split('---\n'));
    writeFileSync(join(folder, 'node.yaml'), node);
    writeFileSync(join(folder, 'ip-addr.json'), JSON.stringify([hostLink]));
    this.#made.set(services, folder);
    return folder;
  }

  /** Removes the clusters made so far, because large ones fill a disk. */
  clear() {
    for (const folder of this.#made.values()) rmSync(folder, { recursive: true });
    this.#made.clear();
  }

  /**
   * @param {string} folder
   * @param {{ file?: string, mode?: string, out?: string[] }} [options]
   * @returns {Command}
   */
  compile(folder, { file = 'cluster.yaml', mode = 'ipvs', out = this.#out(mode) } = {}) {
    const inputs = ['-f', join(folder, file), '-f', join(folder, 'node.yaml')];
    const node = ['--node', nodeName, '--proxy-mode', mode, '--host-addresses', join(folder, 'ip-addr.json')];
    return { argv: [process.execPath, this.kpc, 'compile', ...inputs, ...node, ...out], env };
  }

  /** @param {string} mode */
  #out(mode) {
    return ['-o', join(this.scratch, `out-${mode}`)];
  }

  /**
   * Returns the command that a compilation is compared with.
   *
   * @param {string} folder
   * @param {string} mode
   * @returns {Command}
   */
  reference(folder, mode) {
    if (this.oracle) {
      writeFileSync(
        join(folder, 'config.yaml'),
        `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ${mode}\nhostnameOverride: ${nodeName}\n`,
      );
      return { argv: [this.oracle, '-case', folder, '-bench'], env };
    }
    const script = `JSON.parse(require('fs').readFileSync(${JSON.stringify(join(folder, 'services.json'))}, 'utf8'))`;
    return { argv: [process.execPath, '-e', script], env };
  }
}
