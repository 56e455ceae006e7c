import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { splitOutputs } from '../../src/dumps/split-outputs.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { costInMegabytes } from '../support/cpu-time.ts';
import { makeRandom } from '../support/random.ts';
import { rounds, some, triesAll } from '../support/rounds.ts';
import { runKpc } from '../support/run-kpc.ts';
import { ipAddr, ipBrief, ipsetList, ipvsServers, ipvsTitles, natTable } from './pasted.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-hostile-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const all = [natTable, `${ipvsTitles}${ipvsServers}`, ipsetList, ipAddr, ipBrief, '[{"ifname":"lo","addr_info":[]}]\n'];

describe('a text of bad intent', () => {
  const many = triesAll ? 2_000_000 : 400_000;
  const texts: readonly (readonly [what: string, text: string])[] = [
    ['one line of blanks', `TCP ${' '.repeat(many)}x:80 rr\n`],
    ['one line of what mails begin with', `${'> '.repeat(many / 2)}x\n*nat\nCOMMIT\n`],
    ['one line of colons', `TCP ${'a:'.repeat(500_000)} rr\n`],
    ['one line of addresses', `a UP ${'1.1.1.1/8 '.repeat(300_000)}!\n`],
    ['arrays that never end', '[{"ifname":'.repeat(50_000)],
    ['arrays on many lines', '[{}\n'.repeat(100_000)],
    ['many tables', '*nat\nCOMMIT\n'.repeat(50_000)],
    ['many rules without a table, cut apart', '-A KUBE-SVC-A -j KUBE-SEP-B\nCOMMIT\n'.repeat(30_000)],
    ['many prompts', '$ iptables-save\n*nat\n'.repeat(30_000)],
    ['commands to a terminal', `*nat\n${'\u001b]'.repeat(500_000)}\nCOMMIT\n`],
    ['members of no set', `Name: a\nType: hash:ip\nMembers:\n${'"\n'.repeat(100_000)}`],
    ['a page of prose', `${'lorem ipsum '.repeat(100)}\n`.repeat(5000)],
  ];

  test.each(some(texts, 2))('is read in bounded time, with few words: %s', async (_, text) => {
    let words = 0;
    const cost = await costInMegabytes(() => {
      const { faults } = readDump(new Map([['pasted.txt', text]]));
      words = faults.length;
      return Promise.resolve();
    });
    expect(words).toBeLessThan(10);
    expect(cost).toBeLessThan(triesAll ? 20 : 5);
  });

  test('prints no command to a terminal, and no line of GitHub', async () => {
    const file = join(scratch, 'evil.txt');
    const evil = '\u001b[2J\u001b]0;x\u0007::error::x\u202e';
    writeFileSync(
      file,
      `*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -d ${evil}/32 -p tcp -m comment --comment "a/b cluster IP" --dport 1 -j KUBE-SVC-${evil}\nCOMMIT\n${evil}\nTCP 1.2.3.4:80 rr ${evil}\n`,
    );
    const run = await runKpc(['describe', file]);
    for (const control of ['\u001b', '\u0007', '\u202e']) expect(`${run.stdout}${run.stderr}`).not.toContain(control);
    expect(`${run.stdout}${run.stderr}`).not.toMatch(/^::/m);
  });

  test('never stops the reader, however texts are mixed and cut', () => {
    const random = makeRandom(7);
    for (let round = 0; round < rounds(300, 3); round++) {
      const pieces: string[] = [];
      for (let i = 0; i < 4; i++) {
        const text = all[Math.floor(random() * all.length)] ?? '';
        const from = Math.floor(random() * text.length);
        pieces.push(text.slice(from, from + Math.floor(random() * 400)));
      }
      const text = pieces.join(random() < 0.5 ? '\n' : '');
      const { outputs, strays } = splitOutputs(text);
      const lines = text.split('\n').length;
      const { faults } = readDump(new Map([['pasted.txt', text]]));
      const told = faults.flatMap(({ code, line = 0 }) => (code === 'unread-line' ? [line] : []));
      const numbers = [...outputs.map(({ firstLine }) => firstLine), ...strays, ...told];
      expect(numbers.filter((line) => line < 1 || line > lines)).toEqual([]);
    }
  });

  test('numbers its lines as the file does, whatever stands before them', () => {
    const text = `$ ip a\n${ipAddr}$ iptables-save\n${natTable.replace(':INPUT ACCEPT', 'INPUT ACCEPT')}`;
    const line = text.split('\n').findIndex((each) => each.startsWith('INPUT ACCEPT')) + 1;
    const { faults } = readDump(new Map([['pasted.txt', text]]));
    expect(faults).toMatchObject([{ code: 'unread-line', line }]);
  });
});
