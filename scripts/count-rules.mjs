// Counts what the built program writes for clusters of growing size in every mode. Writes docs/rule-counts.md and docs/rule-counts.svg.
// Run it by `npm run rule-counts`.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const serviceCounts = [1, 10, 100, 1000, 5000];
const endpointsPerService = 10;
const modes = ['iptables', 'ipvs', 'nftables'];
const scratch = mkdtempSync(join(tmpdir(), 'kpc-rule-counts-'));

/**
 * @typedef {{ rules: number, chains: number, virtualServers: number, realServers: number, setEntries: number }} RestoreCounts
 * @typedef {{ rules: number, chains: number, elements: number }} TableCounts
 * @typedef {{ services: number, iptables: RestoreCounts, ipvs: RestoreCounts, nftables: TableCounts }} Row
 * @typedef {{ mode: 'iptables' | 'ipvs' | 'nftables', name: string, colour: string }} Series
 */

/**
 * Returns what each mode programs for this many Services.
 *
 * @param {number} services
 * @returns {Row}
 */
function countRow(services) {
  const cluster = join(scratch, 'cluster.json');
  writeFileSync(cluster, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: makeCluster(services) }));
  const [iptables, ipvs, nftables] = /** @type {[RestoreCounts, RestoreCounts, TableCounts]} */ (
    modes.map((mode) => {
      const out = join(scratch, mode);
      const args = ['compile', '-f', cluster, '--cluster-cidr', '10.0.0.0/8', '--proxy-mode', mode, '-o', out];
      execFileSync(process.execPath, [join(root, 'dist', 'kpc.js'), ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
      if (mode === 'nftables') return countTable(join(out, 'nftables.nft'));
      return {
        rules: countLines(join(out, 'iptables.restore'), /^-[AI] /),
        chains: countLines(join(out, 'iptables.restore'), /^:/),
        virtualServers: countLines(join(out, 'ipvsadm.restore'), /^-A /),
        realServers: countLines(join(out, 'ipvsadm.restore'), /^-a /),
        setEntries: countLines(join(out, 'ipset.restore'), /^add /),
      };
    })
  );
  return { services, iptables, ipvs, nftables };
}

/**
 * Counts the matching lines of a file; 0 if iptables mode has no such file.
 *
 * @param {string} path
 * @param {RegExp} pattern
 */
function countLines(path, pattern) {
  if (!existsSync(path)) return 0;
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((each) => pattern.test(each)).length;
}

/**
 * Counts the content of a file for nft. Each rule or element is on a line of its own.
 *
 * @param {string} path
 * @returns {TableCounts}
 */
function countTable(path) {
  const counts = { rules: 0, chains: 0, elements: 0 };
  let inside;
  for (const each of readFileSync(path, 'utf8').split('\n')) {
    const opens = /^\t(chain|set|map) /.exec(each);
    if (opens) inside = opens[1];
    if (inside === 'chain') {
      if (opens) counts.chains += 1;
      else if (/^\t\t(?!type |comment )/.test(each)) counts.rules += 1;
    } else if (each.startsWith('\t\t\t')) counts.elements += 1;
  }
  return counts;
}

/**
 * Makes Services with one TCP port each, their endpoints on as many nodes, and the node to compile for.
 *
 * @param {number} services
 */
function makeCluster(services) {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-0' },
    status: { addresses: [{ type: 'InternalIP', address: '192.168.0.1' }] },
  };
  return [node, ...Array.from({ length: services }, (_, i) => makeService(i)).flat()];
}

/** @param {number} index */
function makeService(index) {
  const name = `service-${index}`;
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { clusterIP: address('172.20', index), ports: [{ port: 80, targetPort: 8080 }], selector: { app: name } },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ port: 8080 }],
      endpoints: Array.from({ length: endpointsPerService }, (_, i) => ({
        addresses: [address(`10.${i}`, index)],
        nodeName: `node-${i}`,
      })),
    },
  ];
}

/**
 * Returns the address with this number in a network given by its first two bytes.
 *
 * @param {string} network
 * @param {number} number
 */
function address(network, number) {
  return `${network}.${Math.floor(number / 250)}.${(number % 250) + 1}`;
}

/** @param {Row[]} rows */
function formatPage(rows) {
  const header = [
    'Services',
    'iptables mode: iptables rules',
    'iptables mode: chains',
    'IPVS mode: iptables rules',
    'IPVS mode: virtual servers',
    'IPVS mode: real servers',
    'IPVS mode: set entries',
    'nftables mode: rules',
    'nftables mode: chains',
    'nftables mode: elements',
  ];
  const body = rows.map(({ services, iptables, ipvs, nftables }) =>
    [
      services,
      iptables.rules,
      iptables.chains,
      ipvs.rules,
      ipvs.virtualServers,
      ipvs.realServers,
      ipvs.setEntries,
      nftables.rules,
      nftables.chains,
      nftables.elements,
    ].map((count) => count.toLocaleString('en')),
  );
  return `# Rules per Service

How much \`kpc compile\` writes for one node and IPv4. Each Service is of type ClusterIP, with one port and ${endpointsPerService} endpoints.

- In iptables mode, each Service and each endpoint has its own rules. The first packet of a connection is compared with one rule per
  Service until one matches.
- In IPVS mode, the rules match sets and stay the same; only hash tables in the kernel grow.
- In nftables mode, each Service has a chain with one rule for all of its endpoints, and a map element leads to that chain. A packet meets
  the same few rules, however many Services there are.

${formatTable(header, body)}
![Rules per Service in the three modes, on logarithmic axes](rule-counts.svg)

Written by \`npm run rule-counts\`.
`;
}

