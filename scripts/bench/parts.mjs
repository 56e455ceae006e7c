// Measures part by part. Each part returns its figures as text, and the figures that have a limit.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFleet } from '../make-fleet.mjs';
import { endpoints, env, modeNames, modes } from './cases.mjs';
import { benchCommands, changeOne } from './commands.mjs';
import { compare, fitExponent, measure, runOnce } from './measure.mjs';
import { plotLines } from './plot.mjs';
import { benchSmallChange } from './small-change.mjs';
import { cell, comparisons, count, figures, ratio, seconds, table } from './words.mjs';

/** @typedef {import('./cases.mjs').Cases} Cases */
/** @typedef {import('./measure.mjs').Figures} Figures */
/** @typedef {import('./words.mjs').Check} Check */
/** @typedef {import('./words.mjs').NamedComparison} NamedComparison */
/** @typedef {typeof full} Plan */
/** @typedef {{ text: string, checks: Check[], plots?: Map<string, string> }} Measured */

export const full = {
  runs: 3,
  // kube-proxy's code does not use the second processor equally each time, so its CPU time varies by a tenth.
  compared: 7,
  services: 10_000,
  sizes: [1000, 5000, 20_000, 50_000],
  clusters: [1000, 5000, 10_000, 20_000],
  large: 100_000,
  fleet: { services: 2000, nodes: 5000, localNodes: 2000 },
};

/** @type {Plan} */
export const quick = {
  runs: 2,
  compared: 2,
  services: 1000,
  sizes: [500, 1000, 2000],
  clusters: [500, 1000],
  large: 4000,
  fleet: { services: 200, nodes: 100, localNodes: 40 },
};

/**
 * Compiles one node's bundle from YAML or JSON.
 *
 * @param {Cases} cases
 * @param {Plan} plan
 * @returns {Promise<Measured>}
 */
async function benchCompile(cases, plan) {
  const folder = await cases.make(plan.services);
  /** @type {NamedComparison[]} */
  const rows = [];
  /** @type {Check[]} */
  const checks = [];
  for (const { what, file = 'cluster.yaml', mode, out, limits } of compilations) {
    const options = { file, mode, ...(out && { out }) };
    const result = compare(cases.compile(folder, options), cases.reference(folder, mode), plan.compared);
    const megabytes = statSync(join(folder, file)).size / 1e6;
    const name = `${what}, ${modeNames[mode]}`;
    rows.push({ name: `${name} (${megabytes.toFixed(1)} MB)`, ...result });
    if (cases.oracle) {
      for (const [figure, limit] of /** @type {[keyof typeof figureNames, number][]} */ (Object.entries(limits))) {
        checks.push({ what: `${name}: ${figureNames[figure]}`, value: result.ratio[figure], limit });
      }
    }
    checks.push(memoryCheck(name, result.own));
  }
  return {
    text: [
      `${count(plan.services)} Services with ${endpoints} endpoints each, against ${cases.against}, in turn:`,
      comparisons(cases.against, rows),
    ].join('\n\n'),
    checks,
  };
}

/**
 * Limits the memory of any run with 10,000 Services.
 *
 * @param {string} name
 * @param {Figures} run
 * @returns {Check}
 */
function memoryCheck(name, { peak = NaN }) {
  return { what: `${name}: peak memory`, value: peak * 1.048576, limit: 450, unit: ' MB' };
}

const figureNames = { wall: 'ratio of time', cpu: 'ratio of CPU', peak: 'ratio of memory' };

/** @type {{ what: string, file?: string, mode: typeof modes[number], out?: string[], limits: Partial<Record<keyof typeof figureNames, number>> }[]} */
const compilations = [
  { what: 'YAML to a bundle', mode: 'ipvs', limits: { wall: 0.25, cpu: 0.18, peak: 1 } },
  { what: 'JSON to a bundle', file: 'services.json', mode: 'ipvs', limits: { wall: 0.125 } },
  { what: 'YAML to a bundle', mode: 'iptables', limits: { cpu: 0.33, peak: 1 } },
  { what: 'JSON to a bundle', file: 'services.json', mode: 'iptables', limits: {} },
  { what: 'YAML to a bundle', mode: 'nftables', limits: { cpu: 0.18, peak: 1 } },
  { what: 'JSON to a bundle', file: 'services.json', mode: 'nftables', limits: {} },
  // This makes only what kube-proxy's code also makes. A bundle also has services.json and checksums.
  { what: 'YAML to nftables.nft alone', mode: 'nftables', out: ['--print', 'nftables'], limits: { cpu: 0.25 } },
];

