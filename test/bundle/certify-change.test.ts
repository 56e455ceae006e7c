import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { certifyChange } from '../../src/bundle/certify-change.ts';
import { compile, fixtureBundle, forge, isGenuine, recompile, type Editable, type Files } from './forge.ts';

const names = ['quickstart', 'dual-stack'].flatMap((name) => [
  `${name}/expected-ipvs`,
  `${name}/expected-iptables`,
  `${name}/expected-nftables`,
]);

/** The first Service port of a family that has endpoints elsewhere. */
function pickEndpoints(services: Editable, family = 'ipv4'): Editable[] {
  const port = services['servicePorts'].find(
    (each: Editable) =>
      each['family'] === family && each['endpoints'].some((one: Editable) => one['node'] !== 'worker-1'),
  );
  return port['endpoints'];
}

const another = (endpoint: Editable, address: string): Editable => ({ ...endpoint, address, node: 'elsewhere' });

const local = (endpoint: Editable, address: string): Editable => ({ ...endpoint, address, node: 'worker-1' });

const localChanges: Record<string, (services: Editable) => void> = {
  'another address on the node': (services) => {
    const endpoint = pickEndpoints(services).find(({ address }) => address === '10.244.78.2') ?? {};
    endpoint['address'] = '10.244.1.200';
  },
  'one less on the node': (services) => {
    const endpoints = pickEndpoints(services);
    endpoints.splice(
      endpoints.findIndex(({ address }) => address === '10.244.78.1'),
      1,
    );
  },
  'two more on the node': (services) => {
    const endpoints = pickEndpoints(services);
    const template = endpoints.at(-1) ?? {};
    endpoints.push(local(template, '10.244.78.9'), local(template, '10.244.1.201'));
  },
  'one on the node that sorts before all others': (services) => {
    const endpoints = pickEndpoints(services);
    endpoints.push(local(endpoints.at(-1) ?? {}, '10.0.0.9'));
  },
  'the first one, which becomes the last': (services) => {
    const [first = {}] = pickEndpoints(services);
    Object.assign(first, { address: '10.250.0.1', node: 'worker-1' });
  },
  'one that moves to the node': (services) => {
    const endpoint = pickEndpoints(services).find(({ address }) => address === '10.244.77.12') ?? {};
    endpoint['node'] = 'worker-1';
  },
};

