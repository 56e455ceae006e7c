import { expect, test } from 'vitest';
import { costInMegabytes } from '../support/cpu-time.ts';
import { diagnose, service } from './diagnose.ts';

const header = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\n';
const ports = 'ports: [{ port: 80 }]';
const object = `apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  clusterIP: 10.96.0.1\n  ${ports}\n`;

test('two objects without a line "---" between them are one fault, with what to do about it', () => {
  expect(diagnose(object + object.replace('web', 'api'))).toEqual([
    '8:1 error: a second object starts here without a "---" line before it: add that line [duplicate-key]',
  ]);
});

test('of other keys that come twice each is told', () => {
  expect(diagnose(`${object}metadata:\n  name: api\nspec: {}\n`)).toEqual([
    '8:1 error: this key is in the same mapping twice: keep one of them [duplicate-key]',
    '10:1 error: this key is in the same mapping twice: keep one of them [duplicate-key]',
  ]);
  expect(diagnose(service('clusterIP: 10.96.0.1', ports, 'clusterIP: 10.96.0.2'))).toEqual([
    '7:3 error: this key is in the same mapping twice: keep one of them [duplicate-key]',
  ]);
});

const plain = 'check the indentation and the space after each ":", and put a text with ": ", "#" or brackets in quotes';

test.each([
  ['in the indentation', object.replace('  clusterIP', '\u00a0 clusterIP'), '6:14', 'U+00A0'],
  ['behind the spaces of the indentation', object.replace('  clusterIP', ' \u2003clusterIP'), '6:14', 'U+2003'],
  ['after a colon', object.replace('IP: 10', 'IP:\u00a010'), '6:3', 'U+00A0'],
  ['after the dash of an item', 'kind: List\nitems:\n-\u3000a: 1\n  b: 2\n', '3:6', 'U+3000'],
])('a character that looks like a space is named: %s', (_, text, place, code) => {
  const [fault = '', ...others] = diagnose(text);
  expect(fault).toContain(`${place} error: not valid YAML: `);
  expect(fault).toContain(`: replace ${code}, which only looks like a space, with a normal space [bad-yaml]`);
  expect(others).toEqual([]);
});

test('such a character in a text that has nothing to do with the fault is not blamed', () => {
  const text = object.replace('  name: web\n', '  name: web\n  annotations: { note: "a\u00a0b" }\n');
  expect(diagnose(text)).toEqual([]);
  expect(diagnose(text.replace('clusterIP: 10.96.0.1', 'clusterIP 10.96.0.1'))).toEqual([
    `7:3 error: not valid YAML: implicit keys need to be on a single line: ${plain} [bad-yaml]`,
  ]);
});

test.each([
  ['a key without a space after its colon', 'spec:\n  clusterIP:10.96.0.1\n  type: NodePort\n', '5:3'],
  ['such a key behind another one', 'spec:\n  type: NodePort\n  clusterIP:10.96.0.1\n', '6:3'],
  ['such a key of an item', 'spec:\n  ports:\n  - port:80\n    name: http\n', '6:5'],
  ['such a key with a prefix', 'spec:\n  selector:\n    app.kubernetes.io/name:web\n    tier: a\n', '6:5'],
  ['a key without a colon', 'spec:\n  clusterIP 10.96.0.1\n  type: NodePort\n', '5:3'],
  ['an address of a page', 'spec:\n  type: NodePort\n  http://10.96.0.1\n', '6:3'],
  ['a key that is indented too deep', 'spec:\n  type: NodePort\n    clusterIP: 10.96.0.1\n', '5:9'],
  ['such a key below an item', 'spec:\n  ports:\n  - port: 80\n      name: http\n', '6:11'],
  ['such a key with Windows line ends', 'spec:\r\n  type: NodePort\r\n    clusterIP: 10.96.0.1\r\n', '5:9'],
  ['a key between two depths', 'spec:\n  type: NodePort\n clusterIP: 10.96.0.1\n', '6:1'],
  ['an item between two depths', 'spec:\n  ports:\n  - port: 80\n - port: 81\n', '7:1'],
  ['a second mapping on one line', 'spec:\n  selector: app: web\n', '5:13'],
])('what is not YAML has a place and advice: %s', (_, spec, place) => {
  const [fault = '', ...others] = diagnose(header + spec);
  expect(fault).toMatch(new RegExp(`^${place} error: not valid YAML: [a-z]`));
  expect(fault).toContain(`: ${plain} [bad-yaml]`);
  expect(others).toEqual([]);
});