/**
 * Formats a Markdown table of numbers, with columns as wide as needed.
 *
 * @param {string[]} header
 * @param {string[][]} body A cell in each row for each title
 */
function formatTable(header, body) {
  const widths = header.map((title, i) =>
    Math.max(title.length, ...body.map((row) => /** @type {string} */ (row[i]).length)),
  );
  const rule = widths.map((width) => `${'-'.repeat(width - 1)}:`);
  return [header, rule, ...body]
    .map((row) => `| ${row.map((cell, i) => cell.padStart(/** @type {number} */ (widths[i]))).join(' | ')} |\n`)
    .join('');
}

/** The area of the plot in the picture, and the powers of ten where its axes end. */
const area = { left: 90, right: 600, top: 60, bottom: 360, services: 4, rules: 6 };

/** @type {Series[]} */
const series = [
  { mode: 'iptables', name: 'iptables mode', colour: '#b34700' },
  { mode: 'nftables', name: 'nftables mode', colour: '#2e7d32' },
  { mode: 'ipvs', name: 'IPVS mode', colour: '#005a9c' },
];

/**
 * Plots rules per Service as SVG. Both axes are logarithmic.
 *
 * @param {Row[]} rows
 */
function formatPlot(rows) {
  const middle = (area.left + area.right) / 2;
  return `${[
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 430" font-family="sans-serif" font-size="15">',
    '<title>Rules against Services, in iptables, nftables and IPVS mode</title>',
    '<rect width="640" height="430" fill="#ffffff"/>',
    text(area.left, 32, `Rules on a node, ${endpointsPerService} endpoints a Service`, 'font-size="18"'),
    ...powersOfTen(area.services).flatMap((services) => [
      line(x(services), area.top, x(services), area.bottom),
      text(x(services), area.bottom + 22, services.toLocaleString('en'), 'text-anchor="middle"'),
    ]),
    ...powersOfTen(area.rules).flatMap((rules) => [
      line(area.left, y(rules), area.right, y(rules)),
      text(area.left - 10, y(rules) + 5, rules.toLocaleString('en'), 'text-anchor="end"'),
    ]),
    text(middle, area.bottom + 52, 'Services', 'text-anchor="middle"'),
    ...series.flatMap((each, i) => formatSeries(rows, each, i)),
    '</svg>',
  ].join('\n')}\n`;
}

/**
 * Draws the points of one mode joined by a line, and its row in the legend at the top left, where no line runs.
 *
 * @param {Row[]} rows
 * @param {Series} series
 * @param {number} row
 */
function formatSeries(rows, { mode, name, colour }, row) {
  const points = rows.map((each) => `${x(each.services)},${y(each[mode].rules)}`);
  const last = /** @type {Row} */ (rows.at(-1));
  const words = `${name}: ${last[mode].rules.toLocaleString('en')} rules for ${last.services.toLocaleString('en')} Services`;
  return [
    `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}" stroke-width="3"/>`,
    ...rows.map((each) => `<circle cx="${x(each.services)}" cy="${y(each[mode].rules)}" r="5" fill="${colour}"/>`),
    text(area.left + 14, area.top + 24 + row * 22, words, `font-weight="bold" fill="${colour}"`),
  ];
}

/** @param {number} services */
function x(services) {
  return Math.round(area.left + (Math.log10(services) / area.services) * (area.right - area.left));
}

/** @param {number} rules */
function y(rules) {
  return Math.round(area.bottom - (Math.log10(rules) / area.rules) * (area.bottom - area.top));
}

/** @param {number} last */
function powersOfTen(last) {
  return Array.from({ length: last + 1 }, (_, i) => 10 ** i);
}

/**
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 */
function line(x1, y1, x2, y2) {
  return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#d5d8dc"/>`;
}

/**
 * @param {number} left
 * @param {number} base
 * @param {string} words
 * @param {string} attributes
 */
function text(left, base, words, attributes) {
  return `<text x="${left}" y="${base}" ${attributes}>${words}</text>`;
}

try {
  const rows = serviceCounts.map(countRow);
  mkdirSync(join(root, 'docs'), { recursive: true });
  writeFileSync(join(root, 'docs', 'rule-counts.md'), formatPage(rows));
  writeFileSync(join(root, 'docs', 'rule-counts.svg'), formatPlot(rows));
} finally {
  rmSync(scratch, { recursive: true });
}
