import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { loadProgrammed, loadBundleToApply } from '../../src/sides/load-bundle.ts';

const bundle = join(fixturesFolder, 'quickstart', 'expected-nftables');

test.each([loadProgrammed, loadBundleToApply])(
  'kpc-apply does not take a bundle of nftables mode for one that is applied',
  async (load) => {
    await expect(load(bundle)).rejects.toMatchObject({
      code: 'bad-bundle',
      message: `${bundle} is a bundle of nftables mode, which kpc-apply does not program yet`,
    });
  },
);
