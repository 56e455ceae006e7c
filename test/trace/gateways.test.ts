// Routes of the Gateway API. The cases are those of its conformance tests (kubernetes-sigs/gateway-api), restated.
import { describe, expect, test } from 'vitest';
import { sceneOfManifests } from '../support/manifest-scene.ts';
import { followIngress } from '../../src/ask/trace/ingress.ts';
import { ingressJson, ingressLines } from '../../src/say/ingress.ts';

const namespaces = ['infra', 'web', 'app'] as const;

const serviceOf = (namespace: string, name: string, number: number) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: {
    clusterIP: `10.96.0.${number}`,
    ports: [
      { name: 'tcp', port: 8080 },
      { name: 'udp', port: 8080, protocol: 'UDP' },
    ],
  },
});

const cluster: readonly object[] = [
  {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node1' },
    spec: { podCIDRs: ['10.1.1.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '192.168.0.1' }] },
  },
  ...namespaces.flatMap((name, i) => [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { role: name } } },
    ...[1, 2, 3].map((version) => serviceOf(name, `v${version}`, 10 * i + version)),
  ]),
];

const of = (kind: string, name: string, spec: object, namespace = 'infra', metadata = {}) => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind,
  metadata: { name, namespace, ...metadata },
  spec,
});

interface Listening {
  readonly name?: string;
  readonly hostname?: string;
  readonly port?: number;
  readonly protocol?: string;
  readonly allowedRoutes?: object;
}

const gateway = (name: string, listeners: readonly Listening[], namespace = 'infra') =>
  of(
    'Gateway',
    name,
    { listeners: listeners.map((each, i) => ({ name: `l${i + 1}`, port: 80, protocol: 'HTTP', ...each })) },
    namespace,
  );

const open = gateway('open', [{}]);

const to = (version: string, more = {}) => ({ name: version, port: 8080, ...more });
const rule = (version: string, ...matches: readonly object[]) => ({
  ...(matches.length > 0 && { matches }),
  backendRefs: [to(version)],
});
const prefix = (value: string) => ({ path: { type: 'PathPrefix', value } });
const exact = (value: string) => ({ path: { type: 'Exact', value } });

const route = (name: string, rules: readonly object[], more: object = {}, namespace = 'infra', kind = 'HTTPRoute') =>
  of(kind, name, { parentRefs: [{ name: 'open' }], ...more, rules }, namespace);

function followIn(objects: readonly object[], asked: string) {
  const scene = sceneOfManifests(
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...cluster, ...objects] }),
    'node1',
  );
  const question = { from: 'external', to: asked, protocol: undefined, inInterface: undefined, namespace: undefined };
  const way = followIngress(question, scene);
  if (way?.kind !== 'read') return undefined;
  const { problems = [], ...json } = ingressJson(way.value, scene);
  return { ...way.value, ...json, problems, lines: ingressLines(way.value) };
}

/** Where a request goes: "v1", or nowhere; with a question mark where that depends on more than its host and path. */
function goes(objects: readonly object[], asked: string): readonly string[] {
  const routes = followIn(objects, asked)?.routes ?? [];
  return routes.map(({ to: end, depends }) => `${end.replace('infra/', '').replace(':8080', '')}${depends ? '?' : ''}`);
}