describe.each(names)('%s', (name) => {
  const before = recompile(fixtureBundle(name), (services) => {
    const endpoints = pickEndpoints(services);
    const template = endpoints.at(-1) ?? {};
    for (let i = 0; i < 4; i++) endpoints.push(another(template, `10.244.77.${10 + i}`));
    for (let i = 0; i < 3; i++) endpoints.push(local(template, `10.244.78.${1 + i}`));
  });
  const changes: Record<string, (services: Editable) => void> = {
    'another address': (services) => {
      const endpoint = pickEndpoints(services).at(-1) ?? {};
      endpoint['address'] = '10.244.77.99';
    },
    'one less': (services) => void pickEndpoints(services).pop(),
    'one more': (services) => {
      const endpoints = pickEndpoints(services);
      endpoints.push(another(endpoints.at(-1) ?? {}, '10.244.77.99'));
    },
    'one in the middle that is not ready': (services) => {
      const endpoints = pickEndpoints(services);
      Object.assign(endpoints.at(-2) ?? {}, { ready: false, serving: false });
    },
  };

  if (name.endsWith('-ipvs')) Object.assign(changes, localChanges);

  test.each(Object.entries(changes))('%s: certified as it was compiled', (_, edit) => {
    const after = recompile(before, edit);
    const bundle = certifyChange(before, after, compile);
    expect(bundle?.files).toBe(after);
    expect(isGenuine(after)).toBe(true);
  });

  test('the same bundle again is certified', () => {
    expect(certifyChange(before, new Map(before), compile)).toBeDefined();
  });

  test.each<[string, (services: Editable) => void]>([
    [
      'a Service port more',
      (services) => services['servicePorts'].push({ ...services['servicePorts'][0], number: 81, port: 'x' }),
    ],
    ['another cluster IP', (services) => (services['servicePorts'][0].clusterIP = '10.96.99.99')],
    ['a Service port that goes', (services) => void services['servicePorts'].pop()],
  ])('%s is for the whole check', (_, edit) => {
    expect(certifyChange(before, recompile(before, edit), compile)).toBeUndefined();
  });

  test('a changed endpoint that no cluster has is not certified', () => {
    const after = recompile(before, (services) => {
      const endpoint = pickEndpoints(services).at(-1) ?? {};
      endpoint['address'] = '127.0.0.1';
    });
    expect(certifyChange(before, after, compile)).toBeUndefined();
  });

  test('what changes very many endpoints is for the whole check, which is quicker', () => {
    const many = (start: string) => (services: Editable) => {
      const endpoints = pickEndpoints(services);
      const template = endpoints.at(-1) ?? {};
      for (let i = 0; i < 60; i++) endpoints.push(local(template, `${start}.${i}`));
    };
    const known = recompile(before, many('10.244.79'));
    const after = recompile(before, many('10.244.80'));
    expect(certifyChange(known, after, compile)).toBeUndefined();
  });

  test('two Service ports that claim one address are not certified', () => {
    const twin = (services: Editable): void => {
      const [first] = services['servicePorts'];
      services['services'].push({ ...services['services'][0], name: 'zz-twin' });
      services['servicePorts'].push({
        ...first,
        service: 'zz-twin',
        endpoints: pickEndpoints(services).slice(0, 1),
      });
    };
    const known = recompile(before, twin);
    const after = recompile(known, (services) => {
      const [first] = services['servicePorts'];
      first.endpoints.push(another(first.endpoints[0] ?? {}, first.family === 'ipv4' ? '10.244.77.98' : 'fd00:77::98'));
    });
    expect(certifyChange(known, after, compile)).toBeUndefined();
  });

  test('an endpoint on the node that another Service port has as well is not certified', () => {
    const twin = (services: Editable): void => {
      const [first] = services['servicePorts'];
      const [service] = services['services'];
      const clusterIP = first.family === 'ipv4' ? '10.96.77.77' : 'fd00:96::7777';
      const { nodePort: _, externalIPs: __, loadBalancerIPs: ___, sourceRanges: ____, ...bare } = first;
      services['services'].push({ ...service, name: 'zz-other', clusterIPs: [clusterIP] });
      services['servicePorts'].push({
        ...bare,
        service: 'zz-other',
        clusterIP,
        endpoints: pickEndpoints(services).filter(({ address }) => address === '10.244.78.2'),
      });
    };
    const known = recompile(before, twin);
    const after = recompile(known, localChanges['another address on the node'] ?? (() => {}));
    const certified = certifyChange(known, after, compile);
    expect(certified === undefined || !name.endsWith('-ipvs')).toBe(true);
    // Where it is said to have gone from the set, another Service port's entry has.
    const forged = forge(after, (changed) => {
      const sets = changed.get('ipset.restore');
      if (sets) changed.set('ipset.restore', sets.replace(/^add KUBE-LOOP-BACK 10\.244\.78\.2,.*\n/m, ''));
    });
    expect(certifyChange(known, forged, compile) === undefined || isGenuine(forged)).toBe(true);
  });

  /** A change of one line of one file. */
  const mutation = fc.record({
    file: fc.nat(),
    line: fc.nat(),
    other: fc.nat(),
    how: fc.constantFrom('drop', 'double', 'swap', 'move', 'copy from elsewhere', 'change a digit', 'change a letter'),
  });
  type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

  function mutate(files: Files, { file, line, other, how }: Mutation): Files {
    return forge(files, (changed) => {
      const all = [...changed.keys()].filter((each) => each !== 'manifest.json');
      const picked = all[file % all.length] ?? '';
      const lines = (changed.get(picked) ?? '').split('\n');
      const at = line % lines.length;
      const [text = ''] = lines.splice(at, 1);
      const place = other % (lines.length + 1);
      const digit = `${other % 10}`;
      if (how === 'double') lines.splice(at, 0, text, text);
      else if (how === 'swap') lines.splice(at + 1, 0, text);
      else if (how === 'move') lines.splice(place, 0, text);
      else if (how === 'copy from elsewhere') lines.splice(at, 0, text, lines[place] ?? '');
      else if (how === 'change a digit') lines.splice(at, 0, text.replace(/\d(?=\D*$)/, digit));
      else if (how === 'change a letter') lines.splice(at, 0, text.replace(/[A-Z]/, 'Q'));
      changed.set(picked, lines.join('\n'));
    });
  }

  test('what is certified is what the whole check finds nothing wrong with, whatever was forged', () => {
    const afters = [before, ...Object.values(changes).map((edit) => recompile(before, edit))];
    fc.assert(
      fc.property(fc.nat(), fc.array(mutation, { minLength: 1, maxLength: 2 }), (which, mutations) => {
        const after = mutations.reduce(mutate, afters[which % afters.length] ?? before);
        expect(certifyChange(before, after, compile) === undefined || isGenuine(after)).toBe(true);
      }),
      { numRuns: 600 },
    );
  });
});
