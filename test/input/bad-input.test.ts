import { mostOfCode } from '../../src/base/findings/finding.ts';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe as suite, expect, test } from 'vitest';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { readInputs } from '../support/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { rounds, triesAll } from '../support/rounds.ts';
import { describe, diagnose, service, tell } from './diagnose.ts';

/** What is wrong with a Service that has a cluster address and these lines of spec, which start at line 6. */
function wrongWith(lines: readonly string[]): string[] {
  return diagnose(service('clusterIP: 10.96.0.1', ...lines));
}

suite('what is not YAML', () => {
  test('prose with a colon too many', () => {
    expect(diagnose('kind: Service: yes\n')).toEqual([
      '1:7 error bad-yaml {"reason":"nested mappings are not allowed in compact mappings","lines":"kind: Service: yes"}',
    ]);
  });

  test('a tab for indentation', () => {
    expect(diagnose('kind: Service\nmetadata:\n\tname: web\n')).toEqual(['3:1 error yaml-tab {}']);
  });

  test('a key twice in one mapping', () => {
    expect(diagnose(`${service('type: NodePort', 'ports: []', 'type: ClusterIP')}`)).toEqual([
      '7:3 error duplicate-key {"times":2}',
    ]);
  });

  test('aliases that multiply without bound', () => {
    const levels = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh', 'hi']) {
      levels.push(`${to}: &${to} [${Array(9).fill(`*${from}`).join(', ')}]`);
    }
    expect(diagnose(`${levels.join('\n')}\n`)).toEqual(['4:20 error alias-bomb {"copies":3961,"values":4001}']);
  });

  test('an alias without its anchor', () => {
    expect(diagnose('kind: *nothing\n')).toEqual(['1:7 error bad-yaml {"odd":"unknown-alias"}']);
  });

  test('one bad document does not hide the others', () => {
    const text = `a: [\n---\n${service('clusterIP: 10.96.0.1', 'ports: [{port: 0}]')}`;
    expect(diagnose(text)).toEqual([
      expect.stringMatching(/^1:\d+ error not-closed /),
      expect.stringMatching(/^8:\d+ error bad-value /),
    ]);
  });

  test.each([
    ['lists that nest without end', '['.repeat(100_000), '1:1 error too-deep {}'],
    ['the same on one line', '- '.repeat(50_000), '1:1 error too-deep {}'],
    ['the same in JSON', '{"a":'.repeat(9_000), '1:1 error too-deep {}'],
    ['a mapping for a key', 'a:\n  ? {b: 1}\n  : 2\n', '2:3 error bad-yaml {"sign":"?"}'],
    ['a merge of no mapping', 'a: 1\n<<: 5\n', '2:1 error bad-yaml {"odd":"merge"}'],
  ])('%s', (_, text, message) => {
    expect(diagnose(text)).toEqual([message]);
  });

  test.each([
    [
      'a key that stands among very many others',
      `${Array.from({ length: rounds(40_000) }, (_, i) => `k${i}: 1\n`).join('')}k7: 2\n`,
      `${rounds(40_000) + 1}:1 error duplicate-key {"times":2}`,
    ],
    [
      'thousands of merges',
      `a: &a {x: 1}\n${Array.from({ length: rounds(4000, 4) }, (_, i) => `k${i}: {<<: *a}\n`).join('')}`,
      '1:1 error not-an-object {"problem":"missing","field":"kind"}',
    ],
    [
      'JSON whose strings hold brackets that close nothing',
      `{"a": ${'["]",'.repeat(20_000)}1`,
      '1:1 error too-deep {}',
    ],
  ])('%s, in no time', (_, text, message) => {
    expect(diagnose(text)).toEqual([message]);
  });

  test('JSON values that follow each other, up to the one that is broken', () => {
    const values = '{"kind": "Pod", "apiVersion": "v1"}\n'.repeat(20_000);
    expect(diagnose(`${values}{"kind": }\n{"kind": "Pod"}\n`)).toEqual([
      '20001:10 error bad-json {"reason":"value expected"}',
    ]);
  });

  test('JSON without a comma', () => {
    expect(diagnose('{\n  "kind": "Service"\n  "metadata": {}\n}\n', 'in.json')).toEqual([
      '3:3 error bad-json {"reason":"comma expected"}',
    ]);
  });
});

suite('what is no Kubernetes object', () => {
  test.each([
    ['a: 1\n', '1:1 error not-an-object {"problem":"missing","field":"kind"}'],
    ['kind: Service\n', '1:1 error not-an-object {"problem":"missing","field":"apiVersion"}'],
    ['just words\n', '1:1 error not-an-object {"problem":"no-mapping","found":{"type":"string","value":"just words"}}'],
    ['- kind: Service\n', '1:1 error not-an-object {"problem":"no-mapping","found":{"type":"list"}}'],
  ])('%j', (text, message) => {
    expect(diagnose(text)).toEqual([message]);
  });
});

