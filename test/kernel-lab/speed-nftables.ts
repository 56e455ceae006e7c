// Measures applies of 10,000 Services with 10 endpoints each in nftables mode: the first, one that changes one Service, and one that
// changes nothing. Compares them with the first sync of the real kube-proxy, in the same kernel with the same manifests, if KPC_ORACLE
// names a program that runs its code.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { assert, stateDir, startSuite } from './harness.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js', KPC_ORACLE: oracle } = process.env;
const suite = startSuite('speed-nftables');
const [bundle, changed] = [`${bundles}/large-nftables`, `${bundles}/large-nftables-changed`];

/** Seconds of CPU time of a process and of all its children, and elapsed seconds. */
interface Cost {
  readonly cpu: number;
  readonly seconds: number;
}

/** Runs a command as a separate process, which must succeed. Returns its cost up to each line that it prints. */
async function measure(command: string, args: readonly string[]): Promise<ReadonlyMap<string, Cost>> {
  const started = performance.now();
  const before = readTicks('self').ofChildren;
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = new Map<string, Cost>();
  const passed = () => (performance.now() - started) / 1000;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { own, ofChildren } = readTicks(`${child.pid}`);
    lines.set(line, { cpu: (own + ofChildren) / ticksPerSecond, seconds: passed() });
  });
  const [status] = (await once(child, 'close')) as [number | null];
  assert(status === 0, `${command} ${args.join(' ')}: ${status}`);
  return lines.set('', { cpu: (readTicks('self').ofChildren - before) / ticksPerSecond, seconds: passed() });
}

const ticksPerSecond = 100;

/** Returns the CPU time of a process and of its ended children; undefined if the process has ended. */
function readTicks(pid: string): { readonly own: number; readonly ofChildren: number } {
  const path = `/proc/${pid}/stat`;
  const fields = existsSync(path)
    ? readFileSync(path, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ')
    : [];
  const [user = 0, system = 0, userOfChildren = 0, systemOfChildren = 0] = fields.slice(11, 15).map(Number);
  return { own: user + system, ofChildren: userOfChildren + systemOfChildren };
}

async function kpcApply(...args: readonly string[]): Promise<Cost> {
  const costs = await measure(process.execPath, [program, ...args, '--state-dir', stateDir]);
  return costs.get('') ?? { cpu: 0, seconds: 0 };
}

const show = ({ cpu, seconds }: Cost) => `${cpu.toFixed(2)} s of CPU time in ${seconds.toFixed(1)} s`;
let [first, small, idle]: readonly (Cost | undefined)[] = [];

await suite.check('kpc-apply, from empty', async () => {
  first = await kpcApply('apply', bundle);
  console.log(`from empty: ${show(first)}`);
});
await suite.check('kpc-apply, one Service changed: 3 times as cheap as the first apply', async () => {
  const costs: Cost[] = [];
  for (const each of [changed, bundle, changed]) costs.push(await kpcApply('apply', each));
  small = costs.toSorted((a, b) => a.cpu - b.cpu)[1];
  assert(small !== undefined && first !== undefined, 'nothing was measured');
  console.log(`one Service changed: ${show(small)}`);
  assert(first.cpu / small.cpu >= 3, `only ${(first.cpu / small.cpu).toFixed(1)} times`);
});
await suite.check('kpc-apply, nothing to change', async () => {
  idle = await kpcApply('apply', changed);
  console.log(`nothing to change: ${show(idle)}`);
});
await suite.check('verify finds what is there', async () => void (await kpcApply('verify', changed)));

if (oracle === undefined) {
  console.log('kube-proxy was not measured: KPC_ORACLE names no program that runs its code');
} else {
  await suite.check(
    'a quarter more CPU time than kube-proxy from empty at most, and half of it for one Service',
    async () => {
      await kpcApply('cleanup');
      const costs = [...(await measure(oracle, ['-case', `${bundles}/large-case`, '-as', 'nftables', '-real']))];
      const at = (what: string) => costs.findIndex(([line]) => line.includes(what));
      const step = (what: string) => (costs[at(what)]?.[1].cpu ?? 0) - (costs[at(what) - 1]?.[1].cpu ?? 0);
      // The child behind the last line has ended by then, but its CPU time may not yet be counted.
      const again = (costs.at(-1)?.[1].cpu ?? 0) - (costs[at('first full sync')]?.[1].cpu ?? 0);
      const sync = step('first full sync');
      console.log(
        `kube-proxy: ${sync.toFixed(1)} s of CPU time for its first sync, ${again.toFixed(1)} s for the next`,
      );
      assert(first !== undefined && small !== undefined, 'nothing was measured');
      const ratios = [sync / first.cpu, again / small.cpu] as const;
      console.log(`ratios: ${ratios[0].toFixed(2)} from empty, ${ratios[1].toFixed(1)} for one Service`);
      assert(ratios[0] >= 0.8, `much more than kube-proxy from empty: ${ratios[0].toFixed(2)}`);
      // The oracle's second sync changes nothing. A sync that changes a Service takes longer.
      assert(ratios[1] >= 2, `only ${ratios[1].toFixed(1)} times less for one Service`);
    },
  );
}
suite.finish();
