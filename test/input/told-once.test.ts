import { expect, test } from 'vitest';
import { collectInputs } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { diagnose, service, tell } from './diagnose.ts';

test('ports that are wrong, or that stand in a spec that is missing, are not told to be missing as well', () => {
  expect(diagnose(service('clusterIP: 10.96.0.1', 'ports: { port: 80 }'))).toEqual([
    '6:10 error bad-value {"field":"ports","found":{"type":"mapping"},"types":["array","null"],"expected":"a list, each item after \\"- \\""}',
  ]);
  expect(diagnose('apiVersion: v1\nkind: Service\nmetadata: { name: web }\n')).toEqual([
    '1:1 error missing-field {"owner":"the document","field":"spec"}',
  ]);
  const programsNothing = 'warning no-ports {}';
  expect(diagnose(service('clusterIP: 10.96.0.1'))).toEqual([`5:3 ${programsNothing}`]);
  expect(diagnose(service('clusterIP: 10.96.0.1', 'ports: []'))).toEqual([`6:10 ${programsNothing}`]);
});

test('a Service that the input holds twice is named once among those that select no Pod', async () => {
  const web = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } };
  const spec = { clusterIP: '10.96.0.1', selector: { app: 'web' }, ports: [{ port: 80 }] };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'x', labels: { tier: 'db' } },
    status: { podIP: '10.244.1.5' },
  };
  const items = [{ ...web, spec }, { ...web, spec }, pod];
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const { stdout } = await runKpc(['compile', '-f', '-', '--output', 'json'], { stdin });
  expect(findingsOf(stdout, 'duplicate-object')).toMatchObject([
    { arguments: { kind: 'Service', name: 'default/web' } },
  ]);
  expect(findingsOf(stdout, 'selects-nothing').map((each) => each.arguments)).toEqual([
    { services: ['default/web'], selector: 'app=web', isOfCluster: true },
  ]);
});

test('a table of kubectl is no object, and it is said how to print objects', () => {
  const command = 'kubectl get -o yaml';
  for (const table of [
    'NAME   TYPE       CLUSTER-IP   PORT(S)        AGE\nweb    NodePort   10.96.0.10   80:30080/TCP   1d\n',
    'NAMESPACE   NAME   TYPE\nshop        web    NodePort\n',
  ]) {
    expect(diagnose(table)).toEqual([expect.stringMatching(/ not-an-object \{"problem":"no-mapping",/)]);
    expect(tell(table)).toEqual([expect.stringContaining(command)]);
  }
  expect(tell('a text\n')).toEqual([expect.not.stringContaining(command)]);
});

test('one object in many files is one finding; the same objects in two folders are another', () => {
  const manifest = (name: string) =>
    `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { clusterIP: 10.96.0.1, ports: [{ port: 80 }] }\n`;
  const texts = ['v1', 'v2', 'v3', 'v4'].map((folder) => new TextFile(`${folder}/a.yaml`, manifest('web')));
  const { diagnostics } = collectInputs({ files: texts, diagnostics: [], unreadable: [] });
  const duplicates = diagnostics.filter(({ code }) => code === 'duplicate-object');
  expect(duplicates.map((each) => each.arguments)).toEqual([
    expect.objectContaining({ name: 'default/web', files: 4, first: { file: 'v1/a.yaml', line: 3 } }),
  ]);
});