suite('lists in lists', () => {
  const list = (depth: number): unknown => ({
    apiVersion: 'v1',
    kind: 'List',
    items: depth > 1 ? [list(depth - 1)] : [],
  });

  test('a few are read', () => {
    expect(diagnose(JSON.stringify(list(8)))).toEqual([]);
  });

  test('more than a cluster has are not', () => {
    const deep = `${'{"apiVersion":"v1","kind":"List","items":['.repeat(3000)}${']}'.repeat(3000)}`;
    expect(diagnose(deep)).toEqual(['1:337 error too-deep {}']);
  });
});

suite('Services', () => {
  test('names that would reach a terminal', () => {
    expect(diagnose(service('type: ExternalName', 'externalName: "a\\e[31m"'))).toEqual([
      '6:17 error bad-value {"field":"externalName","found":{"type":"string","value":"a\\u001b[31m"},"form":"subdomain"}',
    ]);
    expect(diagnose(service('type: ExternalName', 'externalName: db.example.com.'))).toEqual([]);
  });

  test('very many faults in one object', () => {
    const count = triesAll ? 200_000 : 20_000;
    const endpoints = Array.from({ length: count }, () => ({ addresses: ['10.0.0.300'] }));
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 's', labels: { 'kubernetes.io/service-name': 's' } },
      addressType: 'IPv4',
      endpoints,
    };
    const { diagnostics } = collectFiles([new TextFile('in.json', JSON.stringify(slice, undefined, 1))]);
    const rest = diagnostics.find(({ code }) => code === 'not-shown');
    expect(rest?.arguments).toEqual({ severity: 'error', count: count - mostOfCode, of: 'bad-value' });
    const made = diagnostics.filter((each) => each !== rest);
    expect(made).toHaveLength(mostOfCode);
    // Each endpoint has five lines; to find all of them must not take a scan each.
    const lines = made.map(({ place }) => place?.locate().line);
    const [first = 0] = lines;
    expect(lines.every((line, i) => line === first + 5 * i)).toBe(true);
    expect(JSON.stringify(slice, undefined, 1).split('\n')[first - 1]).toContain('10.0.0.300');
  });

  test('port 70000', () => {
    expect(wrongWith(['ports:', '- port: 70000'])).toEqual([
      '7:11 error bad-value {"field":"port","found":{"type":"number","value":70000},"types":["integer","null"],"expected":"a port is a number from 1 to 65535"}',
    ]);
  });

  test('a port in quotes', () => {
    expect(wrongWith(['ports:', '- port: "80"'])).toEqual([
      '7:11 error bad-value {"field":"port","found":{"type":"string","value":"80"},"types":["integer","null"],"expected":"a port is a number from 1 to 65535"}',
    ]);
  });

  test('no port', () => {
    expect(wrongWith(['ports:', '- name: http'])).toEqual([
      '7:5 error missing-field {"owner":"ports[0]","field":"port"}',
    ]);
  });

  test('protocol "tcp"', () => {
    expect(wrongWith(['ports:', '- {port: 80, protocol: tcp}'])).toEqual([
      '7:26 error bad-value {"field":"protocol","found":{"type":"string","value":"tcp"},"types":["string","null"],"expected":"TCP"}',
    ]);
  });

  test('a protocol that is none', () => {
    expect(wrongWith(['ports:', '- {port: 80, protocol: ICMP}'])).toEqual([
      '7:26 error bad-value {"field":"protocol","found":{"type":"string","value":"ICMP"},"types":["string","null"],"expected":"TCP, UDP or SCTP"}',
    ]);
  });

  test('a nodePort where the type has none', () => {
    expect(wrongWith(['ports: [{port: 80, nodePort: 30080}]'])).toEqual([
      '6:32 error bad-value {"field":"nodePort","found":{"type":"number","value":30080},"form":"node-port"}',
    ]);
  });

  test('ports that are there twice', () => {
    expect(wrongWith(['ports:', '- {name: a, port: 80}', '- {name: a, port: 81}', '- {name: b, port: 80}'])).toEqual([
      '8:12 error duplicate-port {"field":"name","value":"a","first":0}',
      '9:21 error duplicate-port {"field":"port","value":"80/TCP","first":0}',
    ]);
  });

  test('an address that is none, and one with a prefix length', () => {
    expect(wrongWith(['ports: [{port: 80}]', 'externalIPs: [10.0.0.256, 10.0.0.1/32]'])).toEqual([
      '7:17 error bad-value {"field":"externalIPs[0]","found":{"type":"string","value":"10.0.0.256"},"form":"address"}',
      '7:29 error bad-value {"field":"externalIPs[1]","found":{"type":"string","value":"10.0.0.1/32"},"form":"address"}',
    ]);
  });

  test('a source range that is an address', () => {
    expect(wrongWith(['ports: [{port: 80}]', 'loadBalancerSourceRanges: [" 10.0.0.0/8 ", 192.0.2.1]'])).toEqual([
      '7:46 error bad-value {"field":"loadBalancerSourceRanges[1]","found":{"type":"string","value":"192.0.2.1"},"form":"single-network","expected":"192.0.2.1/32"}',
    ]);
  });

  test('texts that YAML takes for something else', () => {
    expect(wrongWith(['ports:', '- name: on', '  port: 80'])).toEqual([
      '7:11 error bad-value {"field":"name","found":{"type":"boolean","value":true},"types":["string","null"],"expected":"a string"}',
    ]);
  });

  test('cluster addresses that contradict each other', () => {
    expect(
      diagnose(service('clusterIP: 10.96.0.1', 'clusterIPs: [fd00::1]', 'ipFamilies: [IPv4]', 'ports: [{port: 1}]')),
    ).toEqual([
      '6:16 error bad-value {"field":"clusterIPs[0]","found":{"type":"string","value":"fd00::1"},"form":"address-of-family","expected":"IPv4"}',
      '6:16 error bad-value {"field":"clusterIPs[0]","found":{"type":"string","value":"fd00::1"},"form":"same-cluster-ip","expected":"10.96.0.1"}',
    ]);
  });

  test('wrong shapes and wrong values are told in one run', () => {
    const text = `${service('clusterIP: nowhere', 'ports: [{port: 70000}]').replace('web', '"We\\"b"')}`;
    expect(diagnose(text)).toEqual([
      '3:18 error bad-value {"field":"name","found":{"type":"string","value":"We\\"b"},"form":"label"}',
      '5:14 error bad-value {"field":"clusterIP","found":{"type":"string","value":"nowhere"},"form":"address"}',
      '6:18 error bad-value {"field":"port","found":{"type":"number","value":70000},"types":["integer","null"],"expected":"a port is a number from 1 to 65535"}',
    ]);
  });

  test.each([
    ['a quote', `'a"b'`, '"a\\"b"'],
    ['a newline', '"a\\nb"', '"a\\nb"'],
    ['a hash', '"a#b"', '"a#b"'],
    ['a sign that turns text around', '"a\\u202eb"', '"a\\u202eb"'],
  ])('a name with %s', (_, written, shown) => {
    const text = service('clusterIP: 10.96.0.1', 'ports: [{port: 1}]').replace('web', written);
    expect(diagnose(text)).toEqual([
      expect.stringMatching(/^3:18 error bad-value \{"field":"name",.*"form":"label"\}$/),
    ]);
    expect(tell(text)).toEqual([expect.stringContaining(shown)]);
  });

  test('no name', () => {
    expect(
      diagnose('apiVersion: v1\nkind: Service\nmetadata: {generateName: web-}\nspec: {ports: [{port: 1}]}\n'),
    ).toEqual(['3:11 error missing-field {"owner":"metadata","field":"name","isGenerated":true}']);
  });

  test('the same Service twice', () => {
    const one = service('clusterIP: 10.96.0.1', 'ports: [{port: 1}]');
    expect(diagnose(`${one}---\n${one}`)).toEqual([
      '10:18 error duplicate-object {"kind":"Service","name":"default/web","first":{"file":"in.yaml","line":3}}',
    ]);
  });
});

