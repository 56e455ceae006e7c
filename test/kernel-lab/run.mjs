// Runs the kernel tests: builds them, boots a kernel for each suite (two at a time for each core), adds up.
//
//   node test/kernel-lab/run.mjs [SUITE...]      faults: those of all modes
//
// KPC_LAB_UNTIL, in seconds since 1970, is when no more checks begin: lines "not run: …" name those that are left.
// @ts-check
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { checksModule } from '../../scripts/checks-module.mjs';
import { codesModule } from '../../scripts/codes-module.mjs';
import { writeFleet } from '../../scripts/make-fleet.mjs';

const lab = dirname(fileURLToPath(import.meta.url));
const root = join(lab, '../..');
/** @type {{ main: typeof import('../../src/cli/kpc/main.ts').main }} */
const kpc = createRequire(import.meta.url)('../../dist/kpc.js');

/**
 * Name → entry and its arguments. The longest suites come first, so that all cores finish at about the same time.
 *
 * @type {Record<string, [string, ...string[]]>}
 */
const suites = {
  'mode-change-qemu': ['mode-change.ts', 'nftables'],
  'mode-change': ['mode-change.ts', 'iptables'],
  // This one runs on a slow emulated processor. packet-truth-nftables sends every packet of the other two modes, and packet-truth those
  // that this suite leaves out of IPVS mode, but for some with odd numbers.
  'packet-truth-qemu': ['packet-truth.ts', 'every=10+5', 'ipvs', 'iptables', 'nftables'],
  'faults-ipvs': ['faults.ts', 'ipvs'],
  nftables: ['nftables.ts'],
  neighbours: ['neighbours.ts', 'legacy'],
  hitless: ['hitless.ts', 'ipvs'],
  'equality-ipvs': ['equality.ts', 'ipvs'],
  watch: ['watch.ts'],
  confirm: ['confirm.ts', 'iptables'],
  'packet-truth': ['packet-truth.ts', 'every=2', 'ipvs'],
  readme: ['readme.ts'],
  'packet-truth-nftables': ['packet-truth.ts', 'nftables', 'iptables'],
  'packet-truth-others': ['packet-truth.ts', 'others=1', 'nftables', 'iptables'],
  packets: ['packets.ts', 'ipvs', 'iptables'],
  'faults-nftables': ['faults.ts', 'nftables'],
  'packet-steps': ['packet-steps.ts'],
  'confirm-ipvs': ['confirm.ts', 'ipvs'],
  'equality-iptables': ['equality.ts', 'iptables'],
  'faults-iptables': ['faults.ts', 'iptables'],
  nft: ['nft.ts'],
  'neighbours-nft': ['neighbours.ts', 'nft'],
  'nftables-packets': ['packets.ts', 'nftables'],
  'hitless-iptables': ['hitless.ts', 'iptables'],
  'nftables-traffic': ['nftables-traffic.ts'],
  'nftables-others': ['nftables-others.ts'],
  'localhost-node-ports': ['localhost-node-ports.ts'],
  'userspace-packets': ['userspace-packets.ts'],
  'wide-host': ['wide-host.ts'],
};

/** Suites for this machine's own kernel. */
const inOwnKernel = new Set([
  'nft',
  'neighbours-nft',
  'nftables',
  'faults-nftables',
  'nftables-packets',
  'packet-truth-nftables',
  'packet-truth-others',
  'packet-steps',
  'nftables-traffic',
  'speed-nftables',
  'nftables-others',
  'localhost-node-ports',
  'userspace-packets',
]);

/** Suites that use this machine's own kernel if it has the legacy tables, because it is many times faster than User Mode Linux. */
const inLegacyTables = new Set(['equality-iptables', 'faults-iptables', 'hitless-iptables', 'confirm']);

/** Suites for a kernel that has IPVS and nftables. */
const inQemu = new Set(['mode-change-qemu', 'packet-truth-qemu']);

