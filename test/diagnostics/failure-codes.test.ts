import { expect, test } from 'vitest';
import { failureFacts } from '../../src/base/failure-codes.ts';
import { failureExamples } from './failures.ts';

test('every code of kpc-apply is one that some fault makes', async () => {
  const examples = await failureExamples();
  expect(Object.keys(failureFacts).filter((code) => !examples.has(code))).toEqual([]);
  expect([...examples.keys()].filter((code) => !(code in failureFacts))).toEqual([]);
});