suite('EndpointSlices', () => {
  const slice = (labels: string, ...lines: string[]): string =>
    `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: web-1\n${labels}${lines.join('\n')}\n`;
  const labels = '  labels: {kubernetes.io/service-name: web}\n';

  test('without the label of its Service: kube-proxy skips it', () => {
    expect(diagnose(slice('', 'addressType: IPv4'))).toEqual(['4:3 warning slice-without-service {}']);
  });

  test('an address of another family, a loopback address, and none', () => {
    const text = slice(
      labels,
      'addressType: IPv4',
      'endpoints:',
      '- addresses: [fd00::1]',
      '- addresses: [127.0.0.1]',
      '- addresses: []',
    );
    expect(diagnose(text)).toEqual([
      '8:15 error bad-value {"field":"addresses[0]","found":{"type":"string","value":"fd00::1"},"form":"address-of-family","expected":"IPv4"}',
      '9:15 error bad-value {"field":"addresses[0]","found":{"type":"string","value":"127.0.0.1"},"form":"address","use":"loopback"}',
      '10:14 error missing-field {"owner":"endpoints[2]","field":"addresses"}',
    ]);
  });

  test('an address with leading zeros is read, with a warning', () => {
    const text = slice(labels, 'addressType: IPv4', 'endpoints: [{addresses: [10.0.0.010]}]');
    expect(diagnose(text)).toEqual([
      '7:26 warning odd-address {"field":"addresses[0]","value":"10.0.0.010","address":"10.0.0.10","isRefused":true}',
    ]);
  });

  test('no addressType, and one that is none', () => {
    expect(diagnose(slice(labels, 'ports: []'))).toEqual([
      '1:1 error missing-field {"owner":"the document","field":"addressType"}',
    ]);
    expect(diagnose(slice(labels, 'addressType: ipv4'))).toEqual([
      '6:14 error bad-value {"field":"addressType","found":{"type":"string","value":"ipv4"},"types":["string","null"],"expected":"IPv4"}',
    ]);
  });
});

