import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { main } from '../../src/cli/kpc/main.ts';
import type { Terminal } from '../../src/cli/shared/terminal.ts';
import { triesAll } from '../support/rounds.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-review-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Manifests with so many Services, of which the first has that port. Two that keep clients for other times are not alike. */
function write(name: string, services: number, port: number, node: object = {}, isUnlike = false): string {
  const objects = Array.from({ length: services }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `s${i}`, namespace: 'shop' },
    spec: {
      clusterIP: `10.96.${Math.trunc(i / 250)}.${(i % 250) + 1}`,
      ports: [{ port: i === 0 ? port : 80, ...node }],
      ...('nodePort' in node ? { type: 'NodePort' } : {}),
      ...(isUnlike
        ? { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: i + 1 } } }
        : {}),
    },
  }));
  const file = join(scratch, `${name}.json`);
  writeFileSync(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  return file;
}

/** Adds an endpoint to each Service of a file. */
function serve(file: string): string {
  const services = readFileSync(file, 'utf8')
    .split('---')
    .map((text) => JSON.parse(text) as { readonly metadata: { readonly name: string; readonly namespace: string } });
  const slices = services.map(({ metadata: { name, namespace } }, i) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ port: 8080 }],
    endpoints: [{ addresses: [`10.244.${Math.trunc(i / 250)}.${(i % 250) + 1}`] }],
  }));
  writeFileSync(file, [...services, ...slices].map((object) => JSON.stringify(object)).join('\n---\n'));
  return file;
}

function review(services: number): Promise<string> {
  return compare([write(`old-${services}`, services, 80), write(`new-${services}`, services, 81)]);
}

async function compare(paths: readonly string[]): Promise<string> {
  const texts: string[] = [];
  const terminal: Terminal = {
    out: async (text) => void texts.push(text),
    err: async () => undefined,
    status: async () => undefined,
    readStdin: async () => '',
    colour: { out: false, err: false },
    interactive: false,
  };
  expect(await main(['diff', ...paths, '--kpc-yaml', 'none'], terminal)).toBe(1);
  return texts.join('');
}

const tooMany = 'not compared: packets';

describe('the packets of a review', () => {
  test('are compared up to 400 Service ports', async () => {
    const text = await review(3);
    expect(text).toContain('Packets');
    expect(text).not.toContain(tooMany);
  });

  test('are not said to be the same where the input does not show it', async () => {
    const text = await compare([write('a', 1, 80, { nodePort: 30080 }), write('b', 1, 80, { nodePort: 30081 })]);
    expect(text).toMatch(
      /every node's port 30080\), .*: not known → left to the node itself .*the input holds no EndpointSlices/,
    );
  });

  test.runIf(triesAll)('are compared beyond that to what differs, with the same result', async () => {
    const reviewServed = (services: number): Promise<string> =>
      compare([80, 81].map((port) => serve(write(`served-${port}`, services, port))));
    // Of fewer that are asked, fewer are unknown.
    const packets = (text: string): string => text.slice(text.indexOf('Packets')).replace(/^.* unknown on .*\n/m, '');
    const text = packets(await reviewServed(401));
    expect(text).toContain('delivered → ');
    expect(text).toBe(packets(await reviewServed(399)));
  });

  test.runIf(triesAll)(
    'are compared of many that are alike, but not where many differ and none is like another',
    async () => {
      const few = write('few', 1, 80);
      expect(await compare([few, write('many', 402, 80)])).not.toContain(tooMany);
      expect(await compare([few, write('unlike', 800, 80, {}, true)])).toContain(tooMany);
    },
  );
});
