// Like packet-truth.ts, but with other programs' rules beside kube-proxy's. kpc reads the output of the node's tools, and each of its
// certain verdicts must match the kernel. Counts the unknown ones. Prints the seed.
import { readDump } from '../../src/dumps/read-dump.ts';
import { DumpedSnapshot } from '../../src/snapshot/snapshot.ts';
import type { Evaluator } from '../../src/packet/evaluate.ts';
import { sceneOf } from '../../src/ask/trace/scene.ts';
import { run } from './network.ts';
import type { OtherRuleset } from './other-rulesets.ts';

/**
 * Returns the output of a node's tools, one after the other. `withSave`: also iptables-save's output for rules that nft lists. `withLinks`:
 * also which links are bridges, and whether rules see bridged packets.
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

/** Returns an evaluator of the tools' output, as kpc trace makes it. */
export function evaluatorOfDump(text: string): Evaluator {
  const { state, coverage, doubts } = readDump(new Map([['node.txt', text]]));
  return sceneOf(new DumpedSnapshot({ name: 'node.txt', state: () => state, coverage, doubts })).evaluate;
}

/** Loads rules beside the present ones. Returns a function that removes them. */
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
