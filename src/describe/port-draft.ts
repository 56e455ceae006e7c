import type { Family, Protocol } from '../kernel/family.ts';
import type { DecompiledAddress, DecompiledEndpoint, DecompiledPort, TrafficPolicy } from './decompile.ts';

/** A Service port while the rules that tell of it are read. */
export interface PortDraft {
  readonly name: string;
  readonly family: Family;
  protocol: Protocol;
  port: number | undefined;
  readonly addresses: Map<string, DecompiledAddress>;
  nodePort: number | undefined;
  internalTrafficPolicy: TrafficPolicy | undefined;
  externalTrafficPolicy: TrafficPolicy | undefined;
  affinitySeconds: number | undefined;
  readonly sourceRanges: string[];
  /** Nothing in nftables tells it. */
  healthCheckNodePort: number | undefined;
  /** The policies whose traffic an endpoint takes, by "ip:port". */
  readonly endpoints: Map<string, Set<TrafficPolicy>>;
}

/** A draft of which nothing is known yet but its name. */
export function startDraft(name: string, family: Family, protocol: Protocol): PortDraft {
  return {
    name,
    family,
    protocol,
    port: undefined,
    addresses: new Map(),
    nodePort: undefined,
    internalTrafficPolicy: undefined,
    externalTrafficPolicy: undefined,
    affinitySeconds: undefined,
    sourceRanges: [],
    healthCheckNodePort: undefined,
    endpoints: new Map(),
  };
}

/** What was read, as it is handed on. */
export function finishDraft({ addresses, endpoints, ...draft }: PortDraft): DecompiledPort {
  return {
    ...draft,
    addresses: [...addresses.values()],
    scheduler: undefined,
    endpoints: [...endpoints].map(([endpoint, takes]): DecompiledEndpoint => ({ endpoint, takes: [...takes] })),
  };
}
