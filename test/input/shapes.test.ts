import { expect, test } from 'vitest';
import { findFaults } from '../../src/base/json/check.ts';
import { checks } from '../../src/input/objects/validate.ts';

test.each(Object.entries(checks))('%s: fields that every object has are not mistaken for its own', (_, check) => {
  const hostile = JSON.parse('{"__proto__": {"spec": 1}, "constructor": 1, "toString": 1}') as object;
  const faults = findFaults(check, hostile);
  const isClosed = findFaults(check, { neverHeardOf: 1 }).length > 0;
  expect(faults.map(({ problem, name }) => [problem, name])).toEqual(
    isClosed ? ['__proto__', 'constructor', 'toString'].map((name) => ['unknown', name]) : [],
  );
});
