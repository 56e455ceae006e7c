// What of nft's listing is not shown is not known: parts that were pasted alone, lines that were left out, an end that is cut off.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { open } from '../../src/library/index.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';
import { resultOf } from '../support/printed-json.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-nft-parts-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const folder = new URL('../../fixtures/dumps/kube-proxy-nftables-loadbalancer-source-ranges/', import.meta.url);
const ruleset = readFileSync(new URL('nft-ruleset', folder), 'utf8');
const [table = ''] = ruleset.split('table ip6');
const parts = new Map(
  [...table.matchAll(/^\t(?:set|map|chain) (\S+) \{.*?^\t\}\n/gms)].map(([part, name]) => [name, part]),
);

const serviceChain = 'service-ECO34HEO-default/nginx/tcp/';
const part = (name: string): string => parts.get(name) ?? '';
const without = (...names: readonly string[]): string =>
  names.reduce((text, name) => text.replace(part(name), ''), table);
/** As `nft list chain` and `nft list map` print it. */
const alone = (name: string): string => `table ip kube-proxy {\n${part(name)}}\n`;

function write(text: string): string {
  writeFolder(cwd, { 'node.txt': text });
  return 'node.txt';
}

interface Answer {
  readonly verdict: string;
  readonly reasons: readonly { readonly text: string }[];
  readonly otherwise?: { readonly verdict: string };
}

async function trace(text: string, to = '10.98.154.163:80'): Promise<Answer & { readonly stdout: string }> {
  const args = ['trace', '-q', write(text), '--from', '192.0.2.7', '--to', to];
  const [json, plain] = await Promise.all([runKpc([...args, '--output', 'json'], { cwd }), runKpc(args, { cwd })]);
  return { ...(resultOf(json.stdout).traces[0] as Answer), stdout: plain.stdout };
}

async function endpointsOf(text: string): Promise<unknown> {
  const run = await runKpc(['describe', '-q', 'default/nginx', '-f', write(text), '--output', 'json'], { cwd });
  const { servicePorts } = resultOf(run.stdout) as {
    readonly servicePorts: readonly { readonly endpoints?: readonly unknown[] }[];
  };
  return servicePorts[0]?.endpoints?.length;
}

async function diff(text: string): Promise<{ readonly stdout: string; readonly stderr: string }> {
  writeFolder(cwd, { 'whole.txt': ruleset });
  return runKpc(['diff', 'whole.txt', write(text)], { cwd });
}

test('a whole table has a firm answer', async () => {
  expect(await trace(table)).toMatchObject({ verdict: 'delivered' });
  expect(await endpointsOf(table)).toBe(3);
});

describe('lines that were left out', () => {
  const marks = [
    '...',
    '…',
    '....',
    '<snip>',
    '[truncated]',
    '(output omitted)',
    '--',
    '[...snip...]',
    '--More--',
    '. . .',
  ];

  test.each(marks)('%j in the place of the jump', async (mark) => {
    const answer = await trace(table.replace('\t\tjump services', `\t\t${mark}`));
    expect(answer).toMatchObject({ verdict: 'unknown', otherwise: { verdict: 'delivered' } });
    expect(answer.stdout).not.toContain('restart kube-proxy');
  });

  test.each(marks)('%j in the place of an element', async (mark) => {
    const text = table.replace(/10\.98\.154\.163 \. tcp[^}]*\}/, `${mark} }`);
    expect(text).not.toBe(table);
    const answer = await trace(text);
    expect(answer).toMatchObject({ verdict: 'unknown' });
    expect(answer.reasons.map((reason) => reason.text)).toContain('the dump lacks the set or map service-ips');
  });

  test.each(marks)('%j in the place of chains and maps', async (mark) => {
    expect(await trace(without(serviceChain).replace(part('services'), `\t${mark}\n`))).toMatchObject({
      verdict: 'unknown',
    });
  });

  test('`{ ... }` alone', async () => {
    const answer = await trace(table.replaceAll(/elements = \{[^}]*\}/g, 'elements = { ... }'));
    expect(answer).toMatchObject({ verdict: 'unknown' });
    expect(answer).not.toHaveProperty('otherwise');
  });

  test('of a chain of endpoints', async () => {
    expect(await endpointsOf(table.replace('meta l4proto tcp dnat', '...\n\t\tmeta l4proto tcp dnat'))).toBeUndefined();
  });

  test('of a table of another program', async () => {
    const other =
      'table ip firewall {\n\tchain in {\n\t\ttype filter hook prerouting priority raw; policy accept;\n\t\t...\n\t}\n}\n';
    expect(await trace(table + other)).toMatchObject({ verdict: 'unknown' });
  });

  test('between two tables', async () => {
    const six = ruleset.slice(table.length);
    expect(await trace(table + six)).toMatchObject({ verdict: 'delivered' });
    expect(await trace(`${table}...\n${six}`)).toMatchObject({ verdict: 'unknown' });
  });

  test('are no difference', async () => {
    const { stdout, stderr } = await diff(ruleset.replace('\t\tjump services', '\t\t...'));
    expect(stdout).not.toContain('nat-prerouting');
    expect(stderr).toContain('IPv4 nftables rules');
  });
});