test('a mapping of one key without that space is a text', () => {
  const missing = ': put a space after the ":" [bad-value]';
  expect(diagnose(service('clusterIP: 10.96.0.1', ports, 'selector:', '  app:web'))).toEqual([
    `8:5 error: selector cannot be "app:web"${missing}`,
  ]);
  expect(diagnose(service('clusterIP: 10.96.0.1', 'ports:', '- port:80'))).toEqual([
    `7:5 error: ports[0] cannot be "port:80"${missing}`,
  ]);
  expect(diagnose(service('clusterIP: 10.96.0.1', ports, 'selector: web'))).toEqual([
    '7:13 error: selector cannot be "web": write a mapping of strings [bad-value]',
  ]);
});

test('lines that are indented with characters that only look like spaces are keys of another name', () => {
  const text = object.replace(/^ {2}(clusterIP|ports)/gm, '\u00a0\u00a0$1');
  const warning = (name: string): string =>
    `warning: a Service has no field "\u00a0\u00a0${name}": Kubernetes ignores it: replace U+00A0, which only looks like a space, with a normal space [unknown-field]`;
  expect(diagnose(text)).toEqual([
    '5:1 error: the document has no spec: write one with ports [missing-field]',
    `6:1 ${warning('clusterIP')}`,
    `7:1 ${warning('ports')}`,
  ]);
});

test('a line of a million spaces is looked at once', async () => {
  const cost = await costInMegabytes(() => {
    const found = diagnose(`a: b\n${' '.repeat(1_000_000)}c: d\n`);
    expect(found).toEqual([expect.stringContaining('not valid YAML')]);
  });
  // It took hours where each space was a place to look back from.
  expect(cost).toBeLessThan(5);
});

/** A Service of this spec, and what is said of it, without what the release and the mode add. */
const ofSpec = (...lines: readonly string[]): readonly string[] =>
  diagnose(['apiVersion: v1', 'kind: Service', 'metadata: { name: web }', 'spec:', ...lines, ''].join('\n'));

test.each([
  [
    'a type in other capitals',
    ['  type: Nodeport', '  ports: [{ port: 80, nodePort: 30080 }]'],
    'type cannot be "Nodeport": write NodePort',
  ],
  [
    'a type with blanks',
    ["  type: ' NodePort '", '  ports: [{ port: 80, nodePort: 30080 }]'],
    'type cannot be " NodePort ": write NodePort',
  ],
  [
    'a type that lacks a letter',
    ['  type: ExternlName', '  externalName: a.example'],
    'type cannot be "ExternlName": write ExternalName',
  ],
  ['a type under another name', ['  typ: NodePort', '  ports: [{ port: 80, nodePort: 30080 }]'], 'did you mean type?'],
  [
    'a protocol in other letters',
    ['  clusterIP: 10.96.0.10', '  ports: [{ name: a, port: 53 }, { name: b, port: 53, protocol: udp }]'],
    'protocol cannot be "udp": write UDP',
  ],
  [
    'a protocol under another name',
    ['  clusterIP: 10.96.0.10', '  ports: [{ name: a, port: 53 }, { name: b, port: 53, protcol: UDP }]'],
    'did you mean protocol?',
  ],
  ['clusterIP in other capitals', ['  clusterIp: 10.96.0.10', '  ports: [{ port: 80 }]'], 'did you mean clusterIP?'],
  ['clusterIP beside spec', ['  ports: [{ port: 80 }]', 'clusterIP: 10.96.0.10'], 'did you mean spec.clusterIP?'],
  [
    'nodePort in other capitals',
    ['  clusterIP: 10.96.0.10', '  type: NodePort', '  ports: [{ port: 80, nodeport: 30080 }]'],
    'did you mean nodePort?',
  ],
  ['ports without their s', ['  clusterIP: 10.96.0.10', '  port: [{ port: 80 }]'], 'did you mean ports?'],
  ['a port in spec', ['  clusterIP: 10.96.0.10', '  port: 80'], 'did you mean spec.ports[].port?'],
  [
    'externalName in other capitals',
    ['  type: ExternalName', '  externalname: a.example'],
    'did you mean externalName?',
  ],
])('%s is one error', (_, lines, words) => {
  expect(ofSpec(...lines)).toEqual([expect.stringMatching(/^\d+:\d+ error: /)]);
  expect(ofSpec(...lines)[0]).toContain(words);
});

test('a field that no rule needs is a warning under another name', () => {
  const lines = ['  clusterIP: 10.96.0.10', '  selctor: { app: web }', '  ports: [{ port: 80 }]'];
  expect(ofSpec(...lines)).toEqual([expect.stringMatching(/^6:3 warning: .*did you mean selector\?/)]);
});