/**
 * Suites that apply the fixtures, and the mode that they take.
 *
 * @type {Record<string, string>}
 */
const modeOfFixtures = {
  'equality-ipvs': 'ipvs',
  'equality-iptables': 'iptables',
  nft: 'iptables',
  nftables: 'nftables',
  'localhost-node-ports': 'nftables',
};

/** The exit status of in-qemu.sh if there is no such kernel. */
const cannotBeHad = 77;

/** Suites of the lab itself, which boot kernels of their own. */
const besideKernels = new Set(['wide-host']);

/** The suites of faults, one for each mode. Together they write the page of faults. */
const faults = ['faults-ipvs', 'faults-iptables', 'faults-nftables'];

/** These suites take many minutes if they also measure kube-proxy, so they run only on request. */
const slow = /** @type {typeof suites} */ ({ speed: ['speed.ts'], 'speed-nftables': ['speed-nftables.ts'] });

const asked = process.argv.slice(2).flatMap((name) => (name === 'faults' ? faults : [name]));
const unknown = asked.filter((name) => !(name in suites) && !(name in slow));
if (unknown.length > 0) {
  const names = [...Object.keys(suites), 'faults', ...Object.keys(slow)];
  console.error(`there is no suite ${unknown.join(', ')}: there are ${names.join(', ')}`);
  process.exit(2);
}
const chosen =
  asked.length === 0
    ? Object.entries(suites)
    : Object.entries({ ...suites, ...slow }).filter(([name]) => asked.includes(name));
const totalLine = /^(\d+) passed, (\d+) failed$/m;
const work = mkdtempSync(join(tmpdir(), 'kpc-kernel-'));
let passed = 0;
let failed = 0;
/** What each suite took, its boot with it. @type {[name: string, seconds: number][]} */
const seconds = [];