describe('which rule of a route takes a request', () => {
  const ordered = route('order', [
    rule('v1', exact('/match')),
    rule('v2', exact('/match/exact')),
    rule('v3', exact('/match/exact/one')),
    rule('v3', prefix('/match/')),
    rule('v1', prefix('/match/prefix/')),
    rule('v2', prefix('/match/prefix/one')),
  ]);

  test.each([
    ['/match', ['v1']],
    ['/match/exact', ['v2']],
    ['/match/exact/one', ['v3']],
    ['/match/any', ['v3']],
    ['/match/prefix/any', ['v1']],
    ['/match/prefix/one/any', ['v2']],
    ['/matching', []],
    ['/', []],
  ])('the most exact path: %s', (path, expected) => {
    expect(goes([open, ordered], `http://example.com${path}`)).toEqual(expected);
  });

  const header = (value: string) => ({ headers: [{ name: 'version', value }] });

  test.each([
    ['/', ['v1?', 'v2?']],
    ['/v2', ['v2']],
    ['/v2/example', ['v2']],
    ['/v2example', ['v1?', 'v2?']],
  ])('headers, which a request may have: %s', (path, expected) => {
    const matching = route('matching', [
      rule('v1', prefix('/'), header('one')),
      rule('v2', prefix('/v2'), header('two')),
    ]);
    expect(goes([open, matching], `http://example.com${path}`)).toEqual(expected);
    const parts = [
      route('part1', [rule('v1', prefix('/'), header('one'))], { hostnames: ['example.com', 'example.net'] }),
      route('part2', [rule('v2', prefix('/v2'), header('two'))], { hostnames: ['example.com'] }),
    ];
    expect(goes([open, ...parts], `http://example.com${path}`)).toEqual(expected.length > 1 ? ['v1', 'v2?'] : expected);
    expect(goes([open, ...parts], `http://example.net${path}`)).toEqual(['v1']);
  });

  test('methods, which a request may have', () => {
    const methods = route('methods', [
      rule('v1', { method: 'POST' }),
      rule('v2', { method: 'GET' }),
      rule('v3', { ...prefix('/path'), method: 'GET' }),
    ]);
    expect(goes([open, methods], 'http://example.com/')).toEqual(['v1?', 'v2?']);
    expect(goes([open, methods], 'http://example.com/path')).toEqual(['v3?', 'v1?', 'v2?']);
  });

  test.each(['/', '/?animal=whale'])('a query, which kpc does not compare: %s', (path) => {
    const query = (value: string) => ({ queryParams: [{ name: 'animal', value }] });
    const queries = route('queries', [rule('v1', query('whale')), rule('v2', query('dolphin'))]);
    expect(goes([open, queries], `http://example.com${path}`)).toEqual(['v1?', 'v2?']);
    const words = followIn([open, queries], `http://example.com${path}`)?.lines.map(({ text }) => text);
    expect(words).toContain(
      'any host /, if it has the method, headers or query that the route requires, → one of infra/v1:8080 and infra/v2:8080',
    );
  });

  test('a pattern is up to the controller', () => {
    const patterns = route('patterns', [
      rule('v1', { path: { type: 'RegularExpression', value: '/a.*' } }),
      rule('v2', exact('/abc')),
    ]);
    expect(goes([open, patterns], 'http://example.com/abc')).toEqual(['v1?', 'v2']);
  });

  test('of equal routes the oldest, and then the first by name', () => {
    const at = (name: string, creationTimestamp?: string) =>
      of(
        'HTTPRoute',
        name,
        { parentRefs: [{ name: 'open' }], rules: [rule(name)] },
        'infra',
        creationTimestamp === undefined ? {} : { creationTimestamp },
      );
    expect(goes([open, at('v2'), at('v1')], 'http://example.com/')).toEqual(['v1']);
    const [older, newer] = [at('v2', '2024-01-01T00:00:00Z'), at('v1', '2025-01-01T00:00:00Z')];
    expect(goes([open, newer, older], 'http://example.com/')).toEqual(['v2']);
  });

  test('methods of gRPC', () => {
    const method = (service: string | undefined, name?: string) => ({ method: { service, method: name } });
    const grpc = route(
      'grpc',
      [rule('v1', method('echo.Echo', 'Echo')), rule('v2', method('echo.Echo')), rule('v3', method(undefined, 'Stop'))],
      {},
      'infra',
      'GRPCRoute',
    );
    const ends = ['echo.Echo/Echo', 'echo.Echo/Two', 'echo.Echo/Stop', 'echo.Other/Stop', 'echo.Other/Two'].map(
      (path) => goes([open, grpc], `http://example.com/${path}`),
    );
    expect(ends).toEqual([['v1'], ['v2'], ['v2'], ['v3'], []]);
  });
});

