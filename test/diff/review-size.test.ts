import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { main } from '../../src/cli/kpc/main.ts';
import type { Terminal } from '../../src/cli/shared/terminal.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-review-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Manifests with so many Services, of which the first has that port. */
function write(name: string, services: number, port: number, node: object = {}): string {
  const objects = Array.from({ length: services }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `s${i}`, namespace: 'shop' },
    spec: {
      clusterIP: `10.96.${Math.trunc(i / 250)}.${(i % 250) + 1}`,
      ports: [{ port: i === 0 ? port : 80, ...node }],
      ...('nodePort' in node ? { type: 'NodePort' } : {}),
    },
  }));
  const file = join(scratch, `${name}.json`);
  writeFileSync(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
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

const tooMany = 'not compared, for there are many Services';

describe('the packets of a review', () => {
  test('are compared up to 400 Service ports', async () => {
    const text = await review(3);
    expect(text).toContain('Packets');
    expect(text).not.toContain(tooMany);
  });

  test('are not said to be the same where the input does not show it', async () => {
    const text = await compare([write('a', 1, 80, { nodePort: 30080 }), write('b', 1, 80, { nodePort: 30081 })]);
    expect(text).toMatch(/no packet is known to be treated differently; \d+ classes of packets are unknown/);
  });

  test('are not compared beyond that: each port may be reached in many ways', async () => {
    expect(await review(401)).toContain(tooMany);
  });
});
