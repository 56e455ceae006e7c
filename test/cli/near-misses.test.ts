import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runKpc, runKpcApply } from '../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-near-'));
const manifest = `apiVersion: v1
kind: Service
metadata: { name: web, namespace: store }
spec: { clusterIP: 10.96.0.80, ports: [{ port: 80 }] }
---
apiVersion: v1
kind: Service
metadata: { name: nginx, namespace: store }
spec: { clusterIP: 10.96.0.81, ports: [{ port: 80 }] }
---
apiVersion: v1
kind: Node
metadata: { name: worker-1 }
status: { addresses: [{ type: InternalIP, address: 192.168.1.10 }] }
`;
beforeAll(() => writeFileSync(join(folder, 'svc.yaml'), manifest));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const kpc = (line: string) => runKpc(line.split(' '), { cwd: folder });

describe('kpc says what was meant by', () => {
  test.each([
    ['complie -f svc.yaml', 'did you mean compile?'],
    ['compile svc.yaml other.json', 'other.json: error: there is no such file or folder'],
    ['compile -f svc.yaml --ipvs-schedular rr', 'did you mean --ipvs-scheduler?'],
    ['compile -f svc.yaml --node wroker-1', 'did you mean worker-1?'],
    ['describe web -f svc.yaml --node wroker-1', 'did you mean worker-1?'],
    ['compile -f svc.yaml -o yaml', 'a folder, not a format; for a folder of this name, write ./yaml'],
    ['compile -f svc.yaml -ojson', 'a folder, not a format'],
    ['compile -f svc.yaml -o jsonpath={.items}', 'a folder, not a format'],
    ['compile -f svc.yaml --golden yaml', 'a folder, not a format'],
    ['compile -f svc.yaml --output yaml', 'allowed choices are text, json'],
    [
      'compile https://example.com/a.yaml',
      'download it and name the file, as in "curl -sSLO https://example.com/a.yaml"',
    ],
    ['compile *.json', 'kpc does not expand patterns'],
    ['describe web -f svc.yaml --otput json', 'did you mean --output?'],
  ])('kpc %s', async (line, meant) => {
    const before = readdirSync(folder);
    const run = await kpc(line);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(meant);
    expect(run.stderr).not.toMatch(/^ +at /m);
    expect(readdirSync(folder)).toEqual(before);
  });

  test.each([
    ['ngnix', 'store/nginx'],
    ['ngnix.store', 'store/nginx'],
    ['svc/ngnix', 'store/nginx'],
    ['service/wbe', 'store/web'],
    ['store/wbe', 'store/web'],
  ])('kpc describe %s', async (what, meant) => {
    const run = await kpc(`describe ${what} -f svc.yaml`);
    expect(run).toMatchObject({ status: 1, stdout: '' });
    expect(run.stderr).toContain(
      `no Service, address, port, chain or set matches ${JSON.stringify(what)}; did you mean ${meant}?`,
    );
  });

  test.each(['svc/web', 'service/web', 'services/web'])('kpc describe %s, as kubectl names it', async (what) => {
    const run = await kpc(`describe ${what} -f svc.yaml`);
    expect(run.status).toBe(0);
    expect(run.stdout).toContain('Service store/web');
  });

  test('no word that is near nothing', async () => {
    const { stderr } = await kpc('frobnicate');
    expect(stderr).toBe("error: unknown command 'frobnicate' [bad-call]\n  help: --help lists the commands\n");
  });
});

describe('kpc-apply says what was meant by', () => {
  test.each([
    ['complie', 'unknown command'],
    ['aply out', 'did you mean apply?'],
    ['dump -o json', 'a folder, not a format; for a folder of this name, write ./json'],
  ])('kpc-apply %s', async (line, meant) => {
    const run = await runKpcApply(line.split(' '));
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain(meant);
    expect(existsSync('json')).toBe(false);
  });
});

describe('a folder with the name of a format', () => {
  test('is written where its path is meant', async () => {
    expect((await kpc('compile -f svc.yaml --node worker-1 -o ./json')).status).toBe(0);
    expect(readdirSync(join(folder, 'json'))).toContain('manifest.json');
    rmSync(join(folder, 'json'), { recursive: true });
  });
});
