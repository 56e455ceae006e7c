import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatRule, type Chain } from '../../src/kernel/iptables/iptables.ts';
import { placeRules } from '../../src/kernel/iptables/place-rules.ts';
import { parseRule } from './parse-rule.ts';

/** A chain with a rule for each letter: capital letters are owned, and those from L on come last. */
function chainOf(letters: string): Chain {
  const whole = [...letters].flatMap((letter) => {
    const rule = parseRule(`-j ${letter}`);
    return rule ? { ...rule, ...(/[L-Z]/.test(letter) && { isLast: true as const }) } : [];
  });
  return { name: 'FORWARD', whole, rules: whole.filter((_, i) => /[A-Z]/.test(letters[i] ?? '')) };
}

const lettersOf = (rules: Chain['rules']): string => rules.map((rule) => formatRule(rule).slice(-1)).join('');

/** What iptables does with the changes: it deletes the first of equal rules. */
function carryOut(here: string, wanted: Chain): string {
  const { deleted, inserted } = placeRules(chainOf(here), wanted);
  const letters = [...here];
  for (const letter of lettersOf(deleted)) letters.splice(letters.indexOf(letter), 1);
  for (const { rule, position } of inserted) letters.splice(position - 1, 0, lettersOf([rule]));
  return letters.join('');
}

test.each([
  ['what goes back has its place between the rules of others', 'xy', 'xABy', 'xABy'],
  ['one that is lost comes before the next, and no other moves', 'xABD', 'ABCD', 'xABCD'],
  ['the last of all comes after the one before', 'xABy', 'ABC', 'xABCy'],
  ['of a chain without owned rules, all go to the head', 'xy', 'AB', 'ABxy'],
  ['a rule of others that is new stays above', 'nx', 'ABx', 'nABx'],
  ['a rule of others that has gone places nothing', 'y', 'xAy', 'Ay'],
  ['what others moved stays where they put it', 'xA', 'Ax', 'xA'],
  ['as few as possible move', 'xCAyB', 'ABC', 'xAyBC'],
  ['of two equal ones, the first goes', 'xAyAB', 'AB', 'xyAB'],
  ['what is not wanted goes', 'AxBy', 'x', 'xy'],
  ['what comes last goes behind the rules of others, and the rest to the head', 'xy', 'AL', 'AxyL'],
  ['behind what comes last, others may add theirs', 'AxLy', 'AL', 'AxLy'],
  ['nothing is placed by what comes last', 'xLy', 'AL', 'AxLy'],
  ['what comes last of all that was lost', 'Axy', 'ALM', 'AxyLM'],
])('%s', (_, here, wanted, result) => {
  expect(carryOut(here, chainOf(wanted))).toBe(result);
});

test('the wanted rules come in their order, rules of others keep theirs, and then there is nothing left to do', () => {
  const letters = fc.array(fc.constantFrom(...'ABCLMxyz'), { maxLength: 8 }).map((list) => list.join(''));
  const wanted = fc
    .tuple(fc.array(fc.constantFrom(...'ABCxyz'), { maxLength: 6 }), fc.constantFrom('', 'L', 'LM'))
    .map(([list, last]) => [...list, last].join(''));
  fc.assert(
    fc.property(letters, wanted, (here, to) => {
      const after = carryOut(here, chainOf(to));
      expect(after).toBe(lettersOf(placeRules(chainOf(here), chainOf(to)).whole));
      expect(after.replace(/[a-z]/g, '')).toBe(to.replace(/[a-z]/g, ''));
      expect(after.replace(/[A-Z]/g, '')).toBe(here.replace(/[A-Z]/g, ''));
      expect(carryOut(after, chainOf(to))).toBe(after);
      expect(placeRules(chainOf(after), chainOf(to))).toMatchObject({ deleted: [], inserted: [] });
    }),
    // The second of two equal rules moves, and iptables deletes the first.
    { examples: [['AxAB', 'ABA']] },
  );
});

test('owned rules that went come back to where they were', () => {
  const letters = fc.uniqueArray(fc.constantFrom(...'ABCDxyz')).map((list) => list.join(''));
  fc.assert(
    fc.property(letters, (before) => {
      expect(carryOut(before.replace(/[A-Z]/g, ''), chainOf(before))).toBe(before);
    }),
  );
});
