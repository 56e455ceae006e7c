// Measures a first apply of 2,000 Services with 10 endpoints each, and one that changes nothing. Compares them with the real kube-proxy, in
// the same kernel with the same manifests, if KPC_ORACLE names a program that runs its code.
import { spawnSync } from 'node:child_process';
import { assert, stateDir, startSuite } from './harness.ts';

const { KPC_BUNDLES: bundles = '', KPC_APPLY: program = 'dist/kpc-apply.js', KPC_ORACLE: oracle } = process.env;
const suite = startSuite('speed');
const bundle = `${bundles}/big`;

/** Runs a command as a separate process, which must succeed. Returns the seconds that it takes. */
function time(command: string, args: readonly string[]): { readonly seconds: number; readonly output: string } {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  assert(status === 0, `${command} ${args.join(' ')}: ${status} ${stderr}`);
  return { seconds: (performance.now() - started) / 1000, output: stdout };
}

const kpcApply = (...args: readonly string[]) => time(process.execPath, [program, ...args, '--state-dir', stateDir]);
const show = (seconds: number) => `${seconds.toFixed(1)} s`;
const measured = { first: 0, again: 0 };

await suite.check('kpc-apply, from empty', () => {
  measured.first = kpcApply('apply', bundle).seconds;
});
await suite.check('kpc-apply, nothing to change', () => {
  measured.again = Math.min(kpcApply('apply', bundle).seconds, kpcApply('apply', bundle).seconds);
});
console.log(`kpc-apply: ${show(measured.first)} from empty, ${show(measured.again)} with nothing to change`);

if (oracle === undefined) {
  console.log('kube-proxy was not measured: KPC_ORACLE names no program that runs its code');
} else {
  await suite.check('at least 8 times as fast as kube-proxy, and faster where nothing changes', () => {
    kpcApply('cleanup');
    const { output } = time(oracle, ['-case', `${bundles}/big-case`, '-real']);
    const first = Number(/first full sync ([\d.]+) s/.exec(output)?.[1]);
    const again = Number(/nothing changed ([\d.]+) s/.exec(output)?.[1]);
    console.log(`kube-proxy: ${show(first)} for its first sync, ${show(again)} for one that changes nothing`);
    const ratios = [first / measured.first, again / measured.again] as const;
    console.log(`ratios: ${ratios[0].toFixed(1)} from empty, ${ratios[1].toFixed(1)} with nothing to change`);
    assert(ratios[0] >= 8, `only ${ratios[0].toFixed(1)} times as fast from empty`);
    assert(ratios[1] > 1, `slower with nothing to change: ${ratios[1].toFixed(1)}`);
  });
}
suite.finish();
