import { type Address, families, type Family, joinHostPort, type Protocol, protocols } from '../kernel/address.ts';
import { formatKey } from '../kernel/nftables/format.ts';
import type { NftRule, Value } from '../kernel/nftables/table.ts';
import { parsePort } from '../kernel/ports-and-marks.ts';
import type { KernelState } from '../kernel/state.ts';
import { parseServiceChain } from '../kube-proxy/chain-names.ts';
import { isKubeProxyTable, parseNftName } from '../kube-proxy/nft-table.ts';
import type { Owners } from '../kube-proxy/owners.ts';
import { readServiceRule } from './decompile-iptables.ts';
import { PortDraft, type DecompiledPort } from './decompiled-port.ts';

/**
 * Finds Service ports by the cluster IPs that their own chains name. In each such chain, the rule that marks packets for masquerading names
 * the cluster IP. This rule stays even if no rule leads packets for the cluster IP to the chain any more.
 */
export function findClaimed(state: KernelState, owners: Owners): readonly DecompiledPort[] {
  const ofRules = families.flatMap((family) =>
    [...(state.iptables[family]?.nat?.values() ?? [])].flatMap(({ name, rules }) =>
      isOfClusterIP(parseServiceChain(name)?.kind)
        ? rules.map(readServiceRule).flatMap((rule) => claim(family, rule))
        : [],
    ),
  );
  const ofTables = state.nftables.flatMap(({ name: table, family, chains }) =>
    [...(isKubeProxyTable(table) ? chains.values() : [])].flatMap((chain) => {
      const named = parseNftName(chain.name);
      if (!isOfClusterIP(named?.kind)) return [];
      const label = owners.ofNftChain(chain);
      const protocol = protocols.find((each) => each === named?.protocol.toUpperCase());
      return chain.rules.flatMap((rule) => claim(family, { label, protocol, ...destinationOf(rule) }));
    }),
  );
  return [...ofRules, ...ofTables];
}

function isOfClusterIP(kind: string | undefined): boolean {
  return kind === 'cluster' || kind === 'local';
}

interface Claim {
  readonly label: string | undefined;
  readonly address: Address | undefined;
  readonly port: number | undefined;
  readonly protocol: Protocol | undefined;
}

function claim(family: Family, { label, address, port, protocol = 'TCP' }: Claim): readonly DecompiledPort[] {
  if (!address) return [];
  const draft = new PortDraft(label ?? joinHostPort(address.text, port ?? 0), family, protocol);
  draft.addAddress('cluster-ip', address, port);
  return [draft.finish()];
}

function destinationOf({ expressions }: NftRule): Pick<Claim, 'address' | 'port'> {
  const valueOf = (field: string): Value | undefined =>
    expressions.flatMap((each) => {
      const isAsked = each.kind === 'match' && each.left[0]?.name.endsWith(` ${field}`) === true;
      return isAsked && !('set' in each.right) ? (each.right.elements[0]?.key[0] ?? []) : [];
    })[0];
  const [address, port] = [valueOf('daddr'), valueOf('dport')];
  return {
    address: address?.kind === 'address' ? address.address : undefined,
    port: port && parsePort(formatKey([port])),
  };
}