describe('which listener takes a request', () => {
  test.each([
    ['bar.com', ['v1']],
    ['foo.bar.com', ['v2']],
    ['baz.bar.com', ['v3']],
    ['multiple.prefixes.bar.com', ['v3']],
    ['multiple.prefixes.foo.com', ['v3']],
    ['foo.com', []],
    ['no.matching.host', []],
  ])('by its host: %s', (host, expected) => {
    const hosts = ['bar.com', 'foo.bar.com', '*.bar.com', '*.foo.com'];
    const listeners = gateway(
      'open',
      hosts.map((hostname) => ({ hostname })),
    );
    const at = (version: string, ...sections: readonly string[]) =>
      route(version, [rule(version)], { parentRefs: sections.map((sectionName) => ({ name: 'open', sectionName })) });
    const objects = [listeners, at('v1', 'l1'), at('v2', 'l2'), at('v3', 'l3', 'l4')];
    expect(goes(objects, `http://${host}/`)).toEqual(expected);
  });

  test.each([
    ['very.specific.com/s1', ['v1']],
    ['non.matching.com/s1', []],
    ['foo.nonmatchingwildcard.io/s1', []],
    ['foo.wildcard.io/s2', ['v2']],
    ['foo.bar.wildcard.io/s2', ['v2']],
    ['wildcard.io/s2', []],
    ['very.specific.com/s3', ['v3']],
    ['foo.specific.com/s3', []],
    ['foo.anotherwildcard.io/s4', ['v1']],
    ['foo.bar.anotherwildcard.io/s4', ['v1']],
    ['anotherwildcard.io/s4', []],
    ['specific.but.wrong.com/s5', []],
    ['wildcard.io/s5', []],
  ])('hosts of both listener and route: %s', (asked, expected) => {
    const listeners = gateway(
      'open',
      ['very.specific.com', '*.wildcard.io', '*.anotherwildcard.io'].map((hostname) => ({ hostname })),
    );
    const at = (path: string, version: string, ...hostnames: readonly string[]) =>
      route(path, [rule(version, prefix(`/${path}`))], { hostnames });
    const objects = [
      listeners,
      at('s1', 'v1', 'non.matching.com', '*.nonmatchingwildcard.io', 'very.specific.com'),
      at('s2', 'v2', 'non.matching.com', 'wildcard.io', 'foo.wildcard.io', 'bar.wildcard.io', 'foo.bar.wildcard.io'),
      at('s3', 'v3', 'non.matching.com', '*.specific.com'),
      at('s4', 'v1', '*.anotherwildcard.io'),
      at('s5', 'v2', 'specific.but.wrong.com', 'wildcard.io'),
    ];
    expect(goes(objects, `http://${asked}`)).toEqual(expected);
  });

  test.each([
    [['*.b.com'], ['a.b.com', 'c.org'], 'a.b.com'],
    [['a.b.com', '*.c.b.com'], ['*.b.com'], 'a.b.com, *.c.b.com'],
    [['*.b.com'], [], '*.b.com'],
    [['*.b.com', ''], [], ''],
  ])('shows the hosts that both have: %j and %j', (listening, hostnames, expected) => {
    const listeners = gateway(
      'open',
      listening.map((hostname) => (hostname === '' ? {} : { hostname })),
    );
    const way = followIn([listeners, route('r', [rule('v1')], { hostnames })], 'httproute/r');
    expect(way?.routes.map(({ host }) => host)).toEqual([expected]);
  });

  test.each([
    ['bar.com/empty', ['v1']],
    ['bar.com/example', []],
    ['bar.example.com/empty', []],
    ['bar.example.com/example', ['v2']],
    ['bar.foo.example.com/example', []],
    ['bar.foo.example.com/foo', ['v3']],
    ['abc.foo.example.com/foo', []],
    ['abc.foo.example.com/abc', ['v1']],
  ])('only the most exact listener: %s', (asked, expected) => {
    const hosts = ['', '*.example.com', '*.foo.example.com', 'abc.foo.example.com'];
    const listeners = gateway(
      'open',
      hosts.map((hostname) => (hostname === '' ? {} : { hostname })),
    );
    const at = (path: string, version: string, sectionName: string) =>
      route(path, [rule(version, prefix(`/${path}`))], { parentRefs: [{ name: 'open', sectionName }] });
    const objects = [
      listeners,
      at('empty', 'v1', 'l1'),
      at('example', 'v2', 'l2'),
      at('foo', 'v3', 'l3'),
      at('abc', 'v1', 'l4'),
    ];
    expect(goes(objects, `http://${asked}`)).toEqual(expected);
  });

  test('by its port, its protocol and the name that the route gives', () => {
    const listeners = gateway('open', [{}, { port: 8080 }, { port: 8090 }, { port: 443, protocol: 'HTTPS' }]);
    const at = (version: string, parent: object) =>
      route(version, [rule(version)], { parentRefs: [{ name: 'open', ...parent }] });
    const objects = [listeners, at('v1', { port: 80 }), at('v2', { port: 8080 }), at('v3', { port: 443 })];
    const [first, second, third] = ['http://a.b/', 'http://a.b:8080/', 'http://a.b:8090/'].map((asked) =>
      goes(objects, asked),
    );
    expect([first, second, third, goes(objects, 'https://a.b/')]).toEqual([['v1'], ['v2'], [], ['v3']]);
    for (const parent of [{ sectionName: 'none' }, { port: 81 }, { sectionName: 'l1', port: 8080 }]) {
      expect(goes([listeners, at('v1', parent)], 'http://a.b/')).toEqual([]);
    }
  });

  test('of which namespaces and kinds it takes routes', () => {
    const from = (namespaces_: object, kinds?: readonly object[]) =>
      gateway('open', [{ allowedRoutes: { namespaces: namespaces_, ...(kinds && { kinds }) } }]);
    const parentRefs = [{ name: 'open', namespace: 'infra' }];
    const backendRefs = [to('v1')];
    const foreign = of('HTTPRoute', 'foreign', { parentRefs, rules: [{ backendRefs }] }, 'web');
    const selector = { matchLabels: { role: 'web' } };
    expect(goes([from({ from: 'All' }), foreign], 'http://a.b/')).toEqual(['web/v1']);
    expect(goes([from({ from: 'Selector', selector }), foreign], 'http://a.b/')).toEqual(['web/v1']);
    expect(
      goes([from({ from: 'Selector', selector: { matchLabels: { role: 'app' } } }), foreign], 'http://a.b/'),
    ).toEqual([]);
    expect(goes([from({ from: 'Same' }), foreign], 'http://a.b/')).toEqual([]);
    expect(goes([from({ from: 'None' }), foreign], 'http://a.b/')).toEqual([]);
    expect(goes([from({ from: 'All' }, [{ kind: 'TLSRoute' }]), foreign], 'http://a.b/')).toEqual([]);
    const way = followIn([from({ from: 'Same' }), foreign], 'httproute/web/foreign');
    expect(way?.problems).toEqual([
      'Gateway infra/open, listener l1 does not accept it: it accepts no routes from namespace web',
    ]);
  });

  test('two Gateways, and an Ingress beside them', () => {
    const objects = [
      gateway('open', [{ hostname: 'a.example.com' }]),
      gateway('other', [{ hostname: 'b.example.com' }, { hostname: 'a.example.com', port: 443, protocol: 'HTTPS' }]),
      route('both', [rule('v1')], { parentRefs: [{ name: 'open' }, { name: 'other' }] }),
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'Ingress',
        metadata: { name: 'old', namespace: 'infra' },
        spec: {
          rules: [
            {
              host: 'a.example.com',
              http: { paths: [{ path: '/', backend: { service: { name: 'v2', port: { number: 8080 } } } }] },
            },
          ],
        },
      },
    ];
    const way = followIn(objects, 'https://a.example.com/');
    expect(way?.ingress).toBe('infra/old');
    expect(way?.routes.map(({ to: end, gateway: by }) => [end, by])).toEqual([
      ['infra/v2:8080', undefined],
      ['infra/v1:8080', 'infra/other'],
    ]);
    expect(way?.traces).toHaveLength(2);
  });

  test('a Gateway that the input lacks takes what the route names, and a Service as the parent nothing', () => {
    const way = followIn([route('alone', [rule('v1')], { hostnames: ['*.b'] })], 'https://a.b/');
    expect(way?.routes.map(({ to: end }) => end)).toEqual(['infra/v1:8080']);
    expect(way?.lines.map(({ text }) => text)).toContain(
      'assumed: Gateway infra/open, which the input lacks, accepts everything that names it',
    );
    const mesh = route('mesh', [rule('v1')], { parentRefs: [{ name: 'v1', kind: 'Service', group: '' }] });
    expect(followIn([mesh], 'http://a.b/')).toBeUndefined();
    expect(followIn([mesh], 'httproute/mesh')?.problems).toEqual(['no Gateway accepts it, because it names none']);
  });
});