/**
 * Compares starting kpc with starting Node.
 *
 * @param {Cases} cases
 * @param {Plan} plan
 * @returns {Promise<Measured>}
 */
async function benchStart(cases, plan) {
  const nothing = { argv: [process.execPath, '-e', '0'], env };
  const version = compare({ argv: [process.execPath, cases.kpc, '--version'], env }, nothing, plan.runs * 7);
  const small = compare(cases.compile(await cases.make(10)), nothing, plan.runs * 7);
  const rows = [
    { name: 'kpc --version', ...version },
    { name: 'kpc compile of 10 Services', ...small },
  ];
  return {
    text: ['Starting, against `node -e 0`, in turn:', comparisons('node -e 0', rows)].join('\n\n'),
    checks: [
      { what: 'kpc --version: ratio of time', value: version.ratio.wall, limit: 1.5 },
      { what: 'kpc compile of 10 Services: ratio of CPU', value: small.ratio.cpu, limit: 2 },
    ],
  };
}

/**
 * Returns figures for each size, also for kube-proxy's code, and the exponents of growth.
 *
 * @param {Cases} cases
 * @param {Plan} plan
 * @returns {Promise<Measured>}
 */
async function benchGrowth(cases, plan) {
  const empty = measure(cases.compile(await cases.make(1)), 3);
  /** @type {{ name: string, command: (folder: string) => import('./measure.mjs').Command, start: number }[]} */
  const programs = [
    ...[
      { name: 'kpc, YAML, IPVS', mode: 'ipvs' },
      { name: 'kpc, JSON, IPVS', mode: 'ipvs', file: 'services.json' },
      { name: 'kpc, YAML, iptables', mode: 'iptables' },
      { name: 'kpc, YAML, nftables', mode: 'nftables' },
    ].map(({ name, ...options }) => ({
      name,
      command: (/** @type {string} */ folder) => cases.compile(folder, options),
      // Subtract the start, which takes the same time for all sizes and would make growth look smaller than it is.
      start: empty.cpu ?? empty.wall,
    })),
    ...(cases.oracle
      ? [
          {
            name: "kube-proxy's code, IPVS",
            command: (/** @type {string} */ folder) => cases.reference(folder, 'ipvs'),
            start: 0,
          },
        ]
      : []),
  ];
  /** @type {{ name: string, rows: (Figures & { services: number })[], times: number }[]} */
  const series = [];
  for (const { name, command, start } of programs) {
    /** @type {(Figures & { services: number })[]} */
    const rows = [];
    for (const services of plan.sizes) rows.push({ services, ...runOnce(command(await cases.make(services))) });
    series.push({
      name,
      rows,
      times: 2 ** fitExponent(rows.map((row) => [row.services, (row.cpu ?? row.wall) - start])),
    });
  }
  /**
   * @param {string} title
   * @param {string} yTitle
   * @param {(row: Figures) => number} value
   */
  const plot = (title, yTitle, value) =>
    plotLines({
      title: `${title} to compile one node, ${endpoints} endpoints a Service`,
      xTitle: 'Services',
      yTitle,
      series: series.map(({ name, rows }) => ({ name, points: rows.map((row) => [row.services, value(row)]) })),
    });
  return {
    text: [
      `CPU time and peak memory by number of Services, ${endpoints} endpoints each. The last column is what the fitted curve ` +
        'says of twice the Services:',
      table(
        ['', ...plan.sizes.map(count), 'doubling'],
        series.map(({ name, rows, times }) => [name, ...rows.map(cell), times.toFixed(2)]),
      ),
      '![CPU time against Services, on logarithmic axes](performance-time.svg)',
      '![Peak memory against Services, on logarithmic axes](performance-memory.svg)',
    ].join('\n\n'),
    checks: series
      .filter(({ name }) => name.startsWith('kpc'))
      .map(({ name, times }) => ({ what: `${name}: CPU of twice the Services`, value: times, limit: 2 })),
    plots: new Map([
      ['performance-time.svg', plot('CPU time', 'seconds', ({ cpu, wall }) => cpu ?? wall)],
      ['performance-memory.svg', plot('Peak memory', 'MiB', ({ peak = 0 }) => peak)],
    ]),
  };
}

