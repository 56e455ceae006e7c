import { expect, test } from 'vitest';
import { costInMegabytes } from '../support/cpu-time.ts';
import { diagnose, service, tell } from './diagnose.ts';

const header = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\n';
const ports = 'ports: [{ port: 80 }]';
const object = `apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  clusterIP: 10.96.0.1\n  ${ports}\n`;

test('two objects without a line "---" between them are one fault, with what to do about it', () => {
  expect(diagnose(object + object.replace('web', 'api'))).toEqual(['8:1 error duplicate-key {"isTwoObjects":true}']);
});

test('of other keys that come twice each is told', () => {
  expect(diagnose(`${object}metadata:\n  name: api\nspec: {}\n`)).toEqual([
    '8:1 error duplicate-key {"times":2}',
    '10:1 error duplicate-key {"times":2}',
  ]);
  expect(diagnose(service('clusterIP: 10.96.0.1', ports, 'clusterIP: 10.96.0.2'))).toEqual([
    '7:3 error duplicate-key {"times":2}',
  ]);
});

test.each([
  ['in the indentation', object.replace('  clusterIP', '\u00a0 clusterIP'), '6:14', 'U+00A0'],
  ['behind the spaces of the indentation', object.replace('  clusterIP', ' \u2003clusterIP'), '6:14', 'U+2003'],
  ['after a colon', object.replace('IP: 10', 'IP:\u00a010'), '6:3', 'U+00A0'],
  ['after the dash of an item', 'kind: List\nitems:\n-\u3000a: 1\n  b: 2\n', '3:6', 'U+3000'],
])('a character that looks like a space is named: %s', (_, text, place, code) => {
  const [fault = '', ...others] = diagnose(text);
  expect(fault).toMatch(new RegExp(`^${place} error bad-yaml {"reason":"[a-z]`));
  expect(others).toEqual([]);
  expect(tell(text)).toEqual([expect.stringContaining(code)]);
});

test.each(['```yaml\n' + object, object + '```\n'])('the lines of Markdown around a pasted text are named', (text) => {
  expect(tell(text)).toEqual([expect.stringContaining('```')]);
});

