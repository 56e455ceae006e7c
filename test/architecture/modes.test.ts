import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { modeFacts, proxyModes } from '../../src/kube-proxy/modes.ts';
import { projectFolder } from '../support/run-kpc.ts';

const mode = `['"\`](?:${proxyModes.join('|')})['"\`]`;

/** Ways to write code in which another mode is silently taken for one of those that were thought of. */
const forbidden: readonly (readonly [what: string, pattern: RegExp])[] = [
  // A tool may be called like a mode.
  ['compares with a mode', new RegExp(`(?<!\\btool\\s*)(?<![!=])[!=]==?\\s*${mode}|${mode}\\s*[!=]==?`, 'g')],
  ['lists modes as a type', new RegExp(`${mode}\\s*\\|\\s*${mode}`, 'g')],
];

/** Where a text speaks of single modes in such a way. */
function findBreaches(file: string, text: string): readonly string[] {
  return forbidden.flatMap(([what, pattern]) =>
    [...text.matchAll(pattern)].map(
      (match) => `${file}:${text.slice(0, match.index).split('\n').length} ${what}: ${match[0]}`,
    ),
  );
}

describe('what differs between modes', () => {
  test('is in the table of modes, or in an exhaustive switch: nothing compares a mode with a name', () => {
    const source = join(projectFolder, 'src');
    const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    expect(files.length).toBeGreaterThan(100);
    expect(files.flatMap((file) => findBreaches(file, readFileSync(join(source, file), 'utf8')))).toEqual([]);
  });

  test.each([
    "const name = settings.mode === 'ipvs' ? a : b;",
    'if (mode !== "iptables") return [];',
    "if ('nftables' === mode) return;",
    "return mode ===\n  'ipvs';",
    "  mode: 'ipvs' | 'iptables',",
    "function f(): 'iptables' | 'ipvs' | undefined {",
  ])('the test finds %s', (line) => {
    expect(findBreaches('planted.ts', line)).toHaveLength(1);
  });

  test.each([
    "    case 'ipvs':",
    "  | { readonly kind: 'ipvs'; readonly address: string }",
    "['ipvs', ['xt_ipvs']],",
    "if (tool === 'iptables') return;",
  ])('the test passes %s', (line) => {
    expect(findBreaches('fine.ts', line)).toEqual([]);
  });

  test('a row names kinds that its mode has', () => {
    for (const name of proxyModes) {
      const { kinds, mainKind, serviceKinds } = modeFacts[name];
      expect(kinds).toContain(mainKind);
      for (const kind of serviceKinds) expect(kinds).toContain(kind);
    }
  });
});
