import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { programs } from '../../../src/kube-proxy/modes.ts';
import { listFixtures } from '../../support/fixtures.ts';
import { triesAll } from '../../support/rounds.ts';
import { runProgram } from '../../support/run-kpc.ts';

const restoreFiles = ['iptables.restore', 'ip6tables.restore'];

/** The two programs behind the name iptables-restore: one for nf_tables, one for the kernel's older tables. */
const variants = ['nft', 'legacy'] as const;

const bundles = listFixtures().flatMap(({ name, folder, modes }) =>
  modes
    .filter((mode) => programs(mode, 'iptables'))
    .map((mode) => {
      const bundle = join(folder, `expected-${mode}`);
      const files = restoreFiles.filter((file) => existsSync(join(bundle, file)));
      return { name: `${name}: ${mode}`, bundle, files };
    }),
);

/** What this machine lacks to load rules in a network of its own; undefined if nothing. */
function findMissing(): string | undefined {
  const tools = ['unshare', 'ipset', ...variants.map((variant) => `xtables-${variant}-multi`)];
  const missing = tools.filter((tool) => spawnSync('sh', ['-c', 'command -v "$1"', 'sh', tool]).status !== 0);
  if (missing.length > 0) return `no ${missing.join(', ')} here`;
  return spawnSync('unshare', ['--net', 'true']).status === 0 ? undefined : 'no right to make a network namespace';
}

/** Sets first: a rule that matches a set loads only where the set is. */
const script = `
set -e
if [ -s ipset.restore ]; then ipset restore < ipset.restore; fi
for file in "$@"; do
  restore="\${file%.restore}-restore"
  for variant in ${variants.join(' ')}; do
    "xtables-$variant-multi" "$restore" --noflush --test < "$file" || { echo "$variant: $file"; exit 1; }
  done
done
`;

/** Up to v1.33 kube-proxy asks ipset for a range of length zero, which no set takes: kpc compile warns of it. */
const unloadable = 'release-open-range-1.33: ipvs';

test('every bundle of the fixtures has rules to load', () => {
  expect(bundles).not.toEqual([]);
  expect(bundles.filter(({ files }) => files.length === 0)).toEqual([]);
});

const missing = findMissing();

describe
  .skipIf(missing !== undefined)
  .concurrent(`real tools load${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
    const loadable = bundles.filter(({ name }) => name !== unloadable);
    test.each(loadable.filter((_, i) => triesAll || i % 3 === 0))('$name', async ({ bundle, files }) => {
      const run = await runProgram('unshare', ['--net', 'sh', '-c', script, 'sh', ...files], { cwd: bundle });
      expect(run).toMatchObject({ status: 0 });
    });

    test(`${unloadable}: ipset refuses what kpc compile warns of`, async () => {
      const { bundle = '', files = [] } = bundles.find(({ name }) => name === unloadable) ?? {};
      const run = await runProgram('unshare', ['--net', 'sh', '-c', script, 'sh', ...files], { cwd: bundle });
      expect(run).toMatchObject({ status: 1, stderr: expect.stringContaining('The value of the CIDR parameter') });
    });
  });
