import { temporarySetName } from '../../kernel/ipset/ipset.ts';
import { isBuiltInChain, tableNames, type TableName } from '../../kernel/iptables/iptables.ts';
import { hasOpenQuote } from '../../kernel/iptables/parse-rule.ts';
import { linesOf } from '../../kernel/lines.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';
import type { KeepsLine } from './output.ts';

/**
 * Keeps the entries of kube-proxy's sets, and those of sets of sets, which may name one of them. Other programs' sets may have
 * millions.
 */
export function keepsSetLines(): KeepsLine {
  const whole = new Set<string>();
  return (line) => {
    const [, verb, name = '', next] = /^(create|add) (\S+) (\S+)/.exec(line) ?? [];
    if (verb === 'create' && next === 'list:set') whole.add(name);
    return verb !== 'add' || whole.has(name) || name === temporarySetName || parseSetName(name) !== undefined;
  };
}

/** All chains and sets that kpc-apply may own have this in their names. */
const ownMark = 'KUBE-';

/** How many characters the lines have that name nothing of kube-proxy's: they are there whatever becomes of its own. */
export function lengthOfOthers(text: string): number {
  let length = 0;
  for (const line of linesOf(text)) if (!line.includes(ownMark)) length += line.length + 1;
  return length;
}

/** Whether all rules of a chain are kept: of another program's, those that name nothing of kube-proxy's are not. */
export function isKeptWhole(table: TableName, chain: string): boolean {
  return isBuiltInChain(table, chain) || chain.includes(ownMark);
}

/**
 * Keeps the rules of kube-proxy's chains, and those of the kernel's own, where the order counts. Of other programs' chains, which
 * may have a rule for each of millions of clients, it keeps the rules that name something of kube-proxy's, and others as far as there
 * is `room` for their bytes.
 */
export function keepsRuleLines(room: (bytes: number) => boolean = () => false): KeepsLine {
  // A rule whose quoted comment goes on in the next line. What is in there may look like anything: all is kept from there on.
  // Test: keeps all that follows a comment of several lines.
  let isQuoted = false;
  return (line) => {
    isQuoted ||= line.includes('"') && hasOpenQuote(line);
    const name = /^(?:\[\d+:\d+\] )?(?:-A |:)([^ "]+) /.exec(line)?.[1];
    const isForeign = name !== undefined && !tableNames.some((table) => isBuiltInChain(table, name));
    const isKept = isQuoted || !isForeign || line.includes(ownMark) || line.includes(temporarySetName);
    return isKept || room(Buffer.byteLength(line) + 1);
  };
}