/**
 * Compiles the largest cluster in each mode. Compares it with half of the cluster, and the memory with that of kube-proxy's
 * code.
 *
 * @param {Cases} cases
 * @param {Plan} plan
 * @returns {Promise<Measured>}
 */
async function benchLarge(cases, plan) {
  const [half, whole] = [await cases.make(plan.large / 2), await cases.make(plan.large)];
  /** @type {Check[]} */
  const checks = [];
  const rows = modes.map((mode) => {
    const [other, own] = [runOnce(cases.compile(half, { mode })), runOnce(cases.compile(whole, { mode }))];
    const doubling = (own.cpu ?? NaN) / (other.cpu ?? NaN);
    const theirs = cases.oracle ? runOnce(cases.reference(whole, mode)) : undefined;
    const memory = (own.peak ?? NaN) / (theirs?.peak ?? NaN);
    const name = `${count(plan.large)} Services, ${modeNames[mode]}`;
    checks.push({ what: `${name}: CPU against half of them`, value: doubling, limit: 2 });
    if (theirs) checks.push({ what: `${name}: ratio of memory`, value: memory, limit: 1 });
    const against = theirs
      ? [cell(theirs), ratio((own.cpu ?? NaN) / (theirs.cpu ?? NaN)), ratio(memory)]
      : ['', '', ''];
    return [modeNames[mode], cell(other), cell(own), ratio(doubling), ...against];
  });
  return {
    text: [
      'CPU time and peak memory of the largest cluster in YAML, one run each:',
      table(
        ['', count(plan.large / 2), count(plan.large), 'ratio', `${cases.against}`, 'ratio of CPU', 'ratio of memory'],
        rows,
      ),
    ].join('\n\n'),
    checks,
  };
}

/**
 * Compares other work on a compiled cluster with compiling it, such as a diff of two bundles with one changed endpoint.
 *
 * @param {Cases} cases
 * @param {Plan} plan
 * @returns {Promise<Measured>}
 */
async function benchDiff(cases, plan) {
  const folder = await cases.make(plan.services);
  const [before, after] = [join(cases.scratch, 'before'), join(cases.scratch, 'after')];
  changeOne(folder);
  runOnce(cases.compile(folder, { out: ['-o', before] }));
  runOnce(cases.compile(folder, { file: 'changed.yaml', out: ['-o', after] }));
  const compiling = cases.compile(folder);
  const rows = [
    {
      name: 'compile, ipvsadm.restore alone to stdout',
      command: cases.compile(folder, { out: ['--print', 'ipvsadm'] }),
    },
    { name: 'compile --check, nothing changed', command: cases.compile(folder, { out: ['--check', before] }) },
    {
      name: 'diff of two bundles, one endpoint changed',
      command: { argv: [process.execPath, cases.kpc, 'diff', before, after], ok: [1], env },
    },
  ].map(({ name, command }) => ({ name, ...compare(command, compiling, plan.compared) }));
  const [diff] = /** @type {[NamedComparison]} */ (rows.slice(-1));
  return {
    text: [
      `Other work on ${count(plan.services)} Services in IPVS mode, against compiling a bundle of them, in turn:`,
      comparisons('compiling', rows),
    ].join('\n\n'),
    checks: [
      { what: 'diff of two bundles: ratio of CPU', value: diff.ratio.cpu, limit: 2 },
      ...rows.map(({ name, own }) => memoryCheck(name, own)),
    ],
  };
}

