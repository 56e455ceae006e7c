import { assignedTexts } from '../../cluster/assign-addresses.ts';
import type { DescriptionLine } from '../../describe/describe-words.ts';
import type { Side } from '../../diff/side.ts';

/** A line that names those of the values in some texts that kpc chose, as the input lacks them; none if there are none. */
export function assumedIn(texts: readonly string[], { services }: Side): readonly DescriptionLine[] {
  if (!services) return [];
  const { assumed, node } = services;
  const chosen = new Set([
    ...assumed.services.flatMap(assignedTexts),
    ...assumed.pods,
    ...(assumed.node ? [node.name, ...node.hostAddresses.map(({ text }) => text)] : []),
  ]);
  // An address and a port are one word, and an IPv6 address in brackets too.
  const words = texts.flatMap((text) => text.split(/[\s,()[\]/]+/)).flatMap((word) => [word, ...splitPort(word)]);
  const named = [...new Set(words)].filter((word) => chosen.has(word));
  return named.length === 0 ? [] : [{ role: 'dim', depth: 1, text: `assumed: ${named.join(', ')}` }];
}

/** "10.0.0.1:80" as "10.0.0.1" and "80"; what is left of "[fd00::1]:80" is ":80". */
function splitPort(word: string): readonly string[] {
  const [, host = '', port = ''] = /^([^:]*):(\d+):?$/.exec(word) ?? [];
  return [host, port];
}
