import { families, type Family } from '../../kernel/family.ts';
import { familyOfPlace, type RulesPlace } from '../../kernel/iptables/iptables-delta.ts';
import type { Host } from './host.ts';
import { mostSaid, Room } from './output.ts';

/**
 * The two programs that are called iptables. `legacy` keeps rules in tables of its own, `nft` in nftables; the rules of both
 * match, and neither program shows those of the other.
 */
export type Variant = 'nft' | 'legacy';

/** The variant that a node's `iptables-save` and `ip6tables-save` are. */
export type Variants = { readonly [F in Family]: Variant };

/** What the tools begin with that read and write the rules of a family. */
export const toolNames: { readonly [F in Family]: string } = { ipv4: 'iptables', ipv6: 'ip6tables' };

/** Asks the tools. Before 1.8 there was legacy alone, which did not say so. */
export async function readVariants(host: Host): Promise<Variants> {
  const [ipv4 = 'nft', ipv6 = 'nft'] = await Promise.all(
    families.map(async (family): Promise<Variant> => {
      const asked = await host.run({
        tool: `${toolNames[family]}-save`,
        args: ['--version'],
        room: new Room(mostSaid),
      });
      if (asked.kind === 'missing' || asked.status !== 0) return 'nft';
      return asked.stdout.includes('(nf_tables)') ? 'nft' : 'legacy';
    }),
  );
  return { ipv4, ipv6 };
}

/** Which variant holds the rules of a place. */
export function variantOf(place: RulesPlace, variants: Variants): Variant {
  const used = variants[familyOfPlace(place)];
  if (place === familyOfPlace(place)) return used;
  return used === 'nft' ? 'legacy' : 'nft';
}

/** Where rules are that are at `place` with `from` in use, if `to` is in use. */
export function placeIn(place: RulesPlace, from: Variants, to: Variants): RulesPlace {
  const family = familyOfPlace(place);
  return variantOf(place, from) === to[family] ? family : `other ${family}`;
}

/** The tool of a place that ends with "save" or "restore": "iptables-save" for rules of the variant in use. */
export function rulesTool(place: RulesPlace, verb: 'save' | 'restore', variants: Variants): string {
  const family = familyOfPlace(place);
  const infix = place === family ? '' : `${variantOf(place, variants)}-`;
  return `${toolNames[family]}-${infix}${verb}`;
}
