// Checks the nft variant of iptables, which most distributions have, with the same equality as equality.ts for each fixture in iptables
// mode. Runs in a network namespace of this machine's kernel, if the kernel has the modules for this variant.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { assert, assertSame, expectApply, isRestore, startSuite } from './harness.ts';
import { saveByHand, saveState } from './saved-state.ts';

const suite = startSuite('nft');
const fixtures = `${process.env['KPC_BUNDLES']}/fixtures`;
const bin = '/run/nft-bin';
mkdirSync(bin);
for (const tool of ['iptables', 'ip6tables'].flatMap((name) => [name, `${name}-save`, `${name}-restore`])) {
  symlinkSync('/usr/sbin/xtables-nft-multi', join(bin, tool));
}
process.env['PATH'] = `${bin}:${process.env['PATH']}`;
const trial = spawnSync('iptables', [
  '-t',
  'nat',
  '-A',
  'OUTPUT',
  '-m',
  'comment',
  '--comment',
  'trial',
  '-j',
  'RETURN',
]);
if (trial.status === 0) {
  spawnSync('iptables', ['-t', 'nat', '-F', 'OUTPUT']);
  for (const name of readdirSync(fixtures).toSorted()) {
    const folder = join(fixtures, name, 'expected-iptables');
    if (existsSync(folder)) await checkFixture(name, folder);
  }
} else console.log(`nft: skipped, for this kernel cannot: ${String(trial.stderr).trim()}`);
suite.finish();

async function checkFixture(name: string, folder: string): Promise<void> {
  await suite.check(name, async () => {
    await expectApply(['apply', folder], 0);
    const [got, want] = [saveState(), saveByHand(folder)];
    assertSame('iptables-save', got.iptables, want.iptables);
    assertSame('ip6tables-save', got.ip6tables, want.ip6tables);
    const { commands } = await expectApply(['apply', folder], 0);
    assert(!commands.some(isRestore), 'a second apply ran a restore tool');
  });
}
