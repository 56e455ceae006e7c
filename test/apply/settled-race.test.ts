import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Host } from '../../src/apply/node/host.ts';
import { stateFolder } from '../../src/apply/state/record.ts';
import { recallSettled } from '../../src/apply/quick/small-change.ts';
import { callApply } from './call-apply.ts';
import { writeWithEndpoints } from './edited-bundle.ts';
import { createNetlinkNode, type NetlinkNode } from './fake-netlink.ts';

// What is settled is read before the lock is taken: checking a large bundle takes seconds, and nothing need wait for it. So
// another apply may begin and end in between.

const scratch = mkdtempSync(join(tmpdir(), 'kpc-settled-race-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The dual-stack example with an endpoint more. */
function bundleWith(mode: string, address: string): string {
  return writeWithEndpoints(join(scratch, `${mode}-${address}`), mode, [address]);
}

/** The host of a process in which another one does something, just before it asks for the lock. */
function overtaken(host: Host, other: () => Promise<unknown>): Host {
  let isLate = false;
  return {
    ...host,
    replaceFile: async (path, text) => {
      if (!isLate && path.includes('/run/kpc-apply/')) {
        isLate = true;
        await other();
      }
      return host.replaceFile(path, text);
    },
  };
}

/** As iptables-save prints it, each list with the time: so no two are the same. */
function withTimes(made: NetlinkNode): NetlinkNode {
  let time = 0;
  const run: Host['run'] = async (command) => {
    const result = await made.host.run(command);
    if (result.kind === 'missing' || !command.tool.endsWith('tables-save')) return result;
    return { ...result, stdout: `# Generated at ${time++}\n${result.stdout}` };
  };
  return { ...made, host: { ...made.host, run } };
}

function anotherProcess({ node, host }: NetlinkNode): Host {
  node.files.set('/proc/101/stat', '101 (kpc-apply) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4712 0');
  return { ...host, pid: 101 };
}

describe.each(['nftables', 'iptables', 'ipvs'])('%s: an apply that another one overtakes', (mode) => {
  const [first, second, third] = ['10.244.7.1', '10.244.7.2', '10.244.7.3'].map((each) => bundleWith(mode, each)) as [
    string,
    string,
    string,
  ];

  test.each([
    ['of the bundle that was settled', first],
    ['of one more', third],
  ])('%s leaves no trace of the other in what is settled', async (_, bundle) => {
    const made = withTimes(createNetlinkNode());
    expect((await callApply(made.host, 'apply', first)).status).toBe(0);
    const late = overtaken(made.host, async () => {
      expect((await callApply(anotherProcess(made), 'apply', second)).status).toBe(0);
    });
    const { status, err } = await callApply(late, 'apply', bundle);
    expect([status, err]).toEqual([0, expect.stringContaining('done: ')]);
    expect((await callApply(made.host, 'verify', bundle)).status).toBe(0);
    const there = made.node.dump();
    expect((await callApply(made.host, 'apply', second)).err).toContain('done: ');
    expect((await callApply(made.host, 'verify', second)).status).toBe(0);
    expect((await callApply(made.host, 'rollback')).status).toBe(0);
    expect(made.node.dump()).toBe(there);
  });
});

describe('what is settled, read while another apply replaces it,', () => {
  test.each(['index.json', 'bundle-services.json', 'bundle-nftables.nft', 'ipv4'])(
    'is not used: after %s',
    async (name) => {
      const made = createNetlinkNode();
      const [first, second] = [bundleWith('nftables', '10.244.7.1'), bundleWith('nftables', '10.244.7.2')];
      await callApply(made.host, 'apply', first);
      let isLate = false;
      const reader: Host = {
        ...made.host,
        readFile: async (path) => {
          const text = await made.host.readFile(path);
          if (!isLate && path.endsWith(`/settled/${name}`)) {
            isLate = true;
            await callApply(anotherProcess(made), 'apply', second);
          }
          return text;
        },
      };
      const folder = stateFolder('/var/lib/kpc');
      expect(await recallSettled(reader, folder)).toBeUndefined();
      expect(isLate).toBe(true);
      expect((await recallSettled(reader, folder))?.bundle.get('services.json')).toContain('10.244.7.2');
    },
  );
});
