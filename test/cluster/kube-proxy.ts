import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import { nodeAddresses, nodeNames } from './objects.ts';
import { endProcess, startProgram, waitFor, type ClusterFiles } from './start-cluster.ts';

export type RuleMode = Extract<ProxyMode, 'iptables' | 'nftables'>;

/** The tables of a kernel as the tools print them, one thing a line, by the name that a bundle gives the same. */
export type Printed = ReadonlyMap<string, string>;

/** What shows the rules of each mode; `inside` is a command that enters another network, if they are not in this one. */
export function printRules(mode: RuleMode, inside: readonly string[] = []): Printed {
  const print = (...words: readonly string[]): string => {
    const [program = '', ...rest] = [...inside, ...words];
    return execFileSync(program, rest, { encoding: 'utf8', maxBuffer: 2 ** 28, stdio: 'pipe' });
  };
  if (mode === 'nftables') {
    // kube-proxy's search for leftovers of other modes makes tables of iptables.
    const tables = ['ip', 'ip6'].map((family) => print('nft', 'list', 'table', family, 'kube-proxy'));
    return new Map([['nftables.nft', layOutElements(tables.join(''))]]);
  }
  return new Map([
    ['iptables.restore', withoutCounters(print('iptables-save'))],
    ['ip6tables.restore', withoutCounters(print('ip6tables-save'))],
  ]);
}

/** Chains that kube-proxy only watches, to learn that somebody flushed all others. */
const canary = /^KUBE-(?:PROXY|KUBELET)-CANARY$/;

/** What kube-proxy only counts with, where the kernel can: docs/differences.md. */
const countingRule = / --nfacct-name +localhost_nps_accepted_pkts /;
const countingMatch = / -m nfacct --nfacct-name +\S+/g;

/** Without comments, counters, the chains of the kernel and the canaries. */
function withoutCounters(printed: string): string {
  const lines = printed.split('\n').filter((line) => {
    if (line.startsWith('#') || countingRule.test(line)) return false;
    const [, chain = '', policy] = /^:(\S+) (\S+)/.exec(line) ?? [];
    return policy === undefined || (policy === '-' && !canary.test(chain));
  });
  const text = lines.join('\n').replaceAll(countingMatch, '');
  return text.replaceAll(/^(:\S+ -) \[\d+:\d+\]$/gm, '$1 [0:0]');
}

/** One element a line: nft breaks lines where it likes. What has a time left has no other in two listings. */
function layOutElements(text: string): string {
  return text
    .replaceAll(/elements = \{([^{}]*)\}/g, (_, list: string) => {
      const elements = list.split(',').map((element) => element.trim().replaceAll(/\s+/g, ' '));
      return ['elements = {', ...elements.toSorted().map((element) => `${element},`), '}'].join('\n');
    })
    .replaceAll(/ counter packets \d+ bytes \d+/g, ' counter packets 0 bytes 0');
}

/**
 * Runs the real kube-proxy for a node until its rules stay the same, and returns what the kernel then has. Its rules are gone
 * afterwards.
 */
export async function runKubeProxy(
  files: ClusterFiles,
  config: string,
  node: string,
  mode: RuleMode,
): Promise<Printed> {
  flushRules();
  const path = join(files.folder, 'kube-proxy.conf');
  writeFileSync(path, config.replace(/kubeconfig: .*/, `kubeconfig: ${files.kubeconfig}`));
  const release = takeAddresses(nodeAddresses(nodeNames.findIndex((name) => name === node)));
  const child = startProgram(files, 'kube-proxy', ['--config', path, '--hostname-override', node]);
  try {
    await waitFor('kube-proxy to sync', async () => {
      if (child.exitCode !== null) throw new Error(`kube-proxy ended with status ${child.exitCode}`);
      return (await sayHealth()) && holdsServices(mode);
    });
    return await untilStill(() => printRules(mode));
  } finally {
    await endProcess(child);
    flushRules();
    release();
  }
}

/** Gives this network the addresses of a node, unless it has them. Returns what takes them away again. */
export function takeAddresses(addresses: readonly string[]): () => void {
  const ip = (...words: readonly string[]): string => execFileSync('ip', words, { encoding: 'utf8' });
  const own = addresses.map((address) => `${address}/${address.includes(':') ? 128 : 32}`);
  const lacking = own.filter((address) => ip('-o', 'address', 'show', 'to', address) === '');
  for (const address of lacking) ip('address', 'add', address, 'dev', 'lo');
  return () => {
    for (const address of lacking) ip('address', 'delete', address, 'dev', 'lo');
  };
}

async function sayHealth(): Promise<boolean> {
  try {
    return (await fetch('http://127.0.0.1:10256/livez')).ok;
  } catch {
    return false;
  }
}

/** Whether the rules of both families hold Services that the cluster has in both. */
function holdsServices(mode: RuleMode): boolean {
  try {
    return [...printRules(mode).values()].every((text) => text.includes('default/dual'));
  } catch {
    return false;
  }
}

/** How long rules have to stay the same: kube-proxy writes changes a second apart. */
const stillness = 4000;

async function untilStill(print: () => Printed): Promise<Printed> {
  let last = print();
  let since = Date.now();
  await waitFor('rules to stay the same', async () => {
    await sleep(500);
    const next = print();
    if ([...next].some(([name, text]) => text !== last.get(name))) since = Date.now();
    last = next;
    return Date.now() - since >= stillness;
  });
  return last;
}

/** This is a network of the tests' own: no others' rules are in it. */
function flushRules(): void {
  execFileSync('nft', ['flush', 'ruleset']);
}
