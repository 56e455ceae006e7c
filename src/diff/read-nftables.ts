import { isCutOff } from '../dumps/nft-blocks.ts';
import type { ToolOutput } from '../dumps/split-outputs.ts';
import { parseNftJson } from '../kernel/nftables/parse-json.ts';
import { parseNftText } from '../kernel/nftables/parse-text.ts';
import { isKubeProxyTable } from '../kube-proxy/nftables.ts';
import type { DumpDraft } from './dump-draft.ts';
import type { Reader } from './read-dump.ts';

/**
 * Reads what nft printed: one table as text, or the JSON of them all. Only kube-proxy's are read: nft prints those that
 * iptables made in a form that tells less of them than iptables-save.
 */
export function readNftOutput(draft: DumpDraft, file: string, output: ToolOutput, read: Reader): void {
  const { text, command, firstLine } = output;
  const isJson = text.trimStart().startsWith('{');
  if (isCutOff(text)) {
    draft.fault({ kind: 'cut-off', file, expected: 'nft list ruleset' });
    return;
  }
  const wants = (_: unknown, name: string): boolean => isKubeProxyTable(name);
  const { tables } = read(isJson ? parseNftJson(text, wants) : parseNftText(text, wants));
  const isRuleset = command?.tool === 'nft' ? !command.isPart : /ruleset/i.test(file) || namesOtherTable(text, isJson);
  draft.kinds.nftables.add(tables, isRuleset ? 'ruleset' : 'unknown');
  if (tables.length === 0 && /[\s"]KUBE-SERVICES[\s"]/.test(text)) {
    const reason = 'shows the rules of iptables mode in other words: print iptables-save instead';
    draft.fault({ kind: 'refused', file, line: firstLine, output: 'nft list ruleset', reason });
  }
}

/** Nothing but the whole ruleset holds tables of other programs. */
function namesOtherTable(text: string, isJson: boolean): boolean {
  const names = isJson
    ? [...text.matchAll(/\{\s*"table"\s*:\s*\{[^}]*?"name"\s*:\s*"([^"]*)"/g)].map(([, name]) => name)
    : [/^\s*table \S+ (\S+)/.exec(text)?.[1]];
  return names.some((name) => name !== undefined && !isKubeProxyTable(name));
}
