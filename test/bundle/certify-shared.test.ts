import { describe, expect, test } from 'vitest';
import { certifyChange } from '../../src/bundle/certify-change.ts';
import { checkBundle } from '../../src/bundle/check-bundle.ts';
import { compileState } from '../../src/compile/compile-node.ts';
import { fixtureBundle, forge, forgeWhole, type Files } from './forge.ts';

// What a Service port has in common with others does not come of it alone: of that, no change is certified which those
// others have no part in.

const compile: Parameters<typeof certifyChange>[2] = (cluster, node, settings, families) =>
  compileState(cluster, node, settings, families, undefined);

type Editable = Record<string, any>; // eslint-disable-line

function isGenuine(files: Files): boolean {
  return checkBundle(files, compile).kind === 'good';
}

function recompile(files: Files, edit: (services: Editable, manifest: Editable) => void): Files {
  return forgeWhole(files, (changed) => {
    const services = JSON.parse(changed.get('services.json') ?? '') as Editable;
    edit(services, JSON.parse(changed.get('manifest.json') ?? '') as Editable);
    changed.set('services.json', JSON.stringify(services));
  });
}

/** Another Service with one port. */
function addService(services: Editable, name: string, settings: Editable): void {
  const [port] = services['servicePorts'];
  const { nodePort, externalIPs, loadBalancerIPs, sourceRanges, ...rest } = port;
  services['services'].push({ ...services['services'][0], name, clusterIPs: [settings['clusterIP']] });
  services['servicePorts'].push({ ...rest, service: name, ...settings });
}

const elsewhere = (address: string): Editable => ({ address, port: 8080, node: 'elsewhere' });

describe("IPVS: a node port and an external IP that is the node's own have one virtual server", () => {
  const endpoints = [elsewhere('10.244.9.1'), elsewhere('10.244.9.2')];
  const other = '10.244.9.3';
  const outer = { number: 31999, clusterIP: '10.96.88.1', endpoints };
  const inner = { nodePort: 31999, number: 80, clusterIP: '10.96.88.2', endpoints };

  test.each([
    ['of a Service port before it', 'aa-first', 'zz-last'],
    ['of a Service port after it', 'zz-last', 'aa-first'],
  ])('%s', (_, outerName, innerName) => {
    const known = recompile(fixtureBundle('quickstart/expected-ipvs'), (services, { node }) => {
      addService(services, outerName, { ...outer, externalIPs: [node.nodeIPs.ipv4] });
      addService(services, innerName, inner);
    });
    expect(isGenuine(known)).toBe(true);
    for (const [name, clusterIP] of [
      [outerName, outer.clusterIP],
      [innerName, inner.clusterIP],
    ] as const) {
      const after = recompile(known, ({ servicePorts }) => {
        for (const port of servicePorts) if (port.service === name) port.endpoints = [endpoints[0], elsewhere(other)];
      });
      // The virtual server that both claim changes, whichever of them has it.
      const changed = new RegExp(`^(-a -t (?:${clusterIP}|\\S+:31999)\\S* -r )10\\.244\\.9\\.2:`, 'gm');
      const forged = forge(after, (files) => {
        files.set('ipvsadm.restore', (known.get('ipvsadm.restore') ?? '').replace(changed, `$1${other}:`));
      });
      for (const files of [after, forged]) {
        expect(certifyChange(known, files, compile) === undefined || isGenuine(files)).toBe(true);
      }
    }
  });
});

describe('iptables: past 1000 endpoints kube-proxy comments no rule of any', () => {
  const endpointsOf = (count: number): Editable[] =>
    Array.from({ length: count }, (_, i) => elsewhere(`10.245.${i >> 8}.${i & 255}`));
  const withOwn = (count: number): Files =>
    recompile(fixtureBundle('quickstart/expected-iptables'), (services) => {
      services['servicePorts'] = [{ ...services['servicePorts'][0], endpoints: [] }];
      addService(services, 'zz-many', { number: 81, clusterIP: '10.96.88.1', endpoints: endpointsOf(990) });
      const own = Array.from({ length: count }, (_, i) => elsewhere(`10.246.0.${i + 1}`));
      addService(services, 'zz-few', { number: 82, clusterIP: '10.96.88.2', endpoints: own });
    });

  test.each([
    ['more than that', 10, 11],
    ['no more than that', 11, 10],
  ])('where a change leaves %s, the rules of all others change too', (_, before, now) => {
    const [known, after] = [withOwn(before), withOwn(now)];
    expect([isGenuine(known), isGenuine(after)]).toEqual([true, true]);
    expect(certifyChange(known, after, compile)).toBeUndefined();
    const file = 'iptables.restore';
    // The rules of the Service port that changed as they are, and those of the other as they were.
    const many = (files: Files): Map<string, string> =>
      new Map(
        (files.get(file) ?? '').split('\n').flatMap((line): [string, string][] => {
          const isOther = /zz-many|10\.245\./.test(line) || others.has(line.split(' ')[1] ?? '');
          return isOther ? [[line.replace(/ -m comment --comment (?:"[^"]*"|\S+)/, ''), line]] : [];
        }),
      );
    const others = new Set(
      [...(known.get(file) ?? '').matchAll(/^-A (KUBE-SEP-\S+) .*10\.245\..*$/gm)].map(([, chain = '']) => chain),
    );
    const old = many(known);
    const forged = forge(after, (files) => {
      const lines = (files.get(file) ?? '').split('\n');
      files.set(
        file,
        lines.map((line) => old.get(line.replace(/ -m comment --comment (?:"[^"]*"|\S+)/, '')) ?? line).join('\n'),
      );
    });
    expect(forged.get(file)).not.toBe(after.get(file));
    expect(isGenuine(forged)).toBe(false);
    expect(certifyChange(known, forged, compile)).toBeUndefined();
  });
});
