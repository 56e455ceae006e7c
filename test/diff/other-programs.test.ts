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

/** Tables whose names come near, or whose rules take packets that are for Services. */
const others = `table inet kube-proxy {
	chain services {
		type filter hook prerouting priority -150; policy accept;
		ip daddr 10.96.0.80 drop
	}
}
table ip kube-proxy-x {
	chain services {
	}
}
table ip docker {
	chain prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		tcp dport 30080 dnat to 172.17.0.2:80
	}
}
table ip nat {
	chain PREROUTING {
		type nat hook prerouting priority dstnat; policy accept;
	}
}
`;

const cwd = mkdtempSync(join(tmpdir(), 'kpc-other-programs-'));
const named =
  'table inet kube-proxy (nftables), table ip kube-proxy-x (nftables), table ip docker (nftables), table ip nat (nftables)';
const foreignArgs = ['nftables-bundle', '--foreign'] as const;

describe('tables of other programs in nft list ruleset', () => {
  beforeAll(async () => {
    writeFolder(cwd, { 'services.yaml': services });
    const compile = ['compile', '-f', 'services.yaml', '--proxy-mode', 'nftables'];
    await runKpc([...compile, '-o', 'nftables-bundle'], { cwd });
    const { stdout } = await runKpc([...compile, '--print', 'nftables'], { cwd });
    writeFolder(cwd, { 'ruleset.txt': stdout + others });
  });

  test('--foreign names them, because it does not compare them', async () => {
    const run = await runKpc(['diff', 'ruleset.txt', ...foreignArgs], { cwd });
    expect(run.stdout).toBe(`No difference in what could be compared; not compared: ${named}.\n`);
    expect(run.stderr).toContain(`not compared, because one side lacks them: ${named}\n`);
    expect(run.status).toBe(0);
  });

  test('without --foreign they are nothing to compare', async () => {
    const run = await runKpc(['diff', 'ruleset.txt', 'nftables-bundle'], { cwd });
    expect(run).toMatchObject({ status: 0, stdout: 'No difference.\n' });
  });
});

test("kube-proxy's canary is not another program's chain", async () => {
  writeFolder(cwd, { 'services.yaml': services });
  const { stdout } = await runKpc(
    ['compile', '-f', 'services.yaml', '--proxy-mode', 'iptables', '--print', 'iptables'],
    { cwd },
  );
  const withOthers = stdout.replaceAll(/^(\*\w+)$/gm, '$1\n:KUBE-PROXY-CANARY - [0:0]\n:KUBE-ROUTER-INPUT - [0:0]');
  writeFolder(cwd, { 'iptables-save': withOthers });
  const run = await runKpc(['diff', 'iptables-save', 'services.yaml', '--proxy-mode', 'iptables', '--foreign'], {
    cwd,
  });
  expect(run.stdout).toContain('Objects of other programs\n  - chain KUBE-ROUTER-INPUT (nat)\n');
  expect(run.stdout).not.toContain('CANARY');
});
