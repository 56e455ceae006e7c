import { describe, expect, test } from 'vitest';
import { certifyChange } from '../../src/bundle/certify-change.ts';
import { checkBundle } from '../../src/bundle/check-bundle.ts';
import { compileState } from '../../src/compile/compile-node.ts';
import { fixtureBundle, forge, forgeWhole, type Files } from './forge.ts';

// In nftables mode the endpoints on the node are in one set, between those of other Service ports. What is certified must
// be what the whole check finds genuine.

const compile: Parameters<typeof certifyChange>[2] = (cluster, node, settings, families) =>
  compileState(cluster, node, settings, families, undefined);

type Editable = Record<string, any>; // eslint-disable-line
const name = 'dual-stack/expected-nftables';
const file = 'nftables.nft';

function isGenuine(files: Files): boolean {
  return checkBundle(files, compile).kind === 'good';
}

function recompile(files: Files, edit: (services: Editable) => void): Files {
  return forgeWhole(files, (changed) => {
    const services = JSON.parse(changed.get('services.json') ?? '') as Editable;
    edit(services);
    changed.set('services.json', JSON.stringify(services));
  });
}

/** Endpoints on the node. */
function addLocal(port: Editable, ...addresses: readonly string[]): void {
  for (const address of addresses) port['endpoints'].push({ ...port['endpoints'][0], address, node: 'worker-1' });
}

/** A second Service port, with endpoints before and after those of the first. */
const before = recompile(fixtureBundle(name), ({ services, servicePorts }) => {
  const [port] = servicePorts;
  addLocal(port, '10.244.7.10', '10.244.7.30');
  services.push({ ...services[0], name: 'zz-other', clusterIPs: ['10.96.88.88'] });
  const { nodePort, externalIPs, loadBalancerIPs, sourceRanges, ...rest } = port;
  const other = { ...rest, service: 'zz-other', clusterIP: '10.96.88.88', endpoints: [port.endpoints[0]] };
  addLocal(other, '10.244.7.1', '10.244.7.20', '10.244.7.30', '10.244.7.40');
  other.endpoints.shift();
  servicePorts.push(other);
});

const setLines = (files: Files) =>
  (files.get(file) ?? '').match(/^\t\t\t10\.244\.7\.\d+ \. .*$/gm)?.map((line) => line.trim().split(' ')[0]);

function move(from: string, to: string): (services: Editable) => void {
  return ({ servicePorts: [port] }) => {
    for (const endpoint of port.endpoints) if (endpoint.address === from) endpoint.address = to;
  };
}

test('the set holds the endpoints of both Service ports', () => {
  expect(setLines(before)).toEqual(['10.244.7.1', '10.244.7.10', '10.244.7.20', '10.244.7.30', '10.244.7.40']);
});

describe('an endpoint on the node', () => {
  test.each([
    ['to the front', '10.244.7.10', '10.244.6.1'],
    ['between others', '10.244.7.10', '10.244.7.25'],
    ['to the end', '10.244.7.10', '10.244.8.1'],
    ['by one', '10.244.7.10', '10.244.7.11'],
  ])('that moves %s is certified', (_, from, to) => {
    const after = recompile(before, move(from, to));
    expect(certifyChange(before, after, compile)?.files).toBe(after);
    expect(isGenuine(after)).toBe(true);
  });

  test.each([
    ['leaves an address that another Service port has too', '10.244.7.30', '10.244.7.35'],
    ['moves to an address that another Service port has', '10.244.7.10', '10.244.7.20'],
  ])('that %s is for the whole check', (_, from, to) => {
    const after = recompile(before, move(from, to));
    expect(certifyChange(before, after, compile)).toBeUndefined();
    expect(isGenuine(after)).toBe(true);
  });
});

function moveLine(text: string, line: string, target: string): string {
  const rest = text.replace(line, '');
  const at = rest.indexOf(target, rest.indexOf('set hairpin-connections {'));
  return at < 0 ? text : rest.slice(0, at) + line + rest.slice(at);
}

describe('a forged set is not certified', () => {
  const genuine = recompile(before, move('10.244.7.10', '10.244.7.25'));
  const line = '\t\t\t10.244.7.25 . 10.244.7.25 . tcp . 8443,\n';
  const forgeries: Record<string, (text: string) => string> = {
    'in another place': (text) => text.replace(line, '').replace('\t\t\t10.244.7.1 .', `${line}\t\t\t10.244.7.1 .`),
    twice: (text) => text.replace(line, line + line),
    'not at all': (text) => text.replace(line, ''),
    'not among the elements': (text) => text.replace(line, '').replace('\t\telements = {\n\t\t\t10.244', `${line}$&`),
    'before the comment of the set, of another Service port': (text) =>
      moveLine(text, '\t\t\t10.244.7.1 . 10.244.7.1 . tcp . 8443,\n', '\t\tcomment "service hairpin connections"\n'),
    'behind the list, of another Service port': (text) =>
      moveLine(text, '\t\t\t10.244.7.40 . 10.244.7.40 . tcp . 8443,\n', '\t}\n\n\tset nodeport-ips'),
    'of another port': (text) => text.replace(line, line.replace('8443', '8444')),
    'and not only its first half': (text) => text.replace(line, line.replace('. 10.244.7.25', '. 10.244.7.26')),
    'in another set': (text) =>
      text.replace(line, '').replace(/(set cluster-ips \{[\s\S]*?elements = \{\n)/, `$1${line}`),
  };

  test.each(Object.entries(forgeries))('%s', (_, edit) => {
    expect(genuine.get(file)).toContain(line);
    const forged = forge(genuine, (files) => void files.set(file, edit(files.get(file) ?? '')));
    expect(forged.get(file)).not.toBe(genuine.get(file));
    expect(certifyChange(before, forged, compile)).toBeUndefined();
    expect(isGenuine(forged)).toBe(false);
  });

  test('with the rule of the chain in the chain of another Service port', () => {
    const rules = (genuine.get(file) ?? '').match(/^\t\tmeta l4proto tcp dnat ip .*$/gm) ?? [];
    const [own = '', other = ''] = rules;
    const forged = forge(genuine, (files) => {
      const text = files.get(file) ?? '';
      files.set(file, text.replace(own, 'SWAP').replace(other, own).replace('SWAP', other));
    });
    expect(own).not.toBe(other);
    expect(certifyChange(before, forged, compile)).toBeUndefined();
  });
});
