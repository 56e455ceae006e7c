import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { parseNetwork, type Network } from '../../kernel/address.ts';

/** What --assume-endpoints stands for without a value: the networks of the Nodes or of the cluster. */
export const knownNetworks = 'auto';

/** The networks that --assume-endpoints names; undefined where it is not given. */
export interface PodNetworks {
  readonly networks: readonly Network[] | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads --assume-endpoints: nothing, one network, or one of each family. */
export function parsePodNetworks(text: string | true | undefined): PodNetworks {
  if (text === undefined) return { networks: undefined, diagnostics: [] };
  if (text === true || text === knownNetworks) return { networks: [], diagnostics: [] };
  const texts = text.split(',');
  const networks = texts.flatMap((each) => parseNetwork(each.trim()) ?? []);
  if (networks.length === texts.length && new Set(networks.map(({ family }) => family)).size === texts.length) {
    return { networks, diagnostics: [] };
  }
  return { networks: [], diagnostics: [diagnose('bad-range', { flag: '--assume-endpoints', value: text })] };
}

/**
 * The words of a command line, with what --assume-endpoints says for good: its value is optional, and the word after it may
 * be the name of a file.
 */
export function settleAssumeEndpoints(argv: readonly string[]): readonly string[] {
  const flag = '--assume-endpoints';
  const settled: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] ?? '';
    if (word === '--') return [...settled, ...argv.slice(i)];
    if (word !== flag) settled.push(word);
    else if (isNetworks(argv[i + 1])) settled.push(`${flag}=${argv[++i]}`);
    else settled.push(`${flag}=${knownNetworks}`);
  }
  return settled;
}

function isNetworks(text: string | undefined): boolean {
  return text !== undefined && text.split(',').every((each) => parseNetwork(each) !== undefined);
}