test.each(['\0', '\r'])('%j is a fault of the input', (character) => {
  for (let at = table.indexOf('{'); at < table.length; at += 97) {
    const { snapshots } = open({ 'nft.txt': table.slice(0, at) + character + table.slice(at) });
    expect(() => snapshots.map(({ mode }) => mode)).not.toThrow();
  }
  const { diagnostics } = open({ 'nft.txt': table.replace('\t}\n', `\t}${character} \n`) });
  expect(diagnostics.map(({ code }) => code)).toContain('unread-line');
});

describe('parts of a table that were listed one by one', () => {
  const names = ['service-ips', 'services', serviceChain];

  test.each([names, names.toReversed()])('in any order', async (...order) => {
    const text = order.map(alone).join('');
    expect(await endpointsOf(text)).toBe(3);
    expect(await trace(text)).toMatchObject({ verdict: 'unknown', otherwise: { verdict: 'delivered' } });
  });

  test('all of them are the whole table', async () => {
    const text = [...parts.keys()].map((name) => alone(name ?? '')).join('');
    expect(await trace(text)).toMatchObject({ verdict: 'delivered' });
  });

  test('one that differs is of another time', async () => {
    const later = alone(serviceChain).replace('mod 3', 'mod 2').replace(', 2 : 10.244.3.4 . 80', '');
    const run = await runKpc(['describe', 'default/nginx', '-f', write(names.map(alone).join('') + later)], { cwd });
    expect(run.stderr).toContain('[second-listing]');
    expect(run.stdout).toContain('10.244.3.4:80');
  });
});

describe('a chain that is not shown', () => {
  test.each([alone('service-ips'), without(serviceChain), alone('service-ips') + alone('services')])(
    'has as many endpoints as nobody knows',
    async (text) => {
      expect(await endpointsOf(text)).toBeUndefined();
      const { verdict, stdout } = await trace(text);
      expect(verdict).toBe('unknown');
      expect(stdout).not.toMatch(/no ready endpoint|left to routing/);
      expect((await diff(text)).stdout).not.toContain('endpoint');
    },
  );

  test('without the set of its clients, the time of session affinity is not known', async () => {
    const file = new URL('../kube-proxy-nftables-affinity-external-policy-local/nft-ruleset', folder);
    const sticky = readFileSync(file, 'utf8');
    const shown = async (text: string) =>
      (await runKpc(['describe', '-q', write(text), '--output', 'json'], { cwd })).stdout;
    expect(await shown(sticky)).toContain('"affinitySeconds"');
    const bare = sticky.replaceAll(/^\tset affinity-.*?^\t\}\n/gms, '');
    expect(bare).not.toBe(sticky);
    expect(await shown(bare)).not.toContain('"affinitySeconds"');
  });

  test.each(['nat-postrouting', 'masquerading', 'filter-forward'])('%s leaves open what it does', async (name) => {
    expect(await trace(without(name))).toMatchObject({ verdict: 'unknown' });
  });
});

