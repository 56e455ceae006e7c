import { isPath } from '../shared/near-misses.ts';

/** Flags that may stand without their value, true. */
const booleanFlags: ReadonlySet<string> = new Set([
  '--masquerade-all',
  '--iptables-localhost-nodeports',
  '--ipvs-strict-arp',
  '--conntrack-tcp-be-liberal',
]);

/** The words of a command line, where a flag that may be true or false does not take the name of a file for its value. */
export function settleBooleans(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--');
  return argv.map((word, i) => {
    const next = argv[i + 1];
    if ((end >= 0 && i >= end) || !booleanFlags.has(word) || next === undefined) return word;
    return !/^(?:true|false)$/i.test(next) && !next.startsWith('-') && isPath(next) ? `${word}=true` : word;
  });
}