test('such a character in a text that has nothing to do with the fault is not blamed', () => {
  const text = object.replace('  name: web\n', '  name: web\n  annotations: { note: "a\u00a0b" }\n');
  expect(diagnose(text)).toEqual([]);
  const broken = text.replace('clusterIP: 10.96.0.1', 'clusterIP 10.96.0.1');
  expect(diagnose(broken)).toEqual([
    expect.stringMatching(/^7:3 error bad-yaml \{"reason":"implicit keys need to be on a single line",/),
  ]);
  expect(tell(broken)).toEqual([expect.not.stringContaining('U+00A0')]);
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
])('what is not YAML has a place and a reason: %s', (_, spec, place) => {
  const [fault = '', ...others] = diagnose(header + spec);
  expect(fault).toMatch(new RegExp(`^${place} error bad-yaml {"reason":"[a-z]`));
  expect(others).toEqual([]);
});

test('a mapping of one key without that space is a text', () => {
  const wrong = (at: string, field: string, value: string): string =>
    `${at} error bad-value {"field":"${field}","found":{"type":"string","value":"${value}"},`;
  expect(diagnose(service('clusterIP: 10.96.0.1', ports, 'selector:', '  app:web'))).toEqual([
    expect.stringContaining(wrong('8:5', 'selector', 'app:web')),
  ]);
  expect(diagnose(service('clusterIP: 10.96.0.1', 'ports:', '- port:80'))).toEqual([
    expect.stringContaining(wrong('7:5', 'ports[0]', 'port:80')),
  ]);
  expect(diagnose(service('clusterIP: 10.96.0.1', ports, 'selector: web'))).toEqual([
    '7:13 error bad-value {"field":"selector","found":{"type":"string","value":"web"},"types":["object","null"],"expected":"a mapping of strings"}',
  ]);
});

test('lines that are indented with characters that only look like spaces are keys of another name', () => {
  const text = object.replace(/^ {2}(clusterIP|ports)/gm, '\u00a0\u00a0$1');
  const warning = (name: string): string =>
    `warning unknown-field {"owner":"a Service","name":"\u00a0\u00a0${name}","reader":"Kubernetes"}`;
  expect(diagnose(text)).toEqual([
    '5:1 error missing-field {"owner":"the document","field":"spec"}',
    `6:1 ${warning('clusterIP')}`,
    `7:1 ${warning('ports')}`,
  ]);
  expect(tell(text).slice(1)).toEqual(Array(2).fill(expect.stringContaining('U+00A0')));
});

test('a line of a million spaces is looked at once', async () => {
  const cost = await costInMegabytes(() => {
    const found = diagnose(`a: b\n${' '.repeat(1_000_000)}c: d\n`);
    expect(found).toEqual([expect.stringMatching(/^1:4 error bad-yaml /)]);
  });
  // It took hours where each space was a place to look back from.
  expect(cost).toBeLessThan(5);
});

/** A Service of this spec, and what is said of it, without what the release and the mode add. */
const ofSpec = (...lines: readonly string[]): readonly string[] =>
  diagnose(['apiVersion: v1', 'kind: Service', 'metadata: { name: web }', 'spec:', ...lines, ''].join('\n'));

/** An error about a field of no object, with the field that is meant. */
const meaning = (field: string): RegExp =>
  new RegExp(`^\\d+:\\d+ error unknown-field .*"meant":"${field.replaceAll(/[.[\]]/g, '\\$&')}","isNeeded":true}$`);

test.each([
  [
    'a type in other capitals',
    ['  type: Nodeport', '  ports: [{ port: 80, nodePort: 30080 }]'],
    /^\d+:\d+ error bad-value \{"field":"type","found":\{"type":"string","value":"Nodeport"\},.*"expected":"NodePort"\}$/,
  ],
  [
    'a type with blanks',
    ["  type: ' NodePort '", '  ports: [{ port: 80, nodePort: 30080 }]'],
    /^\d+:\d+ error bad-value \{"field":"type","found":\{"type":"string","value":" NodePort "\},.*"expected":"NodePort"\}$/,
  ],
  [
    'a type that lacks a letter',
    ['  type: ExternlName', '  externalName: a.example'],
    /^\d+:\d+ error bad-value \{"field":"type","found":\{"type":"string","value":"ExternlName"\},.*"expected":"ExternalName"\}$/,
  ],
  ['a type under another name', ['  typ: NodePort', '  ports: [{ port: 80, nodePort: 30080 }]'], meaning('type')],
  [
    'a protocol in other letters',
    ['  clusterIP: 10.96.0.10', '  ports: [{ name: a, port: 53 }, { name: b, port: 53, protocol: udp }]'],
    /^\d+:\d+ error bad-value \{"field":"protocol","found":\{"type":"string","value":"udp"\},.*"expected":"UDP"\}$/,
  ],
  [
    'a protocol under another name',
    ['  clusterIP: 10.96.0.10', '  ports: [{ name: a, port: 53 }, { name: b, port: 53, protcol: UDP }]'],
    meaning('protocol'),
  ],
  ['clusterIP in other capitals', ['  clusterIp: 10.96.0.10', '  ports: [{ port: 80 }]'], meaning('clusterIP')],
  ['clusterIP beside spec', ['  ports: [{ port: 80 }]', 'clusterIP: 10.96.0.10'], meaning('spec.clusterIP')],
  [
    'nodePort in other capitals',
    ['  clusterIP: 10.96.0.10', '  type: NodePort', '  ports: [{ port: 80, nodeport: 30080 }]'],
    meaning('nodePort'),
  ],
  ['ports without their s', ['  clusterIP: 10.96.0.10', '  port: [{ port: 80 }]'], meaning('ports')],
  ['a port in spec', ['  clusterIP: 10.96.0.10', '  port: 80'], meaning('spec.ports[].port')],
  ['externalName in other capitals', ['  type: ExternalName', '  externalname: a.example'], meaning('externalName')],
])('%s is one error', (_, lines, fault) => {
  expect(ofSpec(...lines)).toEqual([expect.stringMatching(fault)]);
});

test('a field that no rule needs is a warning under another name', () => {
  const lines = ['  clusterIP: 10.96.0.10', '  selctor: { app: web }', '  ports: [{ port: 80 }]'];
  expect(ofSpec(...lines)).toEqual([
    expect.stringMatching(/^6:3 warning unknown-field .*"name":"selctor",.*"meant":"selector"\}$/),
  ]);
});
