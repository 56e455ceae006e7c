import { describe, expect, test } from 'vitest';
import { acceptCommand } from '../../src/cli/kpc/compile-command.ts';

describe('the command that accepts a change', () => {
  test.each([
    ['compile -f a --check golden', 'kpc compile -f a --golden golden'],
    ['compile --check=golden -f a --output=github -q', 'kpc compile --golden golden -f a'],
    ['compile --output markdown --check golden a --strict', 'kpc compile --golden golden a --strict'],
    // A kpc.yaml names the folder.
    ['compile a --quiet', 'kpc compile a --golden golden'],
    ['compile --check golden -- --check', 'kpc compile --golden golden -- --check'],
    ['compile -- a', 'kpc compile --golden golden -- a'],
  ])('%s', (words, accept) => {
    expect(acceptCommand(words.split(' '), 'golden', 'golden')).toBe(accept);
  });

  test('is one that a shell takes as it is', () => {
    expect(acceptCommand(['compile', 'a b', '--check', '$(id)'], '$(id)', 'bundle', ['--prune'])).toBe(
      "kpc compile 'a b' -o '$(id)' --prune",
    );
  });
});
