// The API server clears status.loadBalancer of a Service that is no longer of type LoadBalancer, which a file may still hold.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-cleared-status-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const service = (type: string, status = 'status: { loadBalancer: { ingress: [{ ip: 203.0.113.10 }] } }') =>
  `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: ${type}, clusterIP: 10.96.0.10, ports: [{ port: 80, nodePort: 30080 }] }
${status}
`;

writeFolder(cwd, {
  'balancer.yaml': service('LoadBalancer'),
  'kept.yaml': service('NodePort'),
  'gone.yaml': service('NodePort', ''),
});

test.each(['diff', 'equivalence'])('kpc %s names the addresses, whichever side keeps them', async (command) => {
  const named = async (from: string, to: string): Promise<readonly string[]> => {
    const { stdout } = await runKpc([command, from, to, '--proxy-mode', 'iptables', '--output', 'json'], { cwd });
    return resultOf(stdout).notCompared.filter((each: string) =>
      each.includes('load balancer addresses of default/web'),
    );
  };
  expect(await named('balancer.yaml', 'kept.yaml')).toHaveLength(1);
  expect(await named('kept.yaml', 'balancer.yaml')).toHaveLength(1);
  expect(await named('balancer.yaml', 'gone.yaml')).toHaveLength(0);
  expect(await named('kept.yaml', 'kept.yaml')).toHaveLength(0);
});
