import fc from 'fast-check';
import { expect, test } from 'vitest';
import { endOfQuoted } from '../../src/base/json/locate.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { splitWords } from '../../src/kernel/iptables/parse-rule.ts';
import { some, triesAll } from '../support/rounds.ts';

const signs = fc
  .array(fc.constantFrom('"', '\\', 'a', ' ', '\t', '\n', '\\"'), { maxLength: 12 })
  .map((each) => each.join(''));

test('ends where a regular expression ends', () => {
  fc.assert(
    fc.property(signs, (rest) => {
      const [quoted] = /^"(?:[^"\\]|\\[^])*"/.exec(`"${rest}`) ?? [];
      expect(endOfQuoted(`"${rest}`, 0)).toBe(quoted?.length);
    }),
  );
});

test('a rule is cut into words as by a regular expression', () => {
  fc.assert(
    fc.property(signs, (line) => {
      const words = line.match(/(?:[^ \t"]+|"[^"\\]*(?:\\[^][^"\\]*)*")+|"[^]*/g) ?? [];
      const isOpen = words.some((word) => /^"(?![^"\\]*(?:\\[^][^"\\]*)*")/.test(word));
      const unquoted = words.map((word) =>
        word.replace(/"((?:[^"\\]|\\[^])*)"/g, (_, quoted: string) => quoted.replace(/\\([^])/g, '$1')),
      );
      expect(splitWords(line)).toEqual(isOpen ? undefined : unquoted);
    }),
  );
});

const long = 'x'.repeat(20_000_000);
const klog = 'I1117 14:27:29.000000       1 server.go:72] "Using iptables proxy"\n';

const longTexts = [
  ['of a rule', `*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -m comment --comment "${long}" -j ACCEPT\nCOMMIT\n`],
  ['of a rule, open', `*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -m comment --comment "${long}\nCOMMIT\n`],
  ['of a log', `${klog}E1117 14:27:29.000000       1 x.go:1] "${long}" err="z"\n`],
  ['of a link', `[{"ifname":"lo","ifalias":"\u0001${long}","addr_info":[]}]`],
  ['of nft', `table ip kube-proxy {\n chain c {\n  ${long} accept\n }\n}\n`],
] as const;

test.each(some(longTexts))('a text in quotes may have any length: %s', (_, text) => {
  expect(readDump(new Map([['node.txt', text]])).files).not.toEqual([]);
});

test.runIf(triesAll)('a text in quotes may have any length: of a manifest', () => {
  const { diagnostics } = collectFiles([new TextFile('in.json', `{"a":"\u0001${long}"}`)]);
  expect(diagnostics.map(({ code }) => code)).toContain('bad-json');
});