describe('a request without http:// or https://', () => {
  const backend = (name: string) => ({ service: { name, port: { number: 8080 } } });
  const ingress = <T extends object>(spec: T) => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'old', namespace: 'infra' },
    spec,
  });
  const ofHost = ingress({
    defaultBackend: backend('v1'),
    rules: [{ host: '*.lan', http: { paths: [{ path: '/x', pathType: 'Prefix', backend: backend('v2') }] } }],
  });

  test.each([
    ['mq.lan/x', ['v2']],
    ['mq.lan', ['v1']],
    ['mq.lan/y', ['v1']],
    ['www.example.com', ['v1']],
    ['example.com/foo', ['v1']],
    ['example.com:80/', ['v1']],
    ['v1.infra/', []],
    ['10.96.0.1/x', []],
    // These may be names of the cluster.
    ['v1', []],
    ['v9.infra', []],
    ['v9.infra.svc', []],
    ['web-0.v1.infra.svc', []],
  ])('to %s goes to %j', (asked, ends) => {
    expect(goes([ofHost], asked)).toEqual(ends);
  });

  test.each(['example.com/foo', 'a.lan/y'])('says that nothing takes %s', (asked) => {
    const scene = sceneOfManifests(JSON.stringify(ingress({ rules: ofHost.spec.rules })), 'node1');
    const question = { from: 'external', to: asked, protocol: undefined, inInterface: undefined, namespace: undefined };
    expect(followIngress(question, scene)).toHaveProperty('diagnostic.code', 'not-found');
  });

  test('says why nothing takes a host that a route names', () => {
    const closed = gateway('open', [{}], 'web');
    const route9 = route('r', [rule('v1')], { hostnames: ['a.b'], parentRefs: [{ name: 'open', namespace: 'web' }] });
    expect(followIn([closed, route9], 'a.b/x')?.problems).toHaveLength(1);
    expect(followIn([closed, route9], 'c.d/x')).toBeUndefined();
  });
});

