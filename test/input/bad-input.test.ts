import { inOneLine } from '../../src/say/words/words.ts';
import { mostOfCode } from '../../src/base/findings/finding.ts';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe as suite, expect, test } from 'vitest';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { readInputs } from '../support/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { rounds, triesAll } from '../support/rounds.ts';
import { describe, diagnose, service } from './diagnose.ts';

const nameShape =
  'write lower-case letters, digits and dashes, 63 characters at most, with a letter or digit at both ends';

/** What is wrong with a Service that has a cluster address and these lines of spec, which start at line 6. */
function wrongWith(lines: readonly string[]): string[] {
  return diagnose(service('clusterIP: 10.96.0.1', ...lines));
}

suite('what is not YAML', () => {
  test('prose with a colon too many', () => {
    expect(diagnose('kind: Service: yes\n')).toEqual([
      '1:7 error: not valid YAML: nested mappings are not allowed in compact mappings: check the indentation and the space after each ":", and put a text with ": ", "#" or brackets in quotes [bad-yaml]',
    ]);
  });

  test('a tab for indentation', () => {
    expect(diagnose('kind: Service\nmetadata:\n\tname: web\n')).toEqual([
      '3:1 error: a tab is used for indentation: indent with spaces: YAML does not allow tabs [yaml-tab]',
    ]);
  });

  test('a key twice in one mapping', () => {
    expect(diagnose(`${service('type: NodePort', 'ports: []', 'type: ClusterIP')}`)).toEqual([
      '7:3 error: this key is in the same mapping twice: keep one of them [duplicate-key]',
    ]);
  });

  test('aliases that multiply without bound', () => {
    const levels = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (const [from, to] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg', 'gh', 'hi']) {
      levels.push(`${to}: &${to} [${Array(9).fill(`*${from}`).join(', ')}]`);
    }
    expect(diagnose(`${levels.join('\n')}\n`)).toEqual([
      '4:20 error: 3,961 of the 4,001 values read so far come from aliases: replace the aliases with their values [alias-bomb]',
    ]);
  });

  test('an alias without its anchor', () => {
    expect(diagnose('kind: *nothing\n')).toEqual([
      '1:7 error: not valid YAML: kubectl does not read an alias without its anchor before it as other programs do: write it in a simpler way, or remove it [bad-yaml]',
    ]);
  });

  test('one bad document does not hide the others', () => {
    const text = `a: [\n---\n${service('clusterIP: 10.96.0.1', 'ports: [{port: 0}]')}`;
    expect(diagnose(text).map((line) => line.replace(/:.*\[/, ' ['))).toEqual(['1 [not-closed]', '8 [bad-value]']);
  });

  test.each([
    [
      'lists that nest without end',
      '['.repeat(100_000),
      '1:1 error: lists and mappings nest too deeply: check the brackets and the indentation: Kubernetes objects nest about a dozen levels deep [too-deep]',
    ],
    [
      'the same on one line',
      '- '.repeat(50_000),
      '1:1 error: lists and mappings nest too deeply: check the brackets and the indentation: Kubernetes objects nest about a dozen levels deep [too-deep]',
    ],
    [
      'the same in JSON',
      '{"a":'.repeat(9_000),
      '1:1 error: lists and mappings nest too deeply: check the brackets and the indentation: Kubernetes objects nest about a dozen levels deep [too-deep]',
    ],
    [
      'a mapping for a key',
      'a:\n  ? {b: 1}\n  : 2\n',
      '2:3 error: not valid YAML: kubectl does not read text that begins with ? as other programs do: write it in a simpler way, or remove it [bad-yaml]',
    ],
    [
      'a merge of no mapping',
      'a: 1\n<<: 5\n',
      '2:1 error: not valid YAML: kubectl does not read "<<" with anything but mappings as other programs do: write it in a simpler way, or remove it [bad-yaml]',
    ],
  ])('%s', (_, text, message) => {
    expect(diagnose(text)).toEqual([message]);
  });

  test.each([
    [
      'a key that stands among very many others',
      `${Array.from({ length: rounds(40_000) }, (_, i) => `k${i}: 1\n`).join('')}k7: 2\n`,
      `${rounds(40_000) + 1}:1 error: this key is in the same mapping twice: keep one of them [duplicate-key]`,
    ],
    [
      'thousands of merges',
      `a: &a {x: 1}\n${Array.from({ length: rounds(4000, 4) }, (_, i) => `k${i}: {<<: *a}\n`).join('')}`,
      '1:1 error: this is not a Kubernetes object: it has no kind [not-an-object]',
    ],
    [
      'JSON whose strings hold brackets that close nothing',
      `{"a": ${'["]",'.repeat(20_000)}1`,
      '1:1 error: lists and mappings nest too deeply: check the brackets and the indentation: Kubernetes objects nest about a dozen levels deep [too-deep]',
    ],
  ])('%s, in no time', (_, text, message) => {
    expect(diagnose(text)).toEqual([message]);
  });

  test('JSON values that follow each other, up to the one that is broken', () => {
    const values = '{"kind": "Pod", "apiVersion": "v1"}\n'.repeat(20_000);
    expect(diagnose(`${values}{"kind": }\n{"kind": "Pod"}\n`)).toEqual([
      '20001:10 error: not valid JSON: value expected [bad-json]',
    ]);
  });

  test('JSON without a comma', () => {
    expect(diagnose('{\n  "kind": "Service"\n  "metadata": {}\n}\n', 'in.json')).toEqual([
      '3:3 error: not valid JSON: comma expected [bad-json]',
    ]);
  });
});

suite('what is no Kubernetes object', () => {
  test.each([
    ['a: 1\n', '1:1 error: this is not a Kubernetes object: it has no kind [not-an-object]'],
    ['kind: Service\n', '1:1 error: this is not a Kubernetes object: it has no apiVersion [not-an-object]'],
    [
      'just words\n',
      '1:1 error: a Kubernetes object is a mapping with apiVersion and kind, not "just words" [not-an-object]',
    ],
    [
      '- kind: Service\n',
      '1:1 error: a Kubernetes object is a mapping with apiVersion and kind, not a list: put the objects under "items" of an object of kind List [not-an-object]',
    ],
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
    const text =
      'lists and mappings nest too deeply: check the brackets and the indentation: Kubernetes objects nest about a dozen levels deep [too-deep]';
    const deep = `${'{"apiVersion":"v1","kind":"List","items":['.repeat(3000)}${']}'.repeat(3000)}`;
    expect(diagnose(deep)).toEqual([`1:337 error: ${text}`]);
  });
});

suite('Services', () => {
  test('names that would reach a terminal', () => {
    expect(diagnose(service('type: ExternalName', 'externalName: "a\\e[31m"'))).toEqual([
      `6:17 error: externalName cannot be "a\\u001b[31m": ${nameShape.replace('digits and dashes, 63', 'digits, dashes and dots, 253')} [bad-value]`,
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
      '7:11 error: port cannot be 70000: a port is a number from 1 to 65535 [bad-value]',
    ]);
  });

  test('a port in quotes', () => {
    expect(wrongWith(['ports:', '- port: "80"'])).toEqual([
      '7:11 error: port cannot be "80": write 80 without quotes [bad-value]',
    ]);
  });

  test('no port', () => {
    expect(wrongWith(['ports:', '- name: http'])).toEqual([
      '7:5 error: ports[0] has no port: write a number from 1 to 65535 [missing-field]',
    ]);
  });

  test('protocol "tcp"', () => {
    expect(wrongWith(['ports:', '- {port: 80, protocol: tcp}'])).toEqual([
      '7:26 error: protocol cannot be "tcp": write TCP [bad-value]',
    ]);
  });

  test('a protocol that is none', () => {
    expect(wrongWith(['ports:', '- {port: 80, protocol: ICMP}'])).toEqual([
      '7:26 error: protocol cannot be "ICMP": write TCP, UDP or SCTP [bad-value]',
    ]);
  });

  test('a nodePort where the type has none', () => {
    expect(wrongWith(['ports: [{port: 80, nodePort: 30080}]'])).toEqual([
      '6:32 error: nodePort cannot be 30080: write type: NodePort, or leave nodePort out [bad-value]',
    ]);
  });

  test('ports that are there twice', () => {
    expect(wrongWith(['ports:', '- {name: a, port: 80}', '- {name: a, port: 81}', '- {name: b, port: 80}'])).toEqual([
      '8:12 error: name a is already used by ports[0]: give each port its own name [duplicate-port]',
      '9:21 error: port 80/TCP is already used by ports[0]: give each port its own port [duplicate-port]',
    ]);
  });

  test('an address that is none, and one with a prefix length', () => {
    expect(wrongWith(['ports: [{port: 80}]', 'externalIPs: [10.0.0.256, 10.0.0.1/32]'])).toEqual([
      '7:17 error: externalIPs[0] cannot be "10.0.0.256": write an IP address such as 10.0.0.1 or fd00::1, without a prefix length [bad-value]',
      '7:29 error: externalIPs[1] cannot be "10.0.0.1/32": write an IP address such as 10.0.0.1 or fd00::1, without a prefix length [bad-value]',
    ]);
  });

  test('a source range that is an address', () => {
    expect(wrongWith(['ports: [{port: 80}]', 'loadBalancerSourceRanges: [" 10.0.0.0/8 ", 192.0.2.1]'])).toEqual([
      '7:46 error: loadBalancerSourceRanges[1] cannot be "192.0.2.1": write 192.0.2.1/32 for this one address [bad-value]',
    ]);
  });

  test('texts that YAML takes for something else', () => {
    expect(wrongWith(['ports:', '- name: on', '  port: 80'])).toEqual([
      '7:11 error: name is true, not a string: put it in quotes (YAML 1.1 reads yes, y and on as true; no, n and off as false) [bad-value]',
    ]);
  });

  test('cluster addresses that contradict each other', () => {
    expect(
      diagnose(service('clusterIP: 10.96.0.1', 'clusterIPs: [fd00::1]', 'ipFamilies: [IPv4]', 'ports: [{port: 1}]')),
    ).toEqual([
      '6:16 error: clusterIPs[0] cannot be "fd00::1": write an IPv4 address, the family that this object names [bad-value]',
      '6:16 error: clusterIPs[0] cannot be "fd00::1": write 10.96.0.1, as in clusterIP [bad-value]',
    ]);
  });

  test('wrong shapes and wrong values are told in one run', () => {
    const text = `${service('clusterIP: nowhere', 'ports: [{port: 70000}]').replace('web', '"We\\"b"')}`;
    expect(diagnose(text)).toEqual([
      `3:18 error: name cannot be "We\\"b": ${nameShape} [bad-value]`,
      '5:14 error: clusterIP cannot be "nowhere": write an IP address such as 10.0.0.1 or fd00::1, without a prefix length [bad-value]',
      '6:18 error: port cannot be 70000: a port is a number from 1 to 65535 [bad-value]',
    ]);
  });

  test.each([
    ['a quote', `'a"b'`, '"a\\"b"'],
    ['a newline', '"a\\nb"', '"a\\nb"'],
    ['a hash', '"a#b"', '"a#b"'],
    ['a sign that turns text around', '"a\\u202eb"', '"a\\u202eb"'],
  ])('a name with %s', (_, written, shown) => {
    const text = service('clusterIP: 10.96.0.1', 'ports: [{port: 1}]').replace('web', written);
    expect(diagnose(text)).toEqual([`3:18 error: name cannot be ${shown}: ${nameShape} [bad-value]`]);
  });

  test('no name', () => {
    expect(
      diagnose('apiVersion: v1\nkind: Service\nmetadata: {generateName: web-}\nspec: {ports: [{port: 1}]}\n'),
    ).toEqual([
      '3:11 error: metadata has no name: write one, or give the object as the cluster has it [missing-field]',
    ]);
  });

  test('the same Service twice', () => {
    const one = service('clusterIP: 10.96.0.1', 'ports: [{port: 1}]');
    expect(diagnose(`${one}---\n${one}`)).toEqual([
      '10:18 error: duplicate Service default/web, first defined at in.yaml:3: keep one of them [duplicate-object]',
    ]);
  });
});

suite('EndpointSlices', () => {
  const slice = (labels: string, ...lines: string[]): string =>
    `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: web-1\n${labels}${lines.join('\n')}\n`;
  const labels = '  labels: {kubernetes.io/service-name: web}\n';

  test('without the label of its Service: kube-proxy skips it', () => {
    expect(diagnose(slice('', 'addressType: IPv4'))).toEqual([
      '4:3 warning: kube-proxy skips this EndpointSlice: it has no label kubernetes.io/service-name: write the name of its Service as the label kubernetes.io/service-name [slice-without-service]',
    ]);
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
      '8:15 error: addresses[0] cannot be "fd00::1": write an IPv4 address, the family that this object names [bad-value]',
      '9:15 error: addresses[0] cannot be "127.0.0.1": it is a loopback address: write an IP address such as 10.0.0.1 or fd00::1, without a prefix length [bad-value]',
      '10:14 error: endpoints[2] has no addresses: write one, or leave the endpoint out [missing-field]',
    ]);
  });

  test('an address with leading zeros is read, with a warning', () => {
    const text = slice(labels, 'addressType: IPv4', 'endpoints: [{addresses: [10.0.0.010]}]');
    expect(diagnose(text)).toEqual([
      '7:26 warning: addresses[0] "10.0.0.010" is read as 10.0.0.10; API servers refuse it in new objects, by default from Kubernetes 1.36 on and always from 1.38 on: write this form, because other programs may read the address differently [odd-address]',
    ]);
  });

  test('no addressType, and one that is none', () => {
    expect(diagnose(slice(labels, 'ports: []'))).toEqual([
      '1:1 error: the document has no addressType: write IPv4, IPv6 or FQDN [missing-field]',
    ]);
    expect(diagnose(slice(labels, 'addressType: ipv4'))).toEqual([
      '6:14 error: addressType cannot be "ipv4": write IPv4 [bad-value]',
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
    const shown = diagnostics.map(
      (each) => `${each.place?.file.slice(folder.length + 1)}: ${inOneLine(each)} [${each.code}]`,
    );
    expect(diagnostics[0]).toMatchObject({
      code: 'skipped-files',
      arguments: { files: ['comments.yaml', 'empty.yaml'].map((name) => join(folder, name)) },
    });
    expect(shown.slice(1)).toEqual([
      'binary.yaml: the file is binary: name YAML or JSON in UTF-8 [unreadable-file]',
      'latin1.yaml: the file is not UTF-8 text: name YAML or JSON in UTF-8 [unreadable-file]',
      'utf16.json: the file is UTF-16: name YAML or JSON in UTF-8 [unreadable-file]',
      'undefined: 3 of 6 files have errors: use --skip-invalid to skip objects with errors [left-out]',
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
      '1:1 error: there is no such file or folder [unreadable-file]',
      '1:1 warning: the folder holds no files named *.yaml, *.yml or *.json, or all are excluded [empty-file]',
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
  expect(diagnose(text)).toEqual(['9:11 error: 08 is the number 5, not a string: put it in quotes [bad-value]']);
});
