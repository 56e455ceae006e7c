import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { isBuiltInChain, tableNames } from '../../src/kernel/iptables/iptables.ts';
import { weighEvidence } from '../../src/kube-proxy/evidence.ts';
import { emptyState } from '../../src/kernel/state.ts';

const fixtures = join(import.meta.dirname, '../../fixtures');

test('every chain that kube-proxy makes is told from another program’s of its name by what is in it', () => {
  const evidence = weighEvidence(emptyState);
  let seen = 0;
  for (const entry of readdirSync(fixtures, { recursive: true, encoding: 'utf8' })) {
    if (!/\/expected[^/]*\/ip6?tables\.restore$/.test(entry)) continue;
    const { tables } = parseIptablesSave(readFileSync(join(fixtures, entry), 'utf8'));
    for (const table of tableNames) {
      for (const chain of tables[table]?.values() ?? []) {
        if (isBuiltInChain(table, chain.name)) continue;
        seen++;
        expect(evidence.chain(table, chain), `${entry}: ${table} ${chain.name}`).toBe('certain');
      }
    }
  }
  expect(seen).toBeGreaterThan(1000);
});