describe('the listeners of ListenerSets', () => {
  const listener = (name: string, more: Listening = {}) => ({
    name,
    port: 80,
    protocol: 'HTTP',
    hostname: `${name}.com`,
    allowedRoutes: { namespaces: { from: 'All' } },
    ...more,
  });
  const taking = (from: string | undefined, ...listeners: readonly object[]) => {
    const namespaces_ = { from, ...(from === 'Selector' && { selector: { matchLabels: { role: 'web' } } }) };
    return of('Gateway', 'open', {
      listeners,
      ...(from !== undefined && { allowedListeners: { namespaces: namespaces_ } }),
    });
  };
  const set = (name: string, listeners: readonly object[], namespace = 'infra', metadata = {}) =>
    of('ListenerSet', name, { parentRef: { name: 'open', namespace: 'infra' }, listeners }, namespace, metadata);
  const by = (version: string, ...parentRefs: readonly object[]) => route(version, [rule(version)], { parentRefs });
  const ofSet = (name: string, more: object = {}) => ({ kind: 'ListenerSet', name, ...more });

  test('take the routes that name the set, and the Gateway those that name the Gateway', () => {
    const objects = [
      taking('Same', listener('gw')),
      set('set', [listener('ls'), listener('other')]),
      by('v1', { name: 'open' }, ofSet('set')),
      by('v2', { name: 'open', sectionName: 'ls' }, ofSet('set', { sectionName: 'other' })),
    ];
    expect(goes(objects, 'http://gw.com/')).toEqual(['v1']);
    expect(goes(objects, 'http://ls.com/')).toEqual(['v1']);
    expect(goes([...objects.slice(0, 2), objects[3] as object], 'http://other.com/')).toEqual(['v2']);
    expect(goes([...objects.slice(0, 2), objects[3] as object], 'http://ls.com/')).toEqual([]);
    expect(followIn(objects, 'gateway/open')?.lines[1]?.text).toMatch(/infra\/v1:8080/);
    expect(followIn(objects, 'http://ls.com/')?.lines[0]?.text).toContain(
      'by Gateway infra/open, ListenerSet infra/set, listener ls ',
    );
  });

  test.each([
    [undefined, 'infra', []],
    ['None', 'infra', []],
    ['Same', 'infra', ['v1']],
    ['Same', 'web', []],
    ['All', 'web', ['v1']],
    ['Selector', 'web', ['v1']],
    ['Selector', 'app', []],
  ])('count if the Gateway allows %s, for a set of %s', (from, namespace, expected) => {
    const objects = [
      taking(from, listener('gw')),
      set('set', [listener('ls')], namespace),
      by('v1', ofSet('set', { namespace })),
    ];
    expect(goes(objects, 'http://ls.com/')).toEqual(expected);
    const why = `Gateway infra/open, ListenerSet ${namespace}/set, listener ls does not accept it: Gateway infra/open accepts no ListenerSets from namespace ${namespace}`;
    expect(followIn(objects, 'httproute/v1')?.problems).toEqual(expected.length === 0 ? [why] : []);
  });

  test.each([
    ['a host', {}],
    ['a protocol', { protocol: 'TCP' }],
  ])('in conflict about %s, lose to the Gateway and to older sets', (_, more) => {
    const [gw, one, two] = [listener('gw'), listener('one'), listener('two')];
    const clash = (each: object) => ({ ...each, ...more });
    const objects = [
      taking('Same', gw),
      set('late', [clash(gw), clash(one), two], 'infra', { creationTimestamp: '2025-01-02T00:00:00Z' }),
      set('early', [one], 'infra', { creationTimestamp: '2025-01-01T00:00:00Z' }),
      by('v1', { name: 'open' }),
      by('v2', ofSet('early')),
      by('v3', ofSet('late')),
    ];
    expect(['gw', 'one', 'two'].map((host) => goes(objects, `http://${host}.com/`))).toEqual([['v1'], ['v2'], ['v3']]);
  });

  test('that are not distinct in one Gateway are none of them taken', () => {
    const objects = [
      taking('Same', listener('gw'), { ...listener('gw'), name: 'again' }, listener('fine')),
      by('v1', { name: 'open' }),
    ];
    expect([goes(objects, 'http://gw.com/'), goes(objects, 'http://fine.com/')]).toEqual([[], ['v1']]);
  });

  test('need a Gateway that the set names', () => {
    const objects = [of('ListenerSet', 'set', { listeners: [listener('ls')] }), by('v1', ofSet('set'))];
    expect(() => goes(objects, 'http://ls.com/')).toThrow('spec has no parentRef');
  });

  test('of a set or a Gateway that the input lacks are assumed', () => {
    const way = followIn([set('set', [listener('ls')]), by('v1', ofSet('set'))], 'http://ls.com/');
    expect(way?.routes.map(({ to: end }) => end)).toEqual(['infra/v1:8080']);
    expect(way?.lines[1]?.text).toBe(
      'assumed: Gateway infra/open, which the input lacks, accepts everything that names it',
    );
    const alone = followIn([by('v1', ofSet('set'))], 'http://ls.com/');
    expect(alone?.lines[1]?.text).toBe(
      'assumed: ListenerSet infra/set, which the input lacks, accepts everything that names it',
    );
  });
});

