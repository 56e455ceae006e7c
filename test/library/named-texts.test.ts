import { expect, test } from 'vitest';
import { compile, open } from '../../src/library/index.ts';

const service = (name: string, ip: string) =>
  `{apiVersion: v1, kind: Service, metadata: {name: ${name}}, spec: {clusterIP: ${ip}, ports: [{port: 80}]}}`;
const one = { name: 'web.yaml', text: service('web', '10.96.0.1') };
const other = { name: 'web.yaml', text: service('shop', '10.96.0.2') };

test('two texts of one name are refused, as messages could not say which they mean', () => {
  expect(() => compile({ manifests: [one, other] })).toThrow(TypeError);
  expect(() => open([one, other])).toThrow(TypeError);
  const dump = (port: number) => ({ name: 'ipvsadm', text: `-A -t 10.96.0.1:${port} -s rr\n` });
  expect(() => open([dump(80), dump(81)])).toThrow(TypeError);
});

test('a text that is named twice counts once', () => {
  const { diagnostics, bundle } = compile({ manifests: [one, { ...one }] });
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(bundle?.manifest.counts).toMatchObject({ services: 1 });
});
