// An API server adds the second family to a stored Service that asks for it: whether it can is not in the manifests.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-second-family-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const stored = (policy: string, more = '') => `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10${more === '' ? '' : ', "fd00::a"'}], ipFamilies: [IPv4${more}], ipFamilyPolicy: ${policy}, ports: [{ port: 80 }] }
`;

const bare = (policy: string) => stored(policy).replace('clusterIPs: [10.96.0.10], ipFamilies: [IPv4], ', '');

writeFolder(cwd, {
  'single.yaml': stored('SingleStack'),
  'prefer.yaml': stored('PreferDualStack'),
  'require.yaml': stored('RequireDualStack'),
  'bare.yaml': bare('SingleStack'),
  'bare-prefer.yaml': bare('PreferDualStack'),
  'dual.yaml': stored('PreferDualStack', ', IPv6'),
});

async function notCompared(
  command: string,
  from: string,
  to: string,
  ...flags: readonly string[]
): Promise<readonly string[]> {
  const { stdout } = await runKpc([command, from, to, '--proxy-mode', 'iptables', '--output', 'json', ...flags], {
    cwd,
  });
  return resultOf(stdout).notCompared.filter((each: string) => each.includes('second IP family of default/web'));
}

test.each(['diff', 'equivalence'])(
  'kpc %s leaves the second family open, unless the Service has it',
  async (command) => {
    expect(await notCompared(command, 'single.yaml', 'prefer.yaml')).toHaveLength(1);
    expect(await notCompared(command, 'single.yaml', 'require.yaml')).toHaveLength(1);
    expect(await notCompared(command, 'single.yaml', 'dual.yaml')).toHaveLength(0);
    expect(await notCompared(command, 'bare.yaml', 'bare-prefer.yaml')).toHaveLength(1);
    const ranges = ['--service-cluster-ip-range', '10.96.0.0/16,fd00::/108'];
    expect(await notCompared(command, 'bare.yaml', 'bare-prefer.yaml', ...ranges)).toHaveLength(0);
    // A stored Service that already prefers both families stays as it is.
    expect(await notCompared(command, 'prefer.yaml', 'prefer.yaml')).toHaveLength(0);
  },
);
