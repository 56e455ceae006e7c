import fc from 'fast-check';
import { describe as suite, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { readDocuments } from '../../src/input/documents/read-documents.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { costInMegabytes } from '../support/cpu-time.ts';
import { triesAll } from '../support/rounds.ts';
import { service } from './diagnose.ts';

const collect = (text: string, name = 'in.yaml'): ReturnType<typeof collectFiles> =>
  collectFiles([new TextFile(name, text)]);

const json = (name: string): unknown => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] },
});

const names = (text: string, file?: string): string[] =>
  collect(text, file).services.map(({ object }) => object.metadata.name);

const at = (text: string, name: string, path: readonly (string | number)[]): unknown => {
  const { line, column } = collect(text, name).services.at(-1)?.source.place(path).locate() ?? {};
  return `${line}:${column}`;
};

const clusterIPsOf = (...lines: string[]): unknown => {
  const { clusterIP, clusterIPs } = collect(service(...lines, 'ports: [{port: 80}]')).services[0]?.object.spec ?? {};
  return { clusterIP, clusterIPs };
};

suite('what holds the objects', () => {
  test('many YAML documents, with comments and ends', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => service('ports: [{port: 1}]').replace('web', name));
    expect(names(`# head\n---\n${a}...\n# between\n--- # a comment\n${b}---\n---\n${c}`)).toEqual(['a', 'b', 'c']);
  });

  test('a document that starts on the line of its marker', () => {
    expect(names(`--- ${JSON.stringify(json('a'))}\n--- ${JSON.stringify(json('b'))}\n`)).toEqual(['a', 'b']);
  });

  test('JSON objects one after the other, with and without blanks', () => {
    expect(
      names(`${JSON.stringify(json('a'))}${JSON.stringify(json('b'), null, 2)}\n\n${JSON.stringify(json('c'))}`),
    ).toEqual(['a', 'b', 'c']);
  });

  test("kubectl's List, typed lists whose items have no kind, and lists in lists", () => {
    const items = ['a', 'b'].map(json);
    const typed = items.map((item) => ({ ...(item as object), kind: undefined, apiVersion: undefined }));
    expect(names(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))).toEqual(['a', 'b']);
    expect(
      names(stringify({ apiVersion: 'v1', kind: 'ServiceList', items: JSON.parse(JSON.stringify(typed)) })),
    ).toEqual(['a', 'b']);
    const inner = { apiVersion: 'v1', kind: 'List', items };
    expect(names(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [inner] }))).toEqual(['a', 'b']);
  });

  test('other kinds are skipped and counted', () => {
    const { skipped, diagnostics } = collect(
      'apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n---\napiVersion: serving.knative.dev/v1\nkind: Service\n',
    );
    expect([...skipped]).toEqual([
      ['Deployment', 1],
      ['Pod', 2],
      ['Service of serving.knative.dev/v1', 1],
    ]);
    expect(diagnostics).toEqual([]);
  });
});

suite('defaults', () => {
  test('a Service with hardly anything', () => {
    const { object } = collect(service('ports: [{port: 80}]')).services[0] ?? {};
    expect(object).toEqual({
      metadata: { name: 'web', namespace: 'default', labels: {}, annotations: {} },
      spec: {
        type: 'ClusterIP',
        clusterIP: '',
        clusterIPs: [],
        ipFamilies: [],
        ipFamilyPolicy: undefined,
        externalName: undefined,
        externalIPs: [],
        ports: [{ name: '', protocol: 'TCP', port: 80, targetPort: 80, nodePort: 0 }],
        sessionAffinity: 'None',
        sessionAffinityTimeout: 10800,
        internalTrafficPolicy: 'Cluster',
        externalTrafficPolicy: 'Cluster',
        healthCheckNodePort: 0,
        loadBalancerSourceRanges: [],
        publishNotReadyAddresses: false,
        allocateLoadBalancerNodePorts: true,
        trafficDistribution: '',
      },
      ingress: [],
    });
  });

  test('null and empty texts are what is left out', () => {
    const text = service(
      'type: ""',
      'clusterIP: null',
      'externalIPs: ~',
      'sessionAffinity:',
      'ports: [{port: 80, protocol: "", name: null, nodePort: null}]',
    );
    expect(collect(text).services[0]?.object).toEqual(collect(service('ports: [{port: 80}]')).services[0]?.object);
  });

  test('clusterIP and clusterIPs from each other', () => {
    const one = { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1'] };
    expect(clusterIPsOf('clusterIP: 10.96.0.1')).toEqual(one);
    expect(clusterIPsOf('clusterIPs: [10.96.0.1]')).toEqual(one);
    expect(clusterIPsOf('clusterIP: None')).toEqual({ clusterIP: 'None', clusterIPs: ['None'] });
  });

  test('conditions of endpoints', () => {
    const { slices } = collect(
      'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\nendpoints:\n- addresses: [10.0.0.1]\n- {addresses: [10.0.0.2], conditions: {ready: false, terminating: true}}\nports: [{port: 0}, {port: 80, name: http}]\n',
    );
    expect(slices[0]?.object.endpoints).toMatchObject([
      { status: { ready: true, serving: true, terminating: false } },
      { status: { ready: false, serving: true, terminating: true } },
    ]);
    expect(slices[0]?.object.ports).toEqual([
      { name: '', protocol: 'TCP', port: undefined },
      { name: 'http', protocol: 'TCP', port: 80 },
    ]);
  });
});

test('JSON may nest as deeply as it likes where kpc does not look', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const text = JSON.stringify(json('web')).replace('"metadata":{', `"metadata":{"managedFields":${deep},`);
  expect(names(text, 'in.json')).toEqual(names(JSON.stringify(json('web')), 'in.json'));
  expect(at(text, 'in.json', ['metadata', 'name'])).toMatch(/^1:2000\d\d$/);
});

