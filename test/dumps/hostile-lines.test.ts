import { describe, expect, test } from 'vitest';
import { readDump } from '../../src/dumps/read-dump.ts';
import { cpuSeconds, secondsOfPlainMegabyte } from '../support/cpu-time.ts';
import { some, triesAll } from '../support/rounds.ts';

const size = triesAll ? 200_000 : 50_000;

/** Lines that regular expressions and searches stumble over: each is long, or there are many of it. */
const hostile: Readonly<Record<string, string>> = {
  blanks: `a${' '.repeat(size)}b`,
  'blanks around an equals sign': `${' '.repeat(size / 2)}a=${' '.repeat(size / 2)}x\ry`,
  'equals signs': '='.repeat(size),
  commas: ','.repeat(size),
  quotes: '"'.repeat(size),
  'quotes that are escaped': '\\"'.repeat(size / 2),
  brackets: '['.repeat(size),
  braces: '{'.repeat(size),
  'braces that close': '{}'.repeat(size / 2),
  'tables in JSON': '{"table":{'.repeat(size / 10),
  options: '-A '.repeat(size / 3),
  digits: '1'.repeat(size),
  numbers: '1 '.repeat(size / 2),
  colons: ' : '.repeat(size / 3),
  sources: ' src='.repeat(size / 5),
  'one comment': `-A KUBE-SERVICES -m comment --comment "${'a '.repeat(size / 2)}`,
  'one rule': `-A KUBE-SERVICES ${'-m tcp '.repeat(size / 7)}`,
  'one chain': `:${'K'.repeat(size)} - [0:0]`,
  'one element list': `elements = { ${'10.96.0.1 . tcp . 80 : goto a, '.repeat(size / 31)}`,
  'an address': `inet ${'1.'.repeat(size / 2)}`,
  'empty lines': '\n'.repeat(size),
  'short lines': 'a\n'.repeat(size / 2),
  'lines of blanks': ' \n'.repeat(size / 2),
};

const plain = '-A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j KUBE-SVC-AAAAAAAAAAAAAAAA\n'.repeat(
  size / 90,
);

/** What comes before: each is the start of what a tool prints. */
const heads: Readonly<Record<string, string>> = {
  'iptables-save': '*nat\n:KUBE-SERVICES - [0:0]\n',
  'ipset-save': 'create KUBE-CLUSTER-IP hash:ip,port family inet\nadd KUBE-CLUSTER-IP ',
  'ipvsadm-save': '-A -t 10.96.0.1:80 -s rr\n-a -t 10.96.0.1:80 -r ',
  'ip-addr': '2: eth0: <UP> mtu 1500 qdisc noop state UP\n    inet ',
  'nft-ruleset':
    'table ip kube-proxy {\n\tmap service-ips {\n\t\ttype ipv4_addr . inet_proto . inet_service : verdict\n',
  'nft.json': '{"nftables": [{"table": {"family": "ip", "name": "kube-proxy"}}, ',
  sysctl: 'net.ipv4.ip_forward = 1\n',
};

describe.each(some(Object.entries(heads)))('%s', (name, head) => {
  const read = (text: string) => cpuSeconds(() => readDump(new Map([[name, head + text]])));
  test('hostile lines take as long as plain ones, within a factor', async () => {
    const most = 30 * (await read(plain)) + (await secondsOfPlainMegabyte());
    for (const [kind, text] of Object.entries(hostile)) expect(await read(text), kind).toBeLessThan(most);
  });
});