describe('of two routes that exclude each other', () => {
  const at = (kind: string, version: string, created: string, more: object = {}) =>
    of(
      kind,
      version,
      { parentRefs: [{ name: 'open' }], rules: [rule(version)], ...more },
      'infra',
      created === '' ? {} : { creationTimestamp: created },
    );
  const [early, late] = ['2025-01-01T00:00:00Z', '2025-01-02T00:00:00Z'];

  test('a GRPCRoute and an HTTPRoute of one host: the older, or the first by name', () => {
    const both = (one: string, other: string, more?: object) => [
      open,
      at('HTTPRoute', 'v1', one, { hostnames: ['*.b'] }),
      at('GRPCRoute', 'v2', other, more),
    ];
    expect(goes(both(early, late), 'http://a.b/x.Y/Z')).toEqual(['v1']);
    expect(goes(both(late, early), 'http://a.b/x.Y/Z')).toEqual(['v2']);
    expect(goes(both('', ''), 'http://a.b/x.Y/Z')).toEqual(['v1']);
    expect(goes(both(early, late, { hostnames: ['a.c'] }), 'http://a.c/x.Y/Z')).toEqual(['v2']);
    // The listener does not take the host that they share.
    const apart = [
      gateway('open', [{ hostname: '*.d' }]),
      at('HTTPRoute', 'v1', early, { hostnames: ['a.b', 'b.d'] }),
      at('GRPCRoute', 'v2', late, { hostnames: ['a.b', 'c.d'] }),
    ];
    expect(goes(apart, 'http://c.d/x.Y/Z')).toEqual(['v2']);
    expect(followIn(both(early, late), 'grpcroute/v2')?.problems).toEqual([
      'Gateway infra/open, listener l1 does not accept it: it accepts HTTPRoute infra/v1 instead, which is older or comes first by name',
    ]);
  });

  test('two TCPRoutes of one listener', () => {
    const tcp = gateway('open', [{ port: 8080, protocol: 'TCP' }]);
    const objects = [tcp, at('TCPRoute', 'v1', late), at('TCPRoute', 'v2', early)];
    expect(goes(objects, 'gateway/open')).toEqual(['v2']);
  });
});

