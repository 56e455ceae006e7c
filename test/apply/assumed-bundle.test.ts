import { expect, test } from 'vitest';
import { callApply } from './call-apply.ts';
import { createFakeNode } from './fake-node.ts';

test('doctor warns of a bundle whose endpoints are assumed', async () => {
  const { out } = await callApply(createFakeNode().host, 'doctor', 'fixtures/assumed-endpoints/expected-ipvs');
  expect(out).toContain(
    'the bundle sends connections to 3 endpoints that kpc assumed (--assume-endpoints), at addresses that no Pod has\n',
  );
  const real = await callApply(createFakeNode().host, 'doctor', 'fixtures/pods/expected-ipvs');
  expect(real.out).not.toContain('assumed');
});

test('plan and apply say so, too', async () => {
  const bundle = 'fixtures/assumed-endpoints/expected-ipvs';
  const { host } = createFakeNode();
  const words = 'the bundle sends connections to 3 endpoints that kpc assumed';
  expect((await callApply(host, 'plan', bundle)).out).toContain(words);
  expect((await callApply(host, 'apply', bundle)).err).toContain(words);
});
