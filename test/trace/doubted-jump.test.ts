// Rules that ask for an interface that kpc does not know, as Docker's and Calico's do.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-doubted-jump-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

writeFolder(cwd, {
  'node.txt': `*filter
:FORWARD ACCEPT [0:0]
:cali-FORWARD - [0:0]
:cali-from-wl-dispatch - [0:0]
-A FORWARD -j cali-FORWARD
-A cali-FORWARD -i cali+ -j cali-from-wl-dispatch
-A cali-from-wl-dispatch -j DROP
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
COMMIT
# ip -br addr
lo UNKNOWN 127.0.0.1/8
eth0 UP 192.0.2.1/32
`,
});

const question = ['trace', 'node.txt', '--from', '192.0.2.7', '--to', '10.244.1.5:80'];

test('the rule in doubt is the last step, even if it goes on to another chain', async () => {
  const { stdout } = await runKpc(question, { cwd });
  expect(stdout).toContain(
    'unknown: a rule matches the interface where the packet arrives: iptables filter cali-FORWARD rule 1: -i cali+',
  );
  const steps = stdout.trimEnd().split('\n');
  expect(steps.at(-3)).toContain('iptables filter FORWARD rule 1: -j cali-FORWARD');
  expect(steps.at(-1)).toContain('iptables filter cali-FORWARD rule 1: -i cali+ -j cali-from-wl-dispatch');
});

test('with the interface there is no doubt', async () => {
  expect((await runKpc([...question, '--in-interface', 'eth0'], { cwd })).stdout).toContain('left to routing');
  expect((await runKpc([...question, '--in-interface', 'cali0'], { cwd })).stdout).toContain('dropped');
});
