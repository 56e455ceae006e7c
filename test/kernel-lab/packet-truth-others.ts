// The same with rules of other programs beside kube-proxy's: kpc reads what the node's tools print, and what it says for certain is
// what the kernel does. What it does not know is counted. The seed is printed.
import { readDump } from '../../src/dumps/read-dump.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
import type { Evaluator } from '../../src/packet/evaluate.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { run } from './network.ts';
import type { OtherRuleset } from './other-rulesets.ts';

/**
 * What a node's tools print, one after the other. `withSave`: also what iptables-save prints of what nft lists. `withLinks`: also
 * which links are bridges, and whether rules see what passes these.
 */
export function printNode(withSave: boolean, withLinks: boolean): string {
  const sysctls = [
    'net.ipv4.ip_forward',
    'net.ipv6.conf.all.forwarding',
    'net.ipv4.conf.all.route_localnet',
    ...(withLinks ? ['net.bridge.bridge-nf-call-iptables', 'net.bridge.bridge-nf-call-ip6tables'] : []),
  ];
  const commands: readonly (readonly [string, ...string[]])[] = [
    ['nft', 'list', 'ruleset'],
    ...(withSave ? ([['iptables-save'], ['ip6tables-save']] as const) : []),
    ['ip', ...(withLinks ? ['-d', '-j'] : []), 'addr'],
    ['sysctl', ...sysctls],
  ];
  return commands.map(([tool, ...args]) => `$ ${[tool, ...args].join(' ')}\n${run(tool, args)}`).join('\n');
}

/** An evaluator of what the tools printed, as kpc trace makes it. */
export function evaluatorOfDump(text: string): Evaluator {
  const { state, coverage, doubts } = readDump(new Map([['node.txt', text]]));
  return sceneOf(new DumpedSnapshot({ name: 'node.txt', state: () => state, coverage, doubts })).evaluate;
}

/** Puts rules beside those that are there. Returns how to take them away. */
export function load({ tool, text }: OtherRuleset): () => void {
  if (tool === 'nft') {
    run('nft', ['-f', '-'], text);
    const tables = [...text.matchAll(/^table \S+ \S+/gm)].map(([table]) => `delete ${table}\n`);
    return () => void run('nft', ['-f', '-'], tables.join(''));
  }
  const before = run(tool.replace('restore', 'save'), []);
  run(tool, ['--noflush'], text);
  return () => {
    for (const [table] of text.matchAll(/^\*\w+/gm)) run(tool, [], `${table}\nCOMMIT\n`);
    if (before !== '') run(tool, [], before);
  };
}
