// Checks for each fixture, in each of its modes, that kpc-apply leaves the same node, byte for byte, as feeding the bundle's files to the
// tools on an empty node. Every bundle except the first is applied over another one, so this also proves that B applied over A equals B. A
// second apply changes nothing and runs no tool that could.
// In User Mode Linux a fixture takes seconds. Unless KPC_FULL=1 is set, IPVS mode uses only fixtures that together have every kind of line.
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isFull } from '../support/rounds.ts';
import { coverLines } from './cover-lines.ts';
import { assert, assertSame, expectApply, isRestore, startSuite } from './harness.ts';
import { run } from './network.ts';
import { normalizeTables, saveByHand, saveState, type SavedState } from './saved-state.ts';

const fixtures = `${process.env['KPC_BUNDLES']}/fixtures`;
const modes = process.argv.slice(2);
const suite = startSuite(`equality ${modes.join(' ')}`);

/** Up to v1.33, kube-proxy adds a range of length zero to an ipset, which ipset refuses. kpc compile warns about such a range. */
const unloadable = 'release-open-range-1.33';

// Two virtual servers of another program. Skipped in iptables mode, because the kernel may lack IPVS.
const keepalived = modes.includes('ipvs')
  ? ['-A -t 100.64.9.1:80 -s rr', '-a -t 100.64.9.1:80 -r 100.64.9.7:80 -g -w 7', '-A -u 100.64.9.2:53 -s sh']
  : [];
const theirs = keepalived.toSorted();
if (theirs.length > 0) run('ipvsadm', ['-R'], `${keepalived.join('\n')}\n`);
run('iptables', ['-A', 'INPUT', '-s', '100.64.9.9', '-j', 'DROP']);
const before = saveState();

let bundles = 0;
for (const mode of modes) {
  const all = readdirSync(fixtures)
    .toSorted()
    .map((name) => join(fixtures, name, `expected-${mode}`))
    .filter((folder) => existsSync(folder));
  for (const folder of mode === 'ipvs' && !isFull ? coverLines(all) : all) {
    const name = basename(dirname(folder));
    if (name === unloadable && mode === 'ipvs') {
      await suite.check(`${name} (${mode}): no ipset takes it, and the node stays as it was`, async () => {
        const there = saveState();
        const { err } = await expectApply(['apply', folder], 3);
        assert(err.includes('The value of the CIDR parameter of the IP address is invalid'), err);
        assertSame('ipset save', saveState().ipset, there.ipset);
      });
      continue;
    }
    bundles++;
    await suite.check(`${name} (${mode})`, async () => {
      await expectApply(['apply', folder], 0);
      assertSameState(saveState(), saveByHand(folder));
      const again = await expectApply(['apply', folder], 0);
      const restores = again.commands.filter(isRestore).map(({ tool }) => tool);
      assert(restores.length === 0, `a second apply ran ${restores.join(', ')}`);
      assert(again.err.startsWith('nothing to do'), again.err);
    });
  }
}
await suite.check('at least 10 fixtures', () => assert(bundles >= 10, `${bundles}`));
await suite.check('cleanup leaves what was there before', async () => {
  await expectApply(['cleanup'], 0);
  const after = saveState();
  for (const part of ['iptables', 'ip6tables', 'ipset', 'ipvsadm', 'addresses'] as const) {
    assertSame(part, after[part], before[part]);
  }
});
suite.finish();

function assertSameState(got: SavedState, want: SavedState): void {
  assertSame('iptables-save', withoutTheirs(got.iptables), want.iptables);
  assertSame('ip6tables-save', got.ip6tables, want.ip6tables);
  assertSame('ipset save', got.ipset, want.ipset);
  assertSame('addresses', got.addresses, want.addresses);
  const lines = got.ipvsadm.split('\n');
  assertSame('the virtual servers of others', lines.filter(isTheirs).join('\n'), theirs.join('\n'));
  assertSame('ipvsadm -Sn', lines.filter((line) => !isTheirs(line)).join('\n'), want.ipvsadm);
}

function isTheirs(line: string): boolean {
  return line.includes(' 100.64.9.');
}

function withoutTheirs(tables: string): string {
  return normalizeTables(tables.replace('-A INPUT -s 100.64.9.9/32 -j DROP\n', ''));
}
