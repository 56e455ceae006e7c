import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { some } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-merge-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Spec {
  readonly ip: string;
  readonly pods: readonly string[];
  readonly nodePort?: number;
  readonly externalIP?: string;
  readonly port?: number;
}

/** A repository with a file for each Service, and the golden that is made of them. */
class Repository {
  readonly folder: string;
  readonly mode: string;

  constructor(folder: string, mode: string) {
    this.folder = folder;
    this.mode = mode;
    mkdirSync(join(folder, 'services'), { recursive: true });
    this.git('init', '--quiet', '--initial-branch=main');
    this.git('config', 'user.name', 'Test');
    this.git('config', 'user.email', 'test@example.com');
  }

  git(...args: readonly string[]): string {
    return execFileSync('git', ['-C', this.folder, ...args], { encoding: 'utf8', stdio: 'pipe' });
  }

  write(name: string, { ip, pods, nodePort, externalIP, port = 80 }: Spec): void {
    const type = nodePort === undefined ? 'ClusterIP' : 'NodePort';
    const ports = [{ port, targetPort: 8080, ...(nodePort === undefined ? {} : { nodePort }) }];
    const spec = { type, clusterIP: ip, ports, ...(externalIP === undefined ? {} : { externalIPs: [externalIP] }) };
    const slice = { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } };
    const objects = [
      { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: slice,
        addressType: 'IPv4',
        ports: [{ port: 8080 }],
        endpoints: pods.map((address) => ({ addresses: [address] })),
      },
    ];
    const text = objects.map((object) => JSON.stringify(object)).join('\n---\n');
    writeFileSync(join(this.folder, 'services', `${name}.yaml`), text);
  }

  remove(name: string): void {
    rmSync(join(this.folder, 'services', `${name}.yaml`));
  }

  kpc(...args: readonly string[]) {
    return runKpc(['compile', '-f', 'services', '--proxy-mode', this.mode, ...args], { cwd: this.folder });
  }

  async commit(): Promise<void> {
    const { status, stderr } = await this.kpc('--golden', 'golden');
    if (status !== 0) throw new Error(stderr);
    this.git('add', '--all');
    this.git('commit', '--quiet', '--message', 'A change');
  }

  /** A branch from main with one change and its golden. */
  async branch(name: string, change: () => void): Promise<void> {
    this.git('checkout', '--quiet', '-b', name, 'main');
    change();
    await this.commit();
    this.git('checkout', '--quiet', 'main');
  }
}

describe.each(some(['ipvs', 'iptables']))('branches that change Services in mode %s', (mode) => {
  let repository: Repository;
  let count = 0;

  beforeEach(async () => {
    repository = new Repository(join(scratch, `${mode}-${++count}`), mode);
    repository.write('cart', { ip: '10.96.0.10', pods: ['10.244.1.10'], nodePort: 30010 });
    repository.write('web', { ip: '10.96.0.12', pods: ['10.244.1.12', '10.244.1.13'], nodePort: 30012 });
    await repository.commit();
  });

  /** Merges the branches into main, one after the other, and compares what comes out with a fresh compile. */
  async function expectMerge(...branches: readonly string[]): Promise<void> {
    for (const branch of branches) repository.git('merge', '--quiet', '--no-edit', branch);
    expect(await repository.kpc('--check', 'golden')).toMatchObject({ status: 0, stdout: '' });
    expect(repository.git('status', '--porcelain')).toBe('');
  }

  test('merge where they change two neighbours and add one between', async () => {
    await repository.branch('cart', () =>
      repository.write('cart', { ip: '10.96.0.10', pods: ['10.244.1.10', '10.244.1.11'], nodePort: 30010 }),
    );
    await repository.branch('web', () =>
      repository.write('web', { ip: '10.96.0.12', pods: ['10.244.1.13'], nodePort: 30012 }),
    );
    await repository.branch('mail', () =>
      repository.write('mail', { ip: '10.96.0.11', pods: ['10.244.1.20'], nodePort: 30011 }),
    );
    await expectMerge('cart', 'web', 'mail');
  });

  test('merge where both add a Service in the same place', async () => {
    await repository.branch('one', () => repository.write('mail', { ip: '10.96.0.11', pods: ['10.244.1.20'] }));
    await repository.branch('two', () => repository.write('news', { ip: '10.96.0.13', pods: ['10.244.1.21'] }));
    await expectMerge('one', 'two');
  });

  test('merge where one goes whose external address another one has too', async () => {
    repository.write('cart', { ip: '10.96.0.10', pods: ['10.244.1.10'], externalIP: '203.0.113.7' });
    repository.write('web', { ip: '10.96.0.12', pods: ['10.244.1.12'], externalIP: '203.0.113.7', port: 81 });
    await repository.commit();
    await repository.branch('gone', () => repository.remove('cart'));
    await repository.branch('web', () =>
      repository.write('web', { ip: '10.96.0.12', pods: ['10.244.1.19'], externalIP: '203.0.113.7', port: 81 }),
    );
    await expectMerge('gone', 'web');
  });

  test('conflict where they change one Service in two ways', async () => {
    await repository.branch('one', () => repository.write('cart', { ip: '10.96.0.10', pods: ['10.244.1.30'] }));
    await repository.branch('two', () => repository.write('cart', { ip: '10.96.0.10', pods: ['10.244.1.31'] }));
    repository.git('merge', '--quiet', '--no-edit', 'one');
    expect(() => repository.git('merge', '--quiet', '--no-edit', 'two')).toThrow(/CONFLICT|Command failed/);
  });
});
