import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { callApply } from './call-apply.ts';
import { writeWithEndpoints } from './edited-bundle.ts';
import { createNetlinkNode, type NetlinkNode } from './fake-netlink.ts';

// What is settled saves time and no more. Where the state folder has little space, the journal comes first.

const scratch = mkdtempSync(join(tmpdir(), 'kpc-settled-space-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function bundleWith(...addresses: readonly string[]): string {
  return writeWithEndpoints(join(scratch, addresses.join('_')), 'nftables', addresses);
}

/** A host whose state folder has space for so many characters: what does not fit is left half written. */
function withSpace({ node, host }: NetlinkNode, space: number): Host {
  const own = (path: string) => path.startsWith('/var/lib/kpc/');
  const used = () => [...node.files].reduce((sum, [path, text]) => sum + (own(path) ? text.length : 0), 0);
  return {
    ...host,
    replaceFile: async (path, text) => {
      node.files.delete(`${path}.new`);
      const left = space - used();
      if (!own(path) || text.length <= left) return host.replaceFile(path, text);
      node.files.set(`${path}.new`, text.slice(0, Math.max(0, left)));
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    },
    remove: async (path) => {
      for (const name of node.files.keys()) if (name.startsWith(`${path}/`)) node.files.delete(name);
      return host.remove(path);
    },
  };
}

/** What the state folder takes for the journal and the state before, without what is settled. */
async function leastSpace(bundles: readonly string[]): Promise<number> {
  const made = createNetlinkNode();
  let most = 0;
  const host: Host = {
    ...withSpace(made, Infinity),
    replaceFile: async (path, text) => {
      if (path.includes('/settled/')) throw new Error('not this one');
      const own = [...made.node.files].filter(([name]) => name.startsWith('/var/lib/kpc/'));
      most = Math.max(
        most,
        own.reduce((sum, [, content]) => sum + content.length, text.length),
      );
      await made.host.replaceFile(path, text);
    },
  };
  for (const bundle of bundles) expect((await callApply(host, 'apply', bundle)).status).toBe(0);
  return most;
}

test('an apply never fails for the space that what was settled takes', async () => {
  const bundles = ['10.244.7.1', '10.244.7.2', '10.244.7.3', '10.244.7.1'].map((each) => bundleWith(each));
  // What is known from a bundle is longer than what nft lists.
  const least = Math.ceil(1.5 * (await leastSpace(bundles)));
  for (let space = least; space < least + 60_000; space += 2_000) {
    const made = createNetlinkNode();
    const host = withSpace(made, space);
    for (const bundle of bundles) {
      const { status, err } = await callApply(host, 'apply', bundle);
      expect([space, status, err]).toEqual([space, 0, expect.stringContaining('done: ')]);
      expect((await callApply(host, 'verify', bundle)).status).toBe(0);
    }
    expect([...made.node.files.keys()].filter((name) => name.endsWith('.new'))).toEqual([]);
  }
}, 120_000);

test('once there is space, what is settled is whole again', async () => {
  const made = createNetlinkNode();
  const [first, second] = [bundleWith('10.244.7.1'), bundleWith('10.244.7.2')];
  const least = Math.ceil(1.5 * (await leastSpace([first, second, first])));
  await callApply(withSpace(made, Infinity), 'apply', first);
  expect((await callApply(withSpace(made, least), 'apply', second)).status).toBe(0);
  expect((await callApply(withSpace(made, Infinity), 'apply', first)).err).toContain('done: ');
  made.commands.length = 0;
  expect((await callApply(withSpace(made, Infinity), 'apply', first)).err).toContain('nothing to do');
  expect(made.commands.filter(({ tool, args }) => tool === 'nft' && args.includes('list'))).toEqual([]);
});
