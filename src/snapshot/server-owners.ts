import { portAddresses, type ShownPort } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { Coverage } from '../dumps/coverage.ts';
import { contains, parseNetwork } from '../kernel/address.ts';
import type { VirtualServer } from '../kernel/ipvs/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import { weighEvidence, type Evidence } from '../kube-proxy/evidence.ts';
import { findNodePortServers } from '../kube-proxy/ipvs-objects.ts';

interface Judged {
  readonly kind: 'manifests' | 'bundle' | 'dump';
  readonly state: KernelState;
  readonly coverage: Coverage;
  readonly settings: ProxySettings | undefined;
}

/** Decides which virtual servers are kube-proxy's: compiled ones are, those in --ipvs-exclude-cidrs are not; evidence decides the rest. */
export function weighServersOfSides(from: Judged, to: Judged): (server: VirtualServer) => Evidence {
  const sides = [from, to];
  const ofServices = sides.filter((side) => side.kind !== 'dump').flatMap((side) => side.state.virtualServers);
  const compiled = new Set(ofServices.map((server) => virtualServerKey(server)));
  const weighed = sides.map(({ kind, state, coverage }) => {
    return { kind, state, evidence: weighEvidence(state, { known: ofServices, shows: coverage }) };
  });
  const undecided = new Set(
    weighed
      .filter(({ kind }) => kind === 'dump')
      .flatMap(({ state, evidence }) =>
        state.virtualServers.filter((server) => evidence.virtualServer(server) === 'possible'),
      )
      .map((server) => virtualServerKey(server)),
  );
  const excluded = sides
    .flatMap((side) => side.settings?.ipvs.excludeCIDRs ?? [])
    .flatMap((cidr) => parseNetwork(cidr.trim()) ?? []);
  return (server) => {
    const key = virtualServerKey(server);
    if (compiled.has(key)) return 'certain';
    if (excluded.some((network) => contains(network, server.address))) return 'none';
    if (weighed.some(({ evidence }) => evidence.virtualServer(server) === 'certain')) return 'certain';
    return undecided.has(key) ? 'possible' : 'none';
  };
}

/** Labels virtual servers with their Service port: those of `named`, and the state's on node ports. IPVS stores no names. */
export function nameServers({ virtualServers, sets, links }: KernelState, named: readonly ShownPort[]): KernelState {
  const state = { ...emptyState, virtualServers, sets, links };
  const isNodePort = findNodePortServers(state);
  const ports = named.toReversed();
  const byNodePort = new Map(ports.map((port) => [`${port.family} ${port.protocol} ${port.nodePort}`, port.label]));
  const onNodePorts = virtualServers.filter(isNodePort).flatMap((server) => {
    const servicePort = byNodePort.get(`${server.family} ${server.protocol} ${server.port}`);
    return servicePort === undefined ? [] : [{ ...server, origin: { servicePort } }];
  });
  const ofServices = named.flatMap((each) =>
    portAddresses(each).flatMap(({ address }): readonly VirtualServer[] => {
      const { label, protocol, family, port } = each;
      if (port === undefined) return [];
      const origin = { servicePort: label };
      return [{ family, protocol, address, port, scheduler: '', schedulerFlags: [], realServers: [], origin }];
    }),
  );
  return { ...state, virtualServers: [...onNodePorts, ...ofServices] };
}
