import { expect, test } from 'vitest';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { loadTexts } from '../../src/snapshot/open/load-texts.ts';
import { openManifests } from '../../src/snapshot/open/stored-side.ts';

const nodes = ['a', 'b'].map((name) => `---\n{ apiVersion: v1, kind: Node, metadata: { name: ${name} } }\n`).join('');
const text = `{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }\n${nodes}`;
const options = { ipFamily: 'auto', allNodes: true, traffic: true } as const;

function open() {
  const manifests = { files: [new TextFile('in.yaml', text)], diagnostics: [] };
  const loaded = loadTexts({ manifests, config: undefined, hostAddresses: undefined }, options);
  const { at } = openManifests('in.yaml', loaded, options);
  return (node: string) => at(node).diagnostics.map(({ code }) => code);
}

test('what was said of one node is not said of the next, but again of the same one', () => {
  const at = open();
  const first = at('a');
  expect(first).toContain('default-mode');
  expect(at('b')).not.toContain('default-mode');
  expect(at('a')).toEqual(first);
});