suite('files', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'kpc-input-'));
    mkdirSync(join(folder, 'sub', 'empty'), { recursive: true });
    const good = service('clusterIP: 10.96.0.1', 'ports: [{port: 1}]');
    writeFileSync(join(folder, 'sub', 'good.yml'), `\uFEFF${good.replaceAll('\n', '\r\n')}`);
    writeFileSync(join(folder, 'readme.txt'), 'not a manifest');
    writeFileSync(join(folder, 'empty.yaml'), '');
    writeFileSync(join(folder, 'comments.yaml'), '# nothing here\n---\n# nor here\n');
    writeFileSync(join(folder, 'binary.yaml'), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1]));
    writeFileSync(join(folder, 'latin1.yaml'), Buffer.from('name: caf\xe9\n', 'latin1'));
    writeFileSync(join(folder, 'utf16.json'), Buffer.from('\uFEFF{}', 'utf16le'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('a folder is read with all below it, and all that is wrong is said', () => {
    const { services, diagnostics, files } = readInputs([folder]);
    expect(services.map(({ object }) => object.metadata.name)).toEqual(['web']);
    const faults = diagnostics.map(({ code, place, arguments: details }) => [
      code,
      place?.file.slice(folder.length + 1),
      details,
    ]);
    expect(diagnostics[0]).toMatchObject({
      code: 'skipped-files',
      arguments: { files: ['comments.yaml', 'empty.yaml'].map((name) => join(folder, name)) },
    });
    expect(faults.slice(1)).toEqual([
      ['unreadable-file', 'binary.yaml', { problem: 'no-text', what: 'binary' }],
      ['unreadable-file', 'latin1.yaml', { problem: 'no-text', what: 'not UTF-8 text' }],
      ['unreadable-file', 'utf16.json', { problem: 'no-text', what: 'UTF-16' }],
      ['left-out', undefined, { problem: 'advice', files: 3, all: 6 }],
    ]);
    expect([...files.values()].map(({ name }) => name.slice(folder.length + 1))).toEqual([
      'comments.yaml',
      'empty.yaml',
      'sub/good.yml',
    ]);
  });

  test('a byte order mark and CRLF do not move positions', () => {
    const { services } = readInputs([join(folder, 'sub', 'good.yml')]);
    expect(services[0]?.source.place(['spec', 'clusterIP']).locate()).toMatchObject({ line: 5, column: 14 });
  });

  test('a file that does not exist, and a folder without manifests', () => {
    const { diagnostics } = readInputs([join(folder, 'nowhere.yaml'), join(folder, 'sub', 'empty')]);
    expect(describe(diagnostics)).toEqual([
      '1:1 error unreadable-file {"problem":"missing"}',
      '1:1 warning empty-file {"isFolder":true}',
    ]);
  });

  test('a file that is named twice is read once', () => {
    const { services, diagnostics } = readInputs([folder, join(folder, 'sub', '..', 'sub', 'good.yml')]);
    expect(services).toHaveLength(1);
    expect(diagnostics.filter(({ code }) => code === 'duplicate-object')).toEqual([]);
  });

  test('stdin', () => {
    const { services, diagnostics } = readInputs(['-'], { stdin: service('ports: [{port: 99999}]') });
    expect(services).toEqual([]);
    expect(diagnostics[0]?.place?.locate()).toEqual({ file: '-', line: 5, column: 18 });
  });
});

test('points at a label that is called like a number', () => {
  const text = service('clusterIP: 10.96.0.1', 'ports: [{port: 80}]', 'selector:', '  app: x', '  "08": 5');
  expect(diagnose(text)).toEqual([
    '9:11 error bad-value {"field":"08","found":{"type":"number","value":5},"types":["string","null"],"expected":"a string"}',
  ]);
});
