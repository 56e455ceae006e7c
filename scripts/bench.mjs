// Measures kpc, prints the figures, and writes them to docs/performance.md with plots.
//
//   npm run bench              everything: about ten minutes
//   npm run bench -- --quick   smaller inputs, in under a minute; writes nothing
//
// Machines differ and are busy, so what counts are ratios, each against something that runs in turn with kpc: kube-proxy's
// own code on the same files where the environment variable KPC_ORACLE names a program that runs it
// (PROGRAM -case FOLDER -bench), else Node itself reading the same data.
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { compare, describeMachine, fitExponent, measure, runOnce } from './bench/measure.mjs';
import { plotLines } from './bench/plot.mjs';
import { benchSmallChange } from './bench/small-change.mjs';
import { writeFleet } from './make-fleet.mjs';

/** @typedef {{ argv: string[], ok?: number[], env?: NodeJS.ProcessEnv }} Command */
/** @typedef {{ wall: number, cpu: number }} Times */
/** @typedef {Times & { peak: number }} Ratios */
/** @typedef {{ wall: number, cpu?: number | undefined, peak?: number | undefined }} Run Seconds, and MiB. */
/** @typedef {Run & { name: string }} NamedRun */
/** @typedef {Run & { services: number }} SizedRun */
/** @typedef {{ own: Run, other: Run, ratio: Ratios }} Comparison */
/** @typedef {Comparison & { name: string }} NamedComparison */
/** @typedef {{ name: string, rows: SizedRun[], exponent: number }} Series */
/** @typedef {{ name: string, skipped?: undefined, own: Times, other: Times, ratio: Times, floor: Times }} MeasuredApply */
/** @typedef {{ name: string, skipped: string, ratio?: undefined }} SkippedApply */
/** @typedef {MeasuredApply | SkippedApply} Applied */

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const oracle = process.env['KPC_ORACLE'] || undefined;
const quick = process.argv.includes('--quick');

const plan = quick
  ? {
      runs: 2,
      compared: 2,
      services: 1000,
      sizes: [500, 1000, 2000],
      fleet: { services: 200, nodes: 100, localNodes: 40 },
    }
  : {
      runs: 3,
      // kube-proxy's code uses more or less of the second processor each time: its CPU time differs by a tenth.
      compared: 7,
      services: 10_000,
      sizes: [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000],
      fleet: { services: 2000, nodes: 5000, localNodes: 2000 },
    };
const endpoints = 10;
const nodeName = 'node-0';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-bench-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

// A copy, so that a build in the meantime changes nothing.
const kpc = join(scratch, 'kpc.cjs');
copyFileSync(join(root, 'dist', 'kpc.js'), kpc);

/** What a package manager links to. */
const bin = join(root, 'bin', 'kpc.js');

/** @type {Map<number, string>} */
const made = new Map();

/**
 * Writes the cluster of that many Services once, in YAML and in JSON, and gives the folder.
 *
 * @param {number} services
 */
async function makeCase(services) {
  const known = made.get(services);
  if (known) return known;
  const folder = join(scratch, `case-${services}`);
  await writeFleet(folder, { services, endpoints, nodes: 10 });
  await writeFleet(folder, { services, endpoints, nodes: 10, json: true });
  // The names of files that kube-proxy's side of the comparison reads.
  writeFileSync(join(folder, 'cluster.yaml'), readFileSync(join(folder, 'services.yaml')));
  writeFileSync(
    join(folder, 'node.yaml'),
    /** @type {string} */ (readFileSync(join(folder, 'nodes.yaml'), 'utf8').split('---\n')[0]),
  );
  writeFileSync(join(folder, 'ip-addr.json'), JSON.stringify([hostLink]));
  writeConfig(folder, 'ipvs');
  made.set(services, folder);
  return folder;
}

const hostLink = {
  ifindex: 2,
  ifname: 'eth0',
  addr_info: [{ family: 'inet', local: '192.168.0.10', prefixlen: 24, scope: 'global' }],
};

/**
 * @param {string} folder
 * @param {string} mode
 */
