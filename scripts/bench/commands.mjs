// Measures commands on a whole cluster by its size, compared with compiling the same Services.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endpoints, env } from './cases.mjs';
import { medians, runOnce } from './measure.mjs';
import { cell, count, ratio, table } from './words.mjs';

/** @typedef {import('./cases.mjs').Cases} Cases */
/** @typedef {import('./measure.mjs').Command} Command */
/** @typedef {import('./measure.mjs').Figures} Figures */

const packets = `tests:
  - { name: pods, from: [pod, node, external], to: svc/ns-0/svc-0, expect: delivered }
`;

/**
 * Writes the folder's cluster with one endpoint changed to a file beside it.
 *
 * @param {string} folder
 */
export function changeOne(folder) {
  const text = readFileSync(join(folder, 'cluster.yaml'), 'utf8');
  writeFileSync(join(folder, 'changed.yaml'), text.replace('- 10.0.0.2\n', '- 10.200.0.2\n'));
}

/**
 * The other commands are compared with the first.
 *
 * @param {Cases} cases
 * @param {string} folder
 * @returns {Map<string, Command>}
 */
function commandsOn(cases, folder) {
  /** @param {string} name */
  const path = (name) => join(folder, name);
  const cluster = ['-f', path('cluster.yaml')];
  const one = [...cluster, '-f', path('node.yaml')];
  const ten = [...cluster, '-f', path('nodes.yaml')];
  /** @param {string[]} args */
  const kpc = (...args) => ({ argv: [process.execPath, cases.kpc, ...args], ok: [0, 1], env });
  return new Map([
    ['compile', cases.compile(folder)],
    ['equivalence ipvs nftables', kpc('equivalence', 'ipvs', 'nftables', ...one)],
    ['equivalence iptables nftables', kpc('equivalence', 'iptables', 'nftables', ...one)],
    ['migrate', kpc('migrate', ...one)],
    ['migrate, 10 nodes', kpc('migrate', ...ten)],
    ['lint', kpc('lint', ...one)],
    ['lint, 10 nodes', kpc('lint', ...ten)],
    ['diff, one endpoint changed', kpc('diff', path('cluster.yaml'), path('changed.yaml'), '-f', path('node.yaml'))],
    ['test, 3 packets', kpc('test', path('packets.yaml'), ...one)],
    ['trace --all', kpc('trace', '--all', 'ns-0/svc-0', ...one)],
  ]);
}

/**
 * @param {Cases} cases
 * @param {{ runs: number, clusters: number[] }} plan
 */
export async function benchCommands(cases, plan) {
  /** @type {Map<string, Figures[]>} */
  const rows = new Map();
  for (const services of plan.clusters) {
    const folder = await cases.make(services);
    changeOne(folder);
    writeFileSync(join(folder, 'packets.yaml'), packets);
    /** @type {Map<string, Figures[]>} */
    const runs = new Map();
    for (let run = 0; run < plan.runs; run++) {
      for (const [name, command] of commandsOn(cases, folder))
        runs.set(name, [...(runs.get(name) ?? []), runOnce(command)]);
    }
    for (const [name, own] of runs) rows.set(name, [...(rows.get(name) ?? []), medians(own)]);
  }
  const [compiling = []] = rows.values();
  /**
   * @param {Figures} own
   * @param {number} at
   */
  const against = (own, at) => ({
    cpu: (own.cpu ?? NaN) / (compiling[at]?.cpu ?? NaN),
    peak: (own.peak ?? NaN) / (compiling[at]?.peak ?? NaN),
  });
  const largest = plan.clusters.length - 1;
  return {
    text: [
      `CPU time and peak memory by number of Services, ${endpoints} endpoints each, and in brackets the ratio of CPU to compiling ` +
        'them for one node in IPVS mode:',
      table(
        ['', ...plan.clusters.map(count)],
        [...rows].map(([name, own]) => [
          `kpc ${name}`,
          ...own.map((run, at) => `${cell(run)} (${ratio(against(run, at).cpu)})`),
        ]),
      ),
    ].join('\n\n'),
    checks: [...rows].slice(1).flatMap(([name, own]) => {
      const { cpu, peak } = against(/** @type {Figures} */ (own[largest]), largest);
      const of = `${name}, ${count(/** @type {number} */ (plan.clusters[largest]))} Services`;
      return [
        { what: `${of}: ratio of CPU`, value: cpu, limit: 3 },
        { what: `${of}: ratio of memory`, value: peak, limit: 2 },
      ];
    }),
  };
}