try {
  await build({
    entryPoints: [...new Set(chosen.map(([, [entry]]) => join(lab, entry)))],
    outdir: work,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    plugins: [checksModule, codesModule],
    banner: {
      js: "import { createRequire as labRequire } from 'node:module';\nconst require = labRequire(import.meta.url);",
    },
    logLevel: 'warning',
  });
  await compileBundles();
  for (const mode of new Set(chosen.flatMap(([name]) => modeOfFixtures[name] ?? []))) await compileFixtures(mode);
  if (chosen.some(([name]) => name === 'nftables')) await compileManyServices();
  if (asked.includes('speed')) await compileBigBundle();
  if (asked.includes('speed-nftables')) await compileLargeBundles();
  // Start one kernel first, so that the packages are installed only once.
  await inKernel(0, ['true']);
  const queue = [...chosen];
  const until = Number(process.env['KPC_LAB_UNTIL'] ?? Number.POSITIVE_INFINITY) * 1000;
  /** @param {number} slot */
  const runQueue = async (slot) => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      if (Date.now() > until) console.log(`not run: ${next[0]}: the time was up`);
      else await runSuite(slot, ...next);
    }
  };
  // Run two suites for each core, because a suite waits for timers during half of its time.
  await Promise.all(Array.from({ length: availableParallelism() * 2 }, (_, slot) => runQueue(slot)));
  const page = process.env['KPC_FAULTS_OUT'];
  if (page !== undefined && failed === 0) writeFileSync(page, joinFaults());
} finally {
  rmSync(work, { recursive: true, force: true });
}
for (const [name, took] of seconds.toSorted(([, a], [, b]) => b - a)) console.log(`suite ${name}: ${took} s`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

/** Returns the page with the results of the suites of faults. */
function joinFaults() {
  const about = 'Written by `npm run faults`: each of these faults was caused in a kernel, in the middle of an apply.';
  const parts = faults.map((name) => readFileSync(join(work, `${name}.md`), 'utf8'));
  return ['# Faults\n', `${about}\n`, ...parts].join('\n');
}

/** Compiles the Services of packets/ in all modes, as before-ipvs, after-iptables and so on. */
async function compileBundles() {
  for (const mode of ['ipvs', 'iptables', 'nftables', 'userspace']) {
    const release = mode === 'userspace' ? ['--kubernetes-version', '1.25'] : [];
    for (const stage of ['before', 'after']) {
      const sources = [join(lab, 'packets', stage), join(lab, 'packets/node.yaml')];
      const options = [
        '--config',
        join(lab, 'packets/config.yaml'),
        '--proxy-mode',
        mode,
        '--node',
        'node1',
        ...release,
      ];
      await compile(sources, options, `${stage}-${mode}`);
    }
    const whole = ['before', 'more', 'node.yaml'].map((name) => join(lab, 'packets', name));
    await compile(
      whole,
      ['--config', join(lab, 'packets/config.yaml'), '--proxy-mode', mode, '--node', 'node1', ...release],
      `whole-${mode}`,
    );
  }
}

/**
 * The whole bundles of the fixtures of a mode, as fixtures/NAME/expected-MODE: fixtures/ of the project keeps only some files.
 *
 * @param {string} mode
 */
async function compileFixtures(mode) {
  const fixtures = join(root, 'fixtures');
  for (const name of readdirSync(fixtures)) {
    const [folder, bundle] = [join(fixtures, name), join(name, `expected-${mode}`)];
    if (!existsSync(join(fixtures, bundle))) continue;
    const [, ...words] = readFileSync(join(folder, 'command'), 'utf8').trim().split(/\s+/);
    await runKpc([...words, '--proxy-mode', mode, '-o', join(work, 'fixtures', bundle)], folder);
  }
}

/** Compiles more chains than kpc puts into one nftables transaction. */
async function compileManyServices() {
  const folder = join(work, 'many-case');
  await writeFleet(folder, { services: 2500, endpoints: 2 });
  await compile([folder], ['--ip-family', 'ipv4', '--proxy-mode', 'nftables'], 'many-nftables');
}

/** Compiles 10,000 Services with 10 endpoints each, and the same with one endpoint at another address. */
async function compileLargeBundles() {
  const folder = join(work, 'large-case');
  mkdirSync(folder);
  const options = ['--ip-family', 'ipv4', '--proxy-mode', 'nftables'];
  const oracle = process.env['KPC_ORACLE'];
  if (oracle) execFileSync(oracle, ['-gen', folder, '-services', '10000', '-endpoints', '10']);
  else await writeFleet(folder, { services: 10_000, endpoints: 10 });
  const [manifests, ...others] = oracle ? ['cluster.yaml', 'node.yaml'] : ['services.yaml', 'nodes.yaml'];
  const config = ['--config', join(folder, 'config.yaml'), '--host-addresses', join(folder, 'ip-addr.json')];
  const text = readFileSync(join(folder, manifests), 'utf8');
  // The last address in the file is an endpoint's.
  const [, address = ''] = [...text.matchAll(/^ +- (10\.\d+\.\d+\.\d+)$/gm)].at(-1) ?? [];
  const at = text.lastIndexOf(address);
  const other = `${text.slice(0, at)}10.250.0.1${text.slice(at + address.length)}`;
  writeFileSync(join(work, 'large-changed.yaml'), other);
  for (const [source, name] of [
    [join(folder, manifests), 'large-nftables'],
    [join(work, 'large-changed.yaml'), 'large-nftables-changed'],
  ]) {
    const sources = [source ?? '', ...others.map((file) => join(folder, file))];
    await compile(sources, [...options, ...(oracle ? config : [])], name ?? '');
  }
}

/** Compiles 2,000 Services with 10 endpoints each. Uses the oracle's Services if there is an oracle, because it also reads them. */
async function compileBigBundle() {
  const folder = join(work, 'big-case');
  const options = ['--ip-family', 'ipv4', '--proxy-mode', 'ipvs'];
  const oracle = process.env['KPC_ORACLE'];
  if (oracle) {
    mkdirSync(folder);
    execFileSync(oracle, ['-gen', folder, '-services', '2000', '-endpoints', '10']);
    const sources = ['cluster.yaml', 'node.yaml'].map((file) => join(folder, file));
    const config = ['--config', join(folder, 'config.yaml'), '--host-addresses', join(folder, 'ip-addr.json')];
    await compile(sources, [...options, ...config], 'big');
  } else {
    await writeFleet(folder, { services: 2000, endpoints: 10 });
    await compile([folder], options, 'big');
  }
}

/**
 * @param {readonly string[]} sources
 * @param {readonly string[]} options
 * @param {string} name
 */
async function compile(sources, options, name) {
  const files = sources.flatMap((source) => ['-f', source]);
  await runKpc(['compile', ...files, ...options, '-o', join(work, name)], root);
}

/**
 * Runs the built kpc within this process: a process for each of these bundles takes ten times as long.
 *
 * @param {readonly string[]} args
 * @param {string} cwd
 */
async function runKpc(args, cwd) {
  let said = '';
  /** @type {import('../../src/cli/shared/terminal.ts').Terminal} */
  const terminal = {
    out: async () => {},
    err: async (text) => void (said += text),
    status: async () => {},
    readStdin: async () => '',
    colour: { out: false, err: false },
    interactive: false,
  };
  process.chdir(cwd);
  const status = await kpc.main(args, terminal);
  process.chdir(root);
  if (status !== 0) throw new Error(`kpc ${args.join(' ')}: status ${status}\n${said}`);
}

/**
 * @param {number} slot
 * @param {string} name
 * @param {[string, ...string[]]} entry and its arguments
 */
async function runSuite(slot, name, [entry, ...args]) {
  const from = Date.now();
  const command = [process.execPath, join(work, entry.replace(/\.ts$/, '.mjs')), ...args];
  const { status, output } = await runIn(slot, name, command);
  if (inQemu.has(name) && status === cannotBeHad) {
    console.log(`${name}: skipped, for no kernel with IPVS and nftables can be had here`);
    return;
  }
  const total = totalLine.exec(output);
  passed += Number(total?.[1] ?? 0);
  failed += Number(total?.[2] ?? 0);
  const skipped = total?.[0].startsWith('0 passed, 0') && output.includes(': skipped, ');
  if (!total || (status !== 0 && total[2] === '0' && !skipped)) {
    failed++;
    console.log(`FAIL  ${name}: ended with status ${status}`);
  }
  seconds.push([name, Math.round((Date.now() - from) / 1000)]);
}

/**
 * @param {number} slot
 * @param {string} name
 * @param {readonly string[]} command
 */
function runIn(slot, name, command) {
  if (besideKernels.has(name)) return runLines(slot, command);
  if (inQemu.has(name)) return runLines(slot, [join(lab, 'in-qemu.sh'), ...command]);
  if (inLegacyTables.has(name)) return inKernel(slot, ['--legacy', ...command]);
  return inKernel(slot, inOwnKernel.has(name) ? ['--own', ...command] : command);
}

/**
 * @param {number} slot
 * @param {readonly string[]} command
 */
function inKernel(slot, command) {
  return runLines(slot, [join(lab, 'in-kernel.sh'), ...command]);
}

/**
 * Runs a command, and prints its lines as they come.
 *
 * @param {number} slot which of those that run at once
 * @param {readonly string[]} command
 * @returns {Promise<{ readonly status: number | null; readonly output: string }>}
 */
function runLines(slot, [program = '', ...args]) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, KPC_LAB: lab, KPC_BUNDLES: work, KPC_LAB_SLOT: `${slot}` },
    });
    let output = '';
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`;
      // Do not print totals, which are added up, nor the kernel's own messages.
      if (!totalLine.test(line) && !line.startsWith('IPVS: ')) console.log(line);
    });
    child.on('close', (status) => resolve({ status, output }));
  });
}