describe('a listing that is cut off', () => {
  const lines = table.split('\n');
  const upTo = (text: string): string =>
    lines
      .slice(
        0,
        lines.findIndex((line) => line.includes(text)),
      )
      .join('\n');

  test('is read as far as it goes', async () => {
    const text = `${upTo('chain external-')}\n`;
    expect(await endpointsOf(text)).toBe(3);
    expect(await trace(text)).toMatchObject({ verdict: 'unknown', otherwise: { verdict: 'delivered' } });
    const run = await runKpc(['describe', 'node.txt'], { cwd });
    expect(run.stderr).toContain('cut off');
    expect(run.stderr).not.toContain('ipvsadm');
  });

  test('compares nothing', async () => {
    expect((await diff(`${upTo('chain external-')}\n`)).stdout).not.toContain('nginx');
  });

  test.each([6, 30, 60])('%i characters before the end of a line: that line is not read', async (characters) => {
    const [text = ''] = table.split('2 : 10.244.3.4 . 80 }');
    expect(await endpointsOf(text.slice(0, -characters))).toBeUndefined();
  });

  test('at another table, or at the next command', async () => {
    const cut = `${upTo('chain external-')}\n`;
    const six = ruleset.slice(table.length);
    expect(await trace(cut + six)).toMatchObject({ verdict: 'unknown', otherwise: { verdict: 'delivered' } });
    const addresses = '1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536\n    inet 127.0.0.1/8 scope host lo\n';
    const run = await runKpc(['describe', 'default/nginx', '-f', write(`${cut}root@node1:~# ip addr\n${addresses}`)], {
      cwd,
    });
    expect(run.stdout).toContain('10.244.3.4:80');
  });
});

test('an element for all other keys is whole', async () => {
  const other =
    'table ip guard {\n\tmap ports {\n\t\ttype ipv4_addr . inet_service : verdict\n\t\telements = { 10.98.154.163 . 81 : drop, * : accept }\n\t}\n\tchain out {\n\t\ttype filter hook output priority filter; policy accept;\n\t\tip daddr . tcp dport vmap @ports\n\t}\n}\n';
  expect(await trace(table + other)).toMatchObject({ verdict: 'delivered' });
});

test('a table of iptables without all chains that packets enter is a part', async () => {
  const nat = `table ip nat {
\tchain KUBE-SERVICES {
\t\tip daddr 10.98.154.163 tcp dport 80 counter packets 0 bytes 0 jump KUBE-SEP-NLE525AFKKKJ7LLW
\t}

\tchain KUBE-SEP-NLE525AFKKKJ7LLW {
\t\tmeta l4proto tcp counter packets 0 bytes 0 dnat to 10.244.1.10:8080
\t}

${['PREROUTING', 'OUTPUT', 'POSTROUTING']
  .map(
    (name) => `\tchain ${name} {
\t\ttype nat hook ${name.toLowerCase()} priority ${name === 'POSTROUTING' ? 'srcnat' : '-100'}; policy accept;
\t\tcounter packets 4 bytes 240 jump ${name === 'POSTROUTING' ? 'KUBE-POSTROUTING' : 'KUBE-SERVICES'}
\t}
`,
  )
  .join('\n')}
\tchain KUBE-POSTROUTING {
\t}
}
`;
  const filter = 'table ip filter {\n}\n';
  expect(await trace(nat + filter)).toMatchObject({ verdict: 'delivered' });
  // Tables of one name may have been printed one by one.
  expect(await trace(nat)).toMatchObject({ verdict: 'unknown', otherwise: { verdict: 'delivered' } });
  const answer = await trace(filter + nat.replace(/\tchain POSTROUTING \{[^}]*\}\n/, ''));
  expect(answer).toMatchObject({ verdict: 'unknown' });
  // What names the Services is iptables-save.
  expect(answer.reasons).toMatchObject([{ command: 'iptables-save' }]);
});

describe('a table of IPv4 alone', () => {
  test.each([
    ['$ nft list ruleset\n', ['ipv4', 'ipv6'], false],
    ['$ nft list ruleset ip\n', ['ipv4'], true],
    ['$ nft list table ip kube-proxy\n', ['ipv4'], true],
    ['', ['ipv4'], false],
  ])('below %j', (line, families, lacksTables) => {
    const { coverage } = readDump(new Map([['node.txt', line + table]]));
    expect(coverage).toMatchObject({ nftables: families, lacksTables });
  });

  test('what is asked for answers for IPv6', async () => {
    const ask = async (text: string): Promise<string> =>
      (await runKpc(['trace', '-q', write(text), '--from', '2001:db8::7', '--to', '[2001:db8::9]:80'], { cwd })).stdout;
    expect(await ask(table)).toContain(
      'nothing shows whether the node has table ip6 kube-proxy; add all of the output of nft list ruleset, below a line with that command',
    );
    expect(await ask(`nft list ruleset\n${table}`)).not.toContain('nft list ruleset');
  });
});
