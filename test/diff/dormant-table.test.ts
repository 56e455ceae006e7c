import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const services = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { clusterIP: 10.96.0.80, ports: [{ port: 80 }] }
`;

const cwd = mkdtempSync(join(tmpdir(), 'kpc-dormant-'));
const warning =
  'nft list ruleset shows that table ip kube-proxy is dormant: no packet comes to it, and none of its Services works';

/** "nft add table ip kube-proxy { flags dormant; }" takes all hooks of the table away, and leaves the rest to be listed. */
describe("a table of kube-proxy's that is dormant", () => {
  let table = '';

  beforeAll(async () => {
    writeFolder(cwd, { 'services.yaml': services });
    const compile = ['compile', '-f', 'services.yaml', '--proxy-mode', 'nftables'];
    await runKpc([...compile, '-o', 'bundle'], { cwd });
    table = (await runKpc([...compile, '--print', 'nftables'], { cwd })).stdout;
  });

  const dump = (text: string) => writeFolder(join(cwd, 'dump'), { 'nft-ruleset': text });

  test.each([
    'table ip kube-proxy {\n\tflags dormant',
    'table ip kube-proxy { # progname firewall\n\tflags owner,dormant',
  ])('%j: the Services of the bundle are missing', async (head) => {
    dump(table.replace('table ip kube-proxy {', head));
    const run = await runKpc(['diff', 'dump', 'bundle'], { cwd });
    expect(run.stderr).toContain(warning);
    expect(run.stdout).toContain('shop/web added\n');
    expect(run.status).toBe(1);
    const described = await runKpc(['describe', 'dump'], { cwd });
    expect(described).toMatchObject({ status: 1, stdout: '' });
    expect(described.stderr).toContain(warning);
    expect(described.stderr).toContain('error: the dump shows no Service: table ip kube-proxy is dormant');
  });

  test('a packet passes it unchanged', async () => {
    dump(table.replace('table ip kube-proxy {', 'table ip kube-proxy {\n\tflags dormant'));
    const run = await runKpc(['trace', '-q', 'dump', '--from', '192.0.2.7', '--to', 'svc/shop/web'], { cwd });
    expect(run.stdout).toContain('  left to routing: no rule of a Service changes the packet, ');
    expect(run.stdout).toContain('  table ip kube-proxy is dormant, so no packet reaches its rules: ');
  });

  test('a dormant table of another program is no matter', async () => {
    dump(`${table}table ip firewall {\n\tflags dormant\n}\n`);
    expect(await runKpc(['diff', 'dump', 'bundle'], { cwd })).toMatchObject({ status: 0, stdout: 'No difference.\n' });
  });
});