test('namespaces whose labels the input lacks are assumed to be taken', () => {
  const listeners = gateway('open', [
    { allowedRoutes: { namespaces: { from: 'Selector', selector: { matchLabels: { role: 'x' } } } } },
  ]);
  const far = of('HTTPRoute', 'far', { parentRefs: [{ name: 'open', namespace: 'infra' }], rules: [{}] }, 'unknown');
  expect(followIn([listeners, far], 'http://a.b/')?.lines[1]?.text).toBe(
    'assumed: listener l1 accepts namespace unknown, whose labels the input lacks',
  );
});

describe('the backends of a rule', () => {
  const spec = {
    parentRefs: [{ name: 'open' }],
    rules: [{ backendRefs: [{ name: 'v1', namespace: 'web', port: 8080 }] }],
  };
  const grant = (from: object, end: object, namespace = 'web') =>
    of('ReferenceGrant', 'grant', { from: [from], to: [end] }, namespace);
  const from = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'infra' };
  const end = { group: '', kind: 'Service', name: 'v1' };

  test.each([
    ['of that Service', grant(from, end), true],
    ['of all Services', grant(from, { group: '', kind: 'Service' }), true],
    ['of another Service', grant(from, { ...end, name: 'v2' }), false],
    ['of another kind of object', grant(from, { ...end, kind: 'Secret' }), false],
    ['of another namespace', grant({ ...from, namespace: 'app' }, end), false],
    ['for another kind of route', grant({ ...from, kind: 'TCPRoute' }, end), false],
    ['in another namespace', grant(from, end, 'infra'), false],
  ])('another namespace, with a grant %s', (_, object, isGranted) => {
    const way = followIn([open, of('HTTPRoute', 'far', spec), object], 'http://a.b/');
    expect(way?.traces).toHaveLength(isGranted ? 1 : 0);
    expect(way?.problems).toHaveLength(isGranted ? 0 : 1);
  });

  test('weights, of which 0 gets nothing, and any other some requests', () => {
    const backendRefs = [to('v1', { weight: 70 }), to('v2', { weight: 30 }), to('v3', { weight: 0 })];
    const objects = [open, route('weights', [{ backendRefs }])];
    expect(goes(objects, 'http://a.b/')).toEqual(['v1?', 'v2?']);
    expect(followIn(objects, 'http://a.b/')?.traces).toHaveLength(2);
    const idle = [open, route('idle', [{ backendRefs: [to('v3', { weight: 0 })] }])];
    expect(goes(idle, 'http://a.b/')).toEqual(['an error, because no backend accepts requests']);
  });

  test('copies, redirects of one backend, and filters that may do anything', () => {
    const ends = (rule_: object) => goes([open, route('one', [rule_])], 'http://a.b/');
    const mirror = { type: 'RequestMirror', requestMirror: { backendRef: to('v2'), percent: 20 } };
    const backendRefs = [to('v1')];
    expect(ends({ backendRefs, filters: [mirror] })).toEqual(['v1', 'v2, a mirrored copy']);
    expect(ends({ backendRefs: [to('v1'), to('v3', { filters: [mirror] })] })).toEqual([
      'v1?',
      'v3?',
      'v2, a mirrored copy?',
    ]);
    expect(ends({ backendRefs: [to('v1', { filters: [{ type: 'RequestRedirect' }] })] })).toEqual(['a redirect']);
    expect(ends({ backendRefs, filters: [{ type: 'URLRewrite' }, { type: 'ExtensionRef' }] })).toEqual([
      'v1?',
      'the filter ExtensionRef, which kpc does not know?',
    ]);
  });

  test('a redirect, none at all, another kind, and one that is not there', () => {
    const end_ = (rule_: object) => goes([open, route('one', [rule_])], 'http://a.b/');
    expect(end_({ filters: [{ type: 'RequestRedirect' }] })).toEqual(['a redirect']);
    expect(end_({})).toEqual(['an error, because no backend accepts requests']);
    expect(end_({ backendRefs: [{ kind: 'Nonexistent', name: 'v1', port: 8080 }] })).toEqual([
      'something else than a Service',
    ]);
    const way = followIn([open, route('one', [rule('v9')])], 'http://a.b/');
    expect(way?.faults).toMatchObject([{ code: 'not-found', arguments: { problem: 'no-such', name: 'infra/v9' } }]);
    expect(way?.traces).toEqual([]);
  });
});

