import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { applyBundle } from '../../src/apply/change/apply-bundle.ts';
import { recallSettled } from '../../src/apply/quick/small-change.ts';
import { stateFolder } from '../../src/apply/state/record.ts';
import { loadBundleToApply } from '../../src/sides/load-bundle.ts';
import { writeWithEndpoints } from './edited-bundle.ts';
import { createNetlinkNode, type NetlinkNode } from './fake-netlink.ts';

// What lets a small change cost little is entered by one door, quick/small-change.ts. With that closed, an apply reads and
// compares everything, and the node ends the same.

const scratch = mkdtempSync(join(tmpdir(), 'kpc-quick-door-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const folder = stateFolder('/var/lib/kpc');

/** Applies a bundle, by the door or past it. Gives the tools that ran. */
async function apply(
  { host, node, commands }: NetlinkNode,
  bundle: string,
  isOpen: boolean,
): Promise<readonly string[]> {
  commands.length = 0;
  const known = isOpen ? await recallSettled(host, folder) : undefined;
  const outcome = await applyBundle(
    { host: host, folder, onEvent: () => undefined },
    await loadBundleToApply(bundle, undefined, known?.bundle),
    {
      origin: { kind: 'apply', folder: bundle },
      adopt: false,
      ipvsExcludeCidrs: [],
      drainTimeout: 0,
      force: false,
      settling: isOpen ? { known } : undefined,
    },
  );
  expect(outcome.kind).toBe('changed');
  expect(node.files.has('/var/lib/kpc/settled/index.json')).toBe(isOpen);
  return commands.map(({ tool }) => tool);
}

describe.each(['ipvs', 'iptables', 'nftables'])('%s', (mode) => {
  const bundles = [['10.244.7.1'], ['10.244.7.2'], ['10.244.7.2', '10.244.7.3'], []].map((addresses, i) =>
    writeWithEndpoints(join(scratch, `${mode}-${i}`), mode, addresses, { node: 'elsewhere' }),
  );

  test('small changes end the same with the door closed', async () => {
    const [open, closed] = [createNetlinkNode(), createNetlinkNode()];
    for (const [i, bundle] of bundles.entries()) {
      const tools = { open: await apply(open, bundle, true), closed: await apply(closed, bundle, false) };
      expect(closed.node.dump()).toBe(open.node.dump());
      expect(tools.closed).not.toContain('unshare');
      expect(tools.open.join() === tools.closed.join() && i > 0).toBe(false);
    }
  });
});

test('no other file of the folder is used outside it', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const outside = files.filter((file) => !file.startsWith('apply/quick/'));
  const used = outside.flatMap((file) => readFileSync(join('src', file), 'utf8').match(/quick\/[\w-]+\.ts/g) ?? []);
  expect([...new Set(used)]).toEqual(['quick/small-change.ts']);
});
