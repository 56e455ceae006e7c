// What an apply of 10,000 Services with 10 endpoints costs in nftables mode: the first, one that changes one Service, and
// one that changes nothing. Beside them the first sync of the real kube-proxy, in the same kernel and of the same manifests, where
// KPC_ORACLE names a program that runs its code.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { assert, stateDir, startSuite } from './harness.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js', KPC_ORACLE: oracle } = process.env;
const suite = startSuite('speed-nftables');
const [bundle, changed] = [`${bundles}/large-nftables`, `${bundles}/large-nftables-changed`];

interface Cost {
  /** Seconds of CPU time, of the process and all that it started. */
  readonly cpu: number;
  readonly seconds: number;
  readonly output: string;
}

/** What a command costs, as a process of its own; it must end well. */
function measure(command: string, args: readonly string[]): Cost {
  const started = performance.now();
  const before = childTicks();
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  assert(status === 0, `${command} ${args.join(' ')}: ${status} ${stderr}`);
  const seconds = (performance.now() - started) / 1000;
  return { cpu: (childTicks() - before) / ticksPerSecond, seconds, output: stdout };
}

const ticksPerSecond = 100;

/** CPU time of all children that have ended, and of theirs: fields 16 and 17 of stat. */
function childTicks(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return Number(fields[13]) + Number(fields[14]);
}

const kpcApply = (...args: readonly string[]) => measure(process.execPath, [program, ...args, '--state-dir', stateDir]);
const show = ({ cpu, seconds }: Cost) => `${cpu.toFixed(2)} s of CPU time in ${seconds.toFixed(1)} s`;
let [first, small, idle]: readonly (Cost | undefined)[] = [];

await suite.check('kpc-apply, from empty', () => {
  first = kpcApply('apply', bundle);
  console.log(`from empty: ${show(first)}`);
});
await suite.check('kpc-apply, one Service changed: 20 times as cheap as the first apply', () => {
  const costs = [changed, bundle, changed].map((each) => kpcApply('apply', each));
  small = costs.toSorted((a, b) => a.cpu - b.cpu)[1];
  assert(small !== undefined && first !== undefined, 'nothing was measured');
  console.log(`one Service changed: ${show(small)}`);
  assert(first.cpu / small.cpu >= 20, `only ${(first.cpu / small.cpu).toFixed(1)} times`);
});
await suite.check('kpc-apply, nothing to change', () => {
  idle = kpcApply('apply', changed);
  console.log(`nothing to change: ${show(idle)}`);
});
await suite.check('verify finds what is there', () => void kpcApply('verify', changed));

if (oracle === undefined) {
  console.log('kube-proxy was not measured: KPC_ORACLE names no program that runs its code');
} else {
  await suite.check('no slower than kube-proxy from empty, and 20 times as fast for one Service', () => {
    kpcApply('cleanup');
    const cost = measure(oracle, ['-case', `${bundles}/large-case`, '-as', 'nftables', '-real']);
    console.log(`kube-proxy: ${show(cost)}\n${cost.output.trim()}`);
    const sync = Number(/first full sync ([\d.]+) s/.exec(cost.output)?.[1]);
    const again = Number(/nothing changed ([\d.]+) s/.exec(cost.output)?.[1]);
    assert(first !== undefined && small !== undefined, 'nothing was measured');
    const ratios = [sync / first.seconds, again / small.seconds] as const;
    console.log(`ratios: ${ratios[0].toFixed(2)} from empty, ${ratios[1].toFixed(1)} for one Service`);
    assert(ratios[0] >= 1, `slower from empty: ${ratios[0].toFixed(2)}`);
    assert(ratios[1] >= 20, `only ${ratios[1].toFixed(1)} times as fast for one Service`);
  });
}
suite.finish();