suite('positions', () => {
  test('of values, of fields that are not there, and through anchors and merge keys', () => {
    const text = `x: &ports [{port: 80}]\nbase: &base\n  clusterIP: 10.96.0.1\n${service('<<: *base', 'ports: *ports')}`;
    expect(at(text, 'in.yaml', ['spec', 'clusterIP'])).toBe('3:14');
    expect(at(text, 'in.yaml', ['spec', 'ports', 0, 'port'])).toBe('1:19');
    expect(at(text, 'in.yaml', ['spec', 'externalIPs', 3])).toBe('8:3');
    expect(at(text, 'in.yaml', [])).toBe('1:1');
  });

  test('in JSON', () => {
    const text = `\n${JSON.stringify(json('a'), null, 2)}\n${JSON.stringify(json('b"{['), null, 2).replace('b\\"{[', 'b')}`;
    expect(at(text, 'in.json', ['metadata', 'name'])).toBe('21:13');
    expect(at(text, 'in.json', ['spec', 'ports', 0, 'port'])).toBe('27:17');
    expect(at(text, 'in.json', ['spec', 'ports', 7])).toBe('25:14');
  });

  test('in a List as kubectl prints it', () => {
    const items = ['a', 'b'].map(json);
    const text = stringify(
      { apiVersion: 'v1', items, kind: 'List', metadata: { resourceVersion: '' } },
      { indentSeq: false },
    );
    expect(at(text, 'in.yaml', ['spec', 'ports', 0, 'port'])).toBe('18:13');
    expect(at(stringify({ apiVersion: 'v1', kind: 'List', items }), 'in.yaml', ['spec', 'clusterIP'])).toBe('17:18');
  });

  test('one bad item in a List of megabytes is found in no time', async () => {
    const items = Array.from({ length: triesAll ? 40_000 : 1500 }, (_, i) => json(`s${i}`));
    items.push({ ...(json('bad') as object), spec: { ports: [{ port: 70_000 }] } });
    for (const text of [
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 2),
      `apiVersion: v1\nkind: List\nitems:\n${items.map((item) => `- ${JSON.stringify(item)}\n`).join('')}`,
    ]) {
      const { diagnostics } = collect(text);
      const locate = () => diagnostics[0]?.place?.locate();
      expect(await costInMegabytes(locate)).toBeLessThan(6);
      const location = locate();
      expect(text.split('\n')[(location?.line ?? 0) - 1]?.slice((location?.column ?? 0) - 1)).toMatch(/^70000/);
    }
  });
});

suite('laws', () => {
  // The printer leaves "0B0" without quotes, which go-yaml reads as a number, as kubectl does.
  const plainText = fc.string().filter((each) => !/^[-+]?0[box]/i.test(each));
  const value = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, tie('scalar'), tie('list'), tie('map')),
    scalar: fc.oneof(
      plainText,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.constantFrom('yes', '010', '1:20', '{', '"', '-'),
    ),
    list: fc.array(tie('value'), { maxLength: 4 }),
    map: fc.dictionary(
      // The printer writes the key << without quotes, and so as a merge.
      plainText.filter((key) => key !== '__proto__' && key !== '<<'),
      tie('value'),
      { maxKeys: 4 },
    ),
  })).map;

  test('YAML and JSON of one value read alike, and every field is found at its value', () => {
    fc.assert(
      fc.property(value, (root) => {
        fc.pre(Object.keys(root as object).length > 0);
        const plain: unknown = JSON.parse(JSON.stringify(root));
        const texts = [JSON.stringify(plain), JSON.stringify(plain, null, 2), stringify(plain, { version: '1.1' })];
        for (const text of texts) {
          const [document, ...others] = readDocuments(new TextFile('in', text)).documents;
          expect(others).toEqual([]);
          expect(document?.value).toEqual(plain);
        }
        const file = new TextFile('in.json', JSON.stringify(plain, null, 1));
        const [document] = readDocuments(file).documents;
        for (const [path, expected] of leavesOf(plain)) {
          const { line, column } = document?.source.place(path).locate() ?? { line: 0, column: 0 };
          expect(file.lineAt(line).slice(column - 1)).toMatch(/^./);
          expect(
            file
              .lineAt(line)
              .slice(column - 1)
              .replace(/,$/, ''),
          ).toBe(JSON.stringify(expected));
        }
      }),
    );
  });
});

/** The paths of all scalars in a value. */
function leavesOf(value: unknown, path: readonly (string | number)[] = []): [readonly (string | number)[], unknown][] {
  if (typeof value !== 'object' || value === null) return [[path, value]];
  const isList = Array.isArray(value);
  return Object.entries(value).flatMap(([key, child]) => leavesOf(child, [...path, isList ? Number(key) : key]));
}