describe('routes of connections', () => {
  test('TLS by the name of the server, which has no path', () => {
    const listeners = gateway('open', [
      { hostname: '*.example.com', port: 443, protocol: 'TLS' },
      { hostname: 'web.example.com', port: 443, protocol: 'HTTPS' },
    ]);
    const objects = [
      listeners,
      route('tls', [rule('v1')], { hostnames: ['abc.example.com'] }, 'infra', 'TLSRoute'),
      route('web', [rule('v2')], {}),
    ];
    expect(goes(objects, 'https://abc.example.com/any')).toEqual(['v1']);
    expect(goes(objects, 'https://web.example.com/any')).toEqual(['v2']);
    expect(goes(objects, 'https://other.example.com/')).toEqual([]);
  });

  test('TCP and UDP, by the Gateway or by their names', () => {
    const listeners = gateway('open', [
      { port: 8080, protocol: 'TCP' },
      { port: 8080, protocol: 'UDP' },
    ]);
    const objects = [
      listeners,
      route('tcp', [rule('v1')], {}, 'infra', 'TCPRoute'),
      route('udp', [rule('v2')], {}, 'infra', 'UDPRoute'),
      route('http', [rule('v3')]),
    ];
    const way = followIn(objects, 'gateway/open');
    expect(way?.routes.map(({ to: at, route: by }) => [by, at])).toEqual([
      ['TCPRoute infra/tcp', 'infra/v1:8080'],
      ['UDPRoute infra/udp', 'infra/v2:8080'],
    ]);
    expect(way?.traces.map(({ target }) => target.protocol)).toEqual(['tcp', 'udp']);
    expect(followIn(objects, 'httproute/http')?.problems).toEqual([
      'Gateway infra/open, listener l1 does not accept it: its protocol is TCP',
      'Gateway infra/open, listener l2 does not accept it: its protocol is UDP',
    ]);
    expect(goes(objects, 'udproute/udp')).toEqual(['v2']);
  });
});
