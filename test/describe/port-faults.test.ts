// Why a Service port has no endpoint stands in the answer, not in a warning beside it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-port-faults-'));
afterAll(() => rmSync(cwd, { recursive: true }));

function manifests(name: string, { targetPort = '8080', app = 'web', portName = 'http', replicas = 2 } = {}): string {
  const text = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.30.4, selector: { app: ${app} }, ports: [{ port: 80, targetPort: ${targetPort} }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web, image: web, ports: [{ name: ${portName}, containerPort: 8080 }] }] } }
`;
  writeFileSync(join(cwd, name), text);
  return name;
}

const fine = manifests('fine.yaml', { targetPort: 'http' });
const unnamed = manifests('unnamed.yaml', { targetPort: 'http', portName: 'htttp' });
const unselected = manifests('unselected.yaml', { app: 'wep' });
const undeclared = manifests('undeclared.yaml', { targetPort: '8081' });

async function kpc(...args: readonly string[]): Promise<string> {
  const { stdout } = await runKpc([...args, '-q', '--kpc-yaml', 'none'], { cwd });
  return stdout;
}

describe.each([
  [unnamed, /has a TCP port named http \(they have htttp\/TCP\)/, 'no endpoints: no port named http'],
  [unselected, /its selector matches no Pod in the input/, 'no endpoints: selects no Pod'],
])('%s', (file, why, inShort) => {
  test.each(['ipvs', 'iptables', 'nftables'])('trace and describe in mode %s say why, also with -q', async (mode) => {
    const flags = ['--proxy-mode', mode];
    const packet = ['--from', 'pod', '--to', 'web'];
    expect(await kpc('trace', file, ...packet, ...flags)).toMatch(why);
    expect(await kpc('trace', file, '--all', 'web', ...flags)).toMatch(why);
    expect(await kpc('describe', file, 'web', ...flags)).toMatch(why);
    expect(await kpc('describe', file, ...flags)).toContain(inShort);
  });

  test('programs get it, too', async () => {
    const { traces } = resultOf(await kpc('trace', file, '--from', 'pod', '--to', 'web', '--output', 'json')) as {
      traces: readonly { notes: readonly string[]; cause?: { text?: string } }[];
    };
    expect(traces[0]?.notes.join()).toMatch(why);
    expect(traces[0]?.cause?.text).toMatch(why);
    expect(await kpc('describe', file, 'web', '--output', 'json')).toMatch(why);
  });

  test('a diff that leads there says why', async () => {
    expect(await kpc('diff', fine, file)).toMatch(why);
    expect(await kpc('diff', file, fine)).not.toMatch(why);
  });
});

test('describe shows the selector and the target port', async () => {
  const said = await kpc('describe', fine, 'web');
  expect(said).toContain('selector app=web');
  expect(said).toContain('target port http');
});

test('a target port that no container lists is said by describe, and by a diff that brings it', async () => {
  const said = /no container of its Pods lists 8081\/TCP \(Deployment default\/web lists 8080\/TCP\)/;
  expect(await kpc('describe', undeclared, 'web')).toMatch(said);
  expect(await kpc('diff', fine, undeclared)).toMatch(said);
  const { servicePorts } = resultOf(await kpc('diff', fine, undeclared, '--output', 'json')) as {
    servicePorts: readonly { reasons: readonly { kind: string; code?: string }[] }[];
  };
  const faults = servicePorts.flatMap(({ reasons }) => reasons).filter(({ kind }) => kind === 'fault');
  expect(faults.map(({ code }) => code)).toEqual(['undeclared-port']);
});

test('a diff of something else repeats no fault that was there before', async () => {
  const more = manifests('more.yaml', { targetPort: '8081', replicas: 3 });
  const said = await kpc('diff', undeclared, more);
  expect(said).toContain('endpoints 2 → 3');
  expect(said).not.toContain('no container');
});
