import { expect, test } from 'vitest';
import { collectInputs } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { runKpc } from '../support/run-kpc.ts';
import { diagnose, service } from './diagnose.ts';

test('ports that are wrong, or that stand in a spec that is missing, are not told to be missing as well', () => {
  expect(diagnose(service('clusterIP: 10.96.0.1', 'ports: { port: 80 }'))).toEqual([
    '6:10 error: ports cannot be a mapping: write a list, each item after "- " [bad-value]',
  ]);
  expect(diagnose('apiVersion: v1\nkind: Service\nmetadata: { name: web }\n')).toEqual([
    '1:1 error: the document has no spec: write one with ports [missing-field]',
  ]);
  const programsNothing = 'warning: kube-proxy programs nothing for this Service, because it has no ports [no-ports]';
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
  const { stderr } = await runKpc(['compile', '-f', '-', '--print', 'ipvsadm'], { stdin });
  expect(stderr).toContain('duplicate Service default/web');
  expect(stderr).toContain('default/web matches no Pod in the input (app=web), so it has no endpoints');
  expect(stderr).not.toContain('2 Services');
});

test('a table of kubectl is no object, and it is said how to print objects', () => {
  const advice = ': print objects with kubectl get -o yaml';
  expect(
    diagnose('NAME   TYPE       CLUSTER-IP   PORT(S)        AGE\nweb    NodePort   10.96.0.10   80:30080/TCP   1d\n'),
  ).toEqual([expect.stringContaining(`${advice} [not-an-object]`)]);
  expect(diagnose('NAMESPACE   NAME   TYPE\nshop        web    NodePort\n')).toEqual([
    expect.stringContaining(`${advice} [not-an-object]`),
  ]);
  expect(diagnose('a text\n')).toEqual([expect.not.stringContaining(advice)]);
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
