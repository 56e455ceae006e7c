import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { whyNot } from '../../scripts/bench/small-change.mjs';

/** What a place says that was to be measured, and how it ends. */
const ending = (script: string, command = 'bash') => spawnSync(command, ['-c', script], { encoding: 'utf8' });

describe('why a place was not measured', () => {
  test('is the last that it said on standard error', () => {
    expect(whyNot(ending('echo figures; echo one >&2; echo "unshare failed" >&2; exit 1'))).toBe(
      'unshare failed (ended with status 1)',
    );
  });

  test('is the last that it printed, where a kernel of its own has one console for both', () => {
    expect(whyNot(ending('echo "floor 1 1 0"; echo "Destination already exists"; echo; exit 255'))).toBe(
      'Destination already exists (ended with status 255)',
    );
  });

  test('is how it ended, where it said nothing', () => {
    expect(whyNot(ending('exit 3'))).toBe('ended with status 3, and said nothing');
    expect(whyNot(ending('kill -KILL $$'))).toBe('ended by SIGKILL, and said nothing');
  });

  test('is that there is no such program', () => {
    expect(whyNot(ending('', '/no/such/program'))).toMatch(/ENOENT/);
  });
});