/**
 * Applies a change of one endpoint among 1,000 Services with ten each, on a node that already has the rest.
 *
 * @param {Cases} cases
 * @param {Plan} plan
 * @returns {Promise<Measured>}
 */
async function benchApply(cases, plan) {
  const folder = await cases.make(1000);
  changeOne(folder);
  /** @param {'iptables' | 'ipvs'} mode */
  const bundlesOf = (mode) => {
    const paths = { before: join(cases.scratch, `node-${mode}`), after: join(cases.scratch, `node-${mode}-changed`) };
    runOnce(cases.compile(folder, { mode, out: ['-o', paths.before] }));
    runOnce(cases.compile(folder, { mode, file: 'changed.yaml', out: ['-o', paths.after] }));
    return paths;
  };
  const bundles = { iptables: bundlesOf('iptables'), ipvs: bundlesOf('ipvs') };
  const applied = benchSmallChange({ bundles, program: cases.kpcApply, runs: plan.runs });
  /** @type {string[][]} */
  const rows = [];
  /** @type {Check[]} */
  const checks = [];
  /** @type {string[]} */
  const skipped = [];
  for (const place of applied) {
    if (place.skipped !== undefined) skipped.push(`Not measured: ${place.name}: ${place.skipped}`);
    else {
      const { name, own, other, ratio: over, floor } = place;
      const times = [own.wall, own.cpu, other.wall, other.cpu].map(seconds);
      rows.push([name, ...times, ...[over.wall, over.cpu, floor.cpu].map(ratio)]);
      checks.push({ what: `small change, ${name}: ratio of CPU`, value: over.cpu, limit: 3 });
    }
  }
  return {
    text: [
      'kpc-apply where one endpoint of 1,000 Services with ten each has changed, against reading the node once (iptables-save, ' +
        'ip6tables-save, ipset save, ipvsadm -Sn), in turn:',
      table(
        ['', 'time', 'CPU', 'time to read', 'CPU to read', 'ratio', 'ratio of CPU', 'of the tools and Node alone'],
        rows,
      ),
      ...skipped,
    ].join('\n\n'),
    checks,
  };
}

/**
 * Compiles a fleet in one process with two threads.
 *
 * @param {Cases} cases
 * @param {Plan} plan
 * @returns {Promise<Measured>}
 */
async function benchFleet(cases, plan) {
  const { services, nodes, localNodes } = plan.fleet;
  const folder = join(cases.scratch, 'fleet');
  await writeFleet(folder, { services, endpoints, nodes, localNodes });
  const out = join(cases.scratch, 'fleet-out');
  const command = {
    argv: [process.execPath, cases.kpc, 'compile', '-f', folder, '--all-nodes', '--jobs', '2', '-o', out],
    env,
  };
  // Run without a warm-up, because a second run would find all work done.
  const [first, second] = [runOnce(command), runOnce(command)];
  const input = join(folder, 'services.yaml');
  writeFileSync(input, readFileSync(input, 'utf8').replace('- 10.0.0.2\n', '- 10.200.0.2\n'));
  const third = runOnce(command);
  const whole = `${count(nodes)} nodes × ${count(services)} Services × ${endpoints} endpoints`;
  const rows = [
    { name: `${whole}, from nothing`, limit: 70, run: first },
    { name: 'the same again, nothing changed', limit: 25, run: second },
    { name: 'the same again, one endpoint changed', limit: 50, run: third },
  ];
  return {
    text: [
      'A fleet in one process of two threads (`--jobs 2`):',
      table(
        ['', 'time', 'CPU', 'peak memory'],
        rows.map(({ name, run }) => [name, ...figures(run)]),
      ),
    ].join('\n\n'),
    checks: rows.map(({ name, limit, run }) => ({ what: `fleet: ${name}`, value: run.wall, limit, unit: ' s' })),
  };
}

/** @type {Record<string, (cases: Cases, plan: Plan) => Promise<Measured>>} */
export const parts = {
  compile: benchCompile,
  start: benchStart,
  diff: benchDiff,
  commands: benchCommands,
  growth: benchGrowth,
  large: benchLarge,
  fleet: benchFleet,
  apply: benchApply,
};