function writeConfig(folder, mode) {
  writeFileSync(
    join(folder, 'config.yaml'),
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ${mode}\nhostnameOverride: ${nodeName}\n`,
  );
}

/**
 * @param {string} folder
 * @param {{ file?: string, mode?: string, out?: string[] }} [options]
 * @returns {{ argv: string[] }}
 */
function compile(folder, { file = 'cluster.yaml', mode = 'ipvs', out = ['-o', join(scratch, `out-${mode}`)] } = {}) {
  const inputs = ['-f', join(folder, file), '-f', join(folder, 'node.yaml')];
  const node = ['--node', nodeName, '--proxy-mode', mode, '--host-addresses', join(folder, 'ip-addr.json')];
  return { argv: [process.execPath, kpc, 'compile', ...inputs, ...node, ...out] };
}

/**
 * What a compilation is measured against, and what to call it.
 *
 * @param {string} folder
 * @returns {{ name: string, command: Command }}
 */
function reference(folder) {
  if (oracle) return { name: "kube-proxy's code", command: { argv: [oracle, '-case', folder, '-bench'] } };
  const script = `JSON.parse(require('fs').readFileSync(${JSON.stringify(join(folder, 'services.json'))}, 'utf8'))`;
  return { name: 'JSON.parse of the same data', command: { argv: [process.execPath, '-e', script] } };
}

/** Reading a file of certificates, which kpc never uses, costs Node 50 ms at each start, and other programs nothing. */
const withoutCertificates = { ...process.env, NODE_EXTRA_CA_CERTS: undefined };

async function benchCompile() {
  const folder = await makeCase(plan.services);
  /** @type {NamedComparison[]} */
  const results = [];
  for (const [name, file, mode, out] of /** @type {[string, string, string, string[]?][]} */ ([
    ['YAML to a bundle, IPVS', 'cluster.yaml', 'ipvs'],
    ['JSON to a bundle, IPVS', 'services.json', 'ipvs'],
    ['YAML to a bundle, iptables', 'cluster.yaml', 'iptables'],
    ['JSON to a bundle, iptables', 'services.json', 'iptables'],
    ['YAML to a bundle, nftables', 'cluster.yaml', 'nftables'],
    ['JSON to a bundle, nftables', 'services.json', 'nftables'],
    // What kube-proxy's code makes, and no more: a bundle has services.json besides, and the checksums of its files.
    ['YAML to nftables.nft alone', 'cluster.yaml', 'nftables', ['--print', 'nftables']],
  ])) {
    writeConfig(folder, mode);
    const own = { ...compile(folder, { file, mode, ...(out && { out }) }), env: withoutCertificates };
    const other = { ...reference(folder).command, env: withoutCertificates };
    const result = /** @type {Comparison} */ (compare(own, other, plan.compared));
    const megabytes = statSync(join(folder, file)).size / 1e6;
    results.push({ name: `${name} (${megabytes.toFixed(1)} MB)`, ...result });
  }
  writeConfig(folder, 'ipvs');
  return results;
}

async function benchStart() {
  const folder = await makeCase(10);
  const env = withoutCertificates;
  const nothing = { argv: [process.execPath, '-e', '0'], env };
  const [node, , ...args] = compile(folder).argv;
  const runs = plan.runs * 4;
  return /** @type {NamedComparison[]} */ ([
    { name: 'kpc --version', ...compare({ argv: [process.execPath, bin, '--version'], env }, nothing, runs) },
    // As it is installed: with the code that V8 compiled beside the program.
    { name: 'kpc compile of 10 Services', ...compare({ argv: [node ?? '', bin, ...args], env }, nothing, runs) },
  ]);
}

/** Figures for each size, the kube-proxy of the same size where it can be asked, and the exponents of growth. */
async function benchGrowth() {
  const empty = /** @type {Run} */ (measure(compile(await makeCase(1)), 3));
  /** @type {Series[]} */
  const series = [];
  for (const [name, file, mode] of /** @type {[string, string, string][]} */ ([
    ['kpc, YAML, IPVS', 'cluster.yaml', 'ipvs'],
    ['kpc, JSON, IPVS', 'services.json', 'ipvs'],
    ['kpc, YAML, iptables', 'cluster.yaml', 'iptables'],
    ['kpc, YAML, nftables', 'cluster.yaml', 'nftables'],
  ])) {
    /** @type {SizedRun[]} */
    const rows = [];
    for (const services of plan.sizes) {
      rows.push({ services, ...runOnce(compile(await makeCase(services), { file, mode })) });
    }
    // The time to start is the same for all sizes, and would make growth look smaller than it is.
    const exponent = fitExponent(
      rows.map(({ services, cpu, wall }) => [services, (cpu ?? wall) - (empty.cpu ?? empty.wall)]),
    );
    series.push({ name, rows, exponent });
  }
  if (!oracle) return series;
  /** @type {SizedRun[]} */
  const rows = [];
  for (const services of plan.sizes) {
    rows.push({ services, ...runOnce(reference(await makeCase(services)).command) });
  }
  return [
    ...series,
    {
      name: "kube-proxy's code, IPVS",
      rows,
      exponent: fitExponent(rows.map((row) => [row.services, row.cpu ?? row.wall])),
    },
  ];
}

/** Other things to do with a compiled cluster. */
async function benchOthers() {
  const folder = await makeCase(plan.services);
  const before = join(scratch, 'before');
  const after = join(scratch, 'after');
  const changed = join(scratch, 'changed.yaml');
  const text = readFileSync(join(folder, 'cluster.yaml'), 'utf8');
  writeFileSync(changed, text.replace('- 10.0.0.2\n', '- 10.200.0.2\n'));
  runOnce(compile(folder, { out: ['-o', before] }));
  runOnce(compile(folder, { file: '../changed.yaml', out: ['-o', after] }));
  return /** @type {NamedRun[]} */ ([
    {
      name: 'compile, ipvsadm.restore alone to stdout',
      ...measure(compile(folder, { out: ['--print', 'ipvsadm'] }), plan.runs),
    },
    { name: 'compile --check, nothing changed', ...measure(compile(folder, { out: ['--check', before] }), plan.runs) },
  ]);
}

/** A diff of two bundles of which one endpoint differs, against the compilation of one of them. */
async function benchDiff() {
  const folder = await makeCase(plan.services);
  const [before, after] = [join(scratch, 'before'), join(scratch, 'after')];
  const diff = { argv: [process.execPath, kpc, 'diff', before, after], ok: [1], env: withoutCertificates };
  const own = compare(diff, { ...compile(folder), env: withoutCertificates }, plan.runs);
  return /** @type {NamedComparison[]} */ ([{ name: 'diff of two bundles, one endpoint changed', ...own }]);
}

/** One endpoint of 1,000 Services with ten each has another address, on a node that has the rest already. */
async function benchApply() {
  const folder = await makeCase(1000);
  const text = readFileSync(join(folder, 'cluster.yaml'), 'utf8');
  writeFileSync(join(folder, 'changed.yaml'), text.replace('- 10.0.0.2\n', '- 10.200.0.2\n'));
  const bundles = /** @type {Record<'iptables' | 'ipvs', { before: string, after: string }>} */ ({});
  for (const mode of /** @type {const} */ (['iptables', 'ipvs'])) {
    bundles[mode] = { before: join(scratch, `node-${mode}`), after: join(scratch, `node-${mode}-changed`) };
    runOnce(compile(folder, { mode, out: ['-o', bundles[mode].before] }));
    runOnce(compile(folder, { mode, file: 'changed.yaml', out: ['-o', bundles[mode].after] }));
  }
  return /** @type {Applied[]} */ (
    benchSmallChange({ bundles, program: join(root, 'dist', 'kpc-apply.js'), runs: plan.runs })
  );
}

async function benchFleet() {
  const { services, nodes, localNodes } = plan.fleet;
  const folder = join(scratch, 'fleet');
  await writeFleet(folder, { services, endpoints, nodes, localNodes });
  const out = join(scratch, 'fleet-out');
  const argv = [process.execPath, kpc, 'compile', '-f', folder, '--all-nodes', '--jobs', '2', '-o', out];
  // Without a warm-up, for the second run finds everything done.
  const first = runOnce({ argv });
  const second = runOnce({ argv });
  const input = join(folder, 'services.yaml');
  writeFileSync(input, readFileSync(input, 'utf8').replace('- 10.0.0.2\n', '- 10.200.0.2\n'));
  const third = runOnce({ argv });
  return /** @type {NamedRun[]} */ ([
    { name: `${count(nodes)} nodes × ${count(services)} Services × ${endpoints} endpoints, from nothing`, ...first },
    { name: 'the same again, nothing changed', ...second },
    { name: 'the same again, one endpoint changed', ...third },
  ]);
}

/** @param {number} number */
function count(number) {
  return number.toLocaleString('en');
}

/**
 * What a release must keep to, as ratios to what runs in turn with it, or in MB. They hold where kube-proxy's code runs
 * beside kpc; the sizes in the table's names are those of the full run.
 */
const limits = {
  ratio: {
    'YAML to a bundle, IPVS': 0.25,
    'JSON to a bundle, IPVS': 0.125,
    'kpc --version': 1.5,
  },
  /** The same of CPU time: kube-proxy's code waits for nothing here, and kpc uses several processors. */
  cpuRatio: {
    'YAML to a bundle, IPVS': 0.18,
    'YAML to a bundle, iptables': 0.33,
    'YAML to a bundle, nftables': 0.18,
    'YAML to nftables.nft alone': 0.25,
    'kpc compile of 10 Services': 2,
    'diff of two bundles': 2,
  },
  /** The same of peak memory. */
  peakRatio: { 'YAML to a bundle': 1 },
  /**
   * CPU time of a small change, to that of reading the node once. In the legacy variant no program can keep to it: its
   * tools alone, reading twice and writing once, take more.
   */
  smallChange: 3,
  /** At 10,000 Services with ten endpoints. */
  peakMegabytes: 450,
  /** Twice the Services. */
  growth: 2,
  fleetSeconds: { 'the same again, nothing': 25, 'the same again, one': 50, '5,000 nodes': 70 },
};

/**
 * Which of the limits of an apply were not kept. They need no kube-proxy beside.
 *
 * @param {Applied[]} applied
 */
function findSlowApplies(applied) {
  return /** @type {MeasuredApply[]} */ (applied.filter(({ ratio }) => ratio && ratio.cpu > limits.smallChange)).map(
    ({ name, ratio }) => `small change, ${name}: ratio of CPU ${ratio.cpu.toFixed(2)}, not ${limits.smallChange}`,
  );
}

/**
 * The limit of what is measured under a name that begins so.
 *
 * @param {Record<string, number>} all
 * @param {string} name
 */
function limitOf(all, name) {
  return Object.entries(all).find(([start]) => name.startsWith(start))?.[1];
}

/**
 * Which of the limits were not kept, as people would say it.
 *
 * @param {{
 *   compiled: NamedComparison[],
 *   started: NamedComparison[],
 *   compared: NamedComparison[],
 *   growth: Series[],
 *   fleet: NamedRun[],
 *   applied: Applied[],
 * }} results
 */
function findMissed({ compiled, started, compared, growth, fleet, applied }) {
  const missed = findSlowApplies(applied);
  for (const { name, ratio, own } of [...compiled, ...started, ...compared]) {
    const limit = limitOf(limits.ratio, name);
    if (limit !== undefined && ratio.wall > limit) missed.push(`${name}: ratio ${ratio.wall.toFixed(2)}, not ${limit}`);
    const cpuLimit = limitOf(limits.cpuRatio, name);
    if (cpuLimit !== undefined && ratio.cpu > cpuLimit) {
      missed.push(`${name}: ratio of CPU ${ratio.cpu.toFixed(2)}, not ${cpuLimit}`);
    }
    const peakLimit = limitOf(limits.peakRatio, name);
    if (peakLimit !== undefined && ratio.peak > peakLimit) {
      missed.push(`${name}: ratio of peak memory ${ratio.peak.toFixed(2)}, not ${peakLimit}`);
    }
    const megabytes = (own.peak ?? 0) * 1.048576;
    if (megabytes > limits.peakMegabytes) {
      missed.push(`${name}: ${Math.round(megabytes)} MB, not ${limits.peakMegabytes}`);
    }
  }
  for (const { name, exponent } of growth.filter(({ name: series }) => series.startsWith('kpc'))) {
    const times = 2 ** exponent;
    if (times > limits.growth) missed.push(`${name}: twice the input takes ${times.toFixed(2)} times as long`);
  }
  for (const { name, wall } of fleet) {
    const limit = limitOf(limits.fleetSeconds, name);
    if (limit !== undefined && wall > limit) missed.push(`${name}: ${seconds(wall)}, not ${limit} s`);
  }
  return missed;
}

/**
 * Figures of one run in words, for the columns time, CPU and memory.
 *
 * @param {Run} run
 */
function figures({ wall, cpu, peak }) {
  return [
    `${seconds(wall)}`,
    cpu === undefined ? '' : seconds(cpu),
    peak === undefined ? '' : `${Math.round(peak)} MiB`,
  ];
}

/** @param {number} number */
function seconds(number) {
  return number < 1 ? `${Math.round(number * 1000)} ms` : `${number.toFixed(number < 10 ? 2 : 0)} s`;
}

/**
 * @param {string[]} header
 * @param {string[][]} rows
 */
function table(header, rows) {
  const align = header.map((_, i) => (i === 0 ? '---' : '--:'));
  return [header, align, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

async function main() {
  /** @type {string[]} */
  const parts = [];
  /** @param {string} part */
  const say = (part) => {
    parts.push(part);
    console.log(`${part}\n`);
  };
  const folder = await makeCase(plan.services);
  const { name: against } = reference(folder);
  say(`Measured on: ${describeMachine()}. Medians; time is wall time, CPU that of all threads.`);
  if (!oracle) say("KPC_ORACLE names no program that runs kube-proxy's code, so the comparison is with JSON.parse.");

  const compiled = await benchCompile();
  say(`${count(plan.services)} Services with ${endpoints} endpoints each, against ${against}, in turn:`);
  say(
    table(
      ['', 'time', 'CPU', 'peak memory', `time of ${against}`, 'ratio', 'ratio of CPU', 'ratio of memory'],
      compiled.map(({ name, own, other, ratio }) => [
        name,
        ...figures(own),
        seconds(other.wall),
        ...ratios(ratio),
        Number.isNaN(ratio.peak) ? '' : ratio.peak.toFixed(2),
      ]),
    ),
  );

  const started = await benchStart();
  say('Starting, against `node -e 0`, in turn:');
  say(
    table(
      ['', 'time', 'CPU', 'peak memory', 'time of node -e 0', 'ratio', 'ratio of CPU'],
      started.map(({ name, own, other, ratio }) => [name, ...figures(own), seconds(other.wall), ...ratios(ratio)]),
    ),
  );

  const growth = await benchGrowth();
  say(
    `CPU time and peak memory by number of Services, ${endpoints} endpoints each; time grows as Services to the power of e, ` +
      'so that twice the Services take 2^e times as long:',
  );
  say(
    table(
      ['', ...plan.sizes.map(count), 'e', '2^e'],
      growth.map(({ name, rows, exponent }) => [
        name,
        ...rows.map(cell),
        exponent.toFixed(2),
        (2 ** exponent).toFixed(2),
      ]),
    ),
  );

  say(`Other work on ${count(plan.services)} Services:`);
  say(
    table(
      ['', 'time', 'CPU', 'peak memory'],
      (await benchOthers()).map(({ name, ...own }) => [name, ...figures(own)]),
    ),
  );

  const compared = await benchDiff();
  say('Comparing two of its bundles, against compiling one, in turn:');
  say(
    table(
      ['', 'time', 'CPU', 'peak memory', 'time to compile', 'ratio', 'ratio of CPU'],
      compared.map(({ name, own, other, ratio }) => [name, ...figures(own), seconds(other.wall), ...ratios(ratio)]),
    ),
  );

  const applied = await benchApply();
  say(
    'kpc-apply where one endpoint of 1,000 Services with ten each has changed, against reading the node once (iptables-save, ' +
      'ip6tables-save, ipset save, ipvsadm -Sn), in turn:',
  );
  const measured = /** @type {MeasuredApply[]} */ (applied.filter(({ skipped }) => skipped === undefined));
  say(
    table(
      ['', 'time', 'CPU', 'time to read', 'CPU to read', 'ratio', 'ratio of CPU', 'of the tools and Node alone'],
      measured.map(({ name, own, other, ratio, floor }) => [
        name,
        ...[own.wall, own.cpu, other.wall, other.cpu].map(seconds),
        ...ratios(ratio),
        floor.cpu.toFixed(2),
      ]),
    ),
  );
  say(`Asked of each: at most ${limits.smallChange} times the CPU of reading once.`);
  for (const { name, skipped } of applied) if (skipped !== undefined) say(`Not measured: ${name}: ${skipped}`);

  const fleet = await benchFleet();
  say('A fleet in one process of two threads (--jobs 2):');
  say(
    table(
      ['', 'time', 'CPU', 'peak memory'],
      fleet.map(({ name, ...own }) => [name, ...figures(own)]),
    ),
  );
  if (oracle && !quick) {
    const missed = findMissed({ compiled, started, compared, growth, fleet, applied });
    // A script that runs this can go by its exit status.
    if (missed.length > 0) process.exitCode = 1;
    say(
      missed.length === 0
        ? 'All limits that kpc sets itself (scripts/bench.mjs) are kept.'
        : `Of the limits that kpc sets itself (scripts/bench.mjs), these are not kept:\n\n${missed.map((line) => `- ${line}`).join('\n')}`,
    );
  } else for (const line of findSlowApplies(applied)) say(`Not kept: ${line}`);
  if (!quick) await writeDocs(parts.join('\n\n'), growth);
}

/** @param {Times} ratio */
function ratios({ wall, cpu }) {
  return [wall.toFixed(2), Number.isNaN(cpu) ? '' : cpu.toFixed(2)];
}

/** @param {Run} run */
function cell({ wall, cpu, peak }) {
  return `${seconds(cpu ?? wall)}${peak === undefined ? '' : `, ${Math.round(peak)} MiB`}`;
}

const begin = '<!-- figures: written by npm run bench -->';
const end = '<!-- end of figures -->';

/**
 * Puts the figures between the marks of docs/performance.md, and draws the plots.
 *
 * @param {string} text
 * @param {Series[]} growth
 */
async function writeDocs(text, growth) {
  const docs = join(root, 'docs');
  mkdirSync(docs, { recursive: true });
  const page = readFileSync(join(docs, 'performance.md'), 'utf8');
  const [before, rest] = page.split(begin);
  const after = rest?.split(end)[1];
  if (after === undefined) throw new Error(`docs/performance.md lacks the lines ${begin} and ${end}`);
  /**
   * @param {(row: SizedRun) => number} value
   * @returns {{ name: string, points: [number, number][] }[]}
   */
  const lines = (value) =>
    growth.map(({ name, rows }) => ({ name, points: rows.map((row) => [row.services, value(row)]) }));
  const time = plotLines({
    title: 'CPU time to compile one node, 10 endpoints a Service',
    xTitle: 'Services',
    yTitle: 'seconds',
    series: lines(({ cpu, wall }) => cpu ?? wall),
  });
  writeFileSync(join(docs, 'performance-time.svg'), time);
  const hasMemory = growth.every(({ rows }) => rows.every(({ peak }) => peak !== undefined));
  if (hasMemory) {
    const memory = plotLines({
      title: 'Peak memory to compile one node, 10 endpoints a Service',
      xTitle: 'Services',
      yTitle: 'MiB',
      series: lines(({ peak }) => /** @type {number} */ (peak)),
    });
    writeFileSync(join(docs, 'performance-memory.svg'), memory);
  }
  const plots = [
    '![CPU time against Services, on logarithmic axes](performance-time.svg)',
    ...(hasMemory ? ['![Peak memory against Services, on logarithmic axes](performance-memory.svg)'] : []),
  ].join('\n\n');
  const path = join(docs, 'performance.md');
  const fresh = `${before}${begin}\n\n${text}\n\n${plots}\n\n${end}${after}`;
  writeFileSync(path, await format(fresh, { ...(await resolveConfig(path)), filepath: path }));
}

await main();
