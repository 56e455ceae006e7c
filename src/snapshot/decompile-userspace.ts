import { families } from '../kernel/family.ts';
import type { ProxyPort } from '../kernel/balancer/balancer.ts';
import { readTerms } from '../kernel/iptables/rule-terms.ts';
import type { KernelState } from '../kernel/state.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { findArg, readServiceRule } from './decompile-iptables.ts';
import { endpointAt, PortDraft, type DecompiledPort } from './decompiled-port.ts';

/** Reads Service ports from rules. Their names come from comments, and their endpoints from the balancer. */
export function decompileUserspace({ iptables, proxyPorts }: KernelState): readonly DecompiledPort[] {
  const served = new Map(proxyPorts.map((port) => [`${port.protocol} ${port.port}`, port]));
  const drafts = new Map<string, PortDraft>();
  for (const family of families) {
    const nat = iptables[family]?.nat;
    for (const chain of [baseChains.portalsContainer, baseChains.portalsHost, baseChains.nodePortContainer]) {
      for (const rule of nat?.get(chain)?.rules ?? []) {
        const { label, address, port, protocol = 'TCP', isOfAddressType } = readServiceRule(rule);
        if (label === undefined) continue;
        const key = `${family} ${protocol} ${label}`;
        const draft = drafts.get(key) ?? new PortDraft(label, family, protocol);
        drafts.set(key, draft);
        if (!address) draft.nodePort ??= port;
        // kube-proxy writes a Service port's cluster IP first. Only rules for external IPs have further conditions.
        else if (isOfAddressType || findArg(rule, 'physdev-is-in')) draft.addAddress('external-ip', address, port);
        else if (!draft.addresses.has(address.text))
          draft.addAddress(draft.hasClusterIP() ? 'load-balancer-ip' : 'cluster-ip', address, port);
        const action = readTerms(rule, family)?.action;
        const to = action?.kind === 'dnat' ? action.target.port : action?.kind === 'redirect' ? action.port : undefined;
        draft.proxyPort ??= to;
        addProxyEndpoints(draft, served.get(`${protocol} ${to}`));
      }
    }
  }
  return [...drafts.values()].map((draft) => draft.finish());
}

function addProxyEndpoints(draft: PortDraft, proxyPort: ProxyPort | undefined): void {
  if (!proxyPort || draft.showsEndpoints) return;
  draft.showsEndpoints = true;
  for (const endpoint of proxyPort.endpoints) draft.addEndpoint(endpointAt(endpoint), 'Cluster');
}
