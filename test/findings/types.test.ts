// The compiler takes a diagnostic only of a known code with the arguments of that code: `npx tsc --noEmit` judges this file.
import { expect, test } from 'vitest';
import { diagnose, type Finding } from '../../src/base/findings/finding.ts';

test('a code and its arguments make a finding', () => {
  expect(diagnose('missing-cluster-ip', { first: '10.96.0.1' })).toEqual({
    severity: 'warning',
    code: 'missing-cluster-ip',
    arguments: { first: '10.96.0.1' },
    place: undefined,
  });
});

test('what the compiler does not take', () => {
  const wrong: readonly (() => Finding)[] = [
    // @ts-expect-error there is no such code
    () => diagnose('bad-prot', {}),
    // @ts-expect-error the arguments are missing
    () => diagnose('missing-cluster-ip', {}),
    // @ts-expect-error an argument is of another type
    () => diagnose('missing-cluster-ip', { first: 10 }),
    // @ts-expect-error the code takes no such argument
    () => diagnose('missing-cluster-ip', { first: '10.96.0.1', second: '10.96.0.2' }),
    // @ts-expect-error the code takes no arguments
    () => diagnose('empty-file', { file: 'in.yaml' }),
    // @ts-expect-error a problem of another code
    () => diagnose('no-node', { problem: 'twice', nodes: 2 }),
    // @ts-expect-error a diagnostic without its arguments
    () => ({ severity: 'error', code: 'empty-file' }),
  ];
  expect(wrong).toHaveLength(7);
});

/** What a program does that reads codes. */
function holderOf(diagnostic: Finding): string | undefined {
  return diagnostic.code === 'address-conflict' ? diagnostic.arguments.holder : undefined;
}

test('the code tells the type of the arguments', () => {
  const details = { address: '10.96.0.1', port: 80, protocol: 'TCP', holder: 'shop/web:http', rival: 'shop/api:http' };
  expect(holderOf(diagnose('address-conflict', details))).toBe('shop/web:http');
  expect(holderOf(diagnose('empty-file', {}))).toBeUndefined();
});
