import type { LocatedLines } from '../base/json/check.ts';
import { printable, quotePrintable } from '../base/printable.ts';
import { portChanges } from '../cluster/annotations.ts';
import type { EndpointStatus } from '../cluster/objects.ts';
import type { Cluster, ServicePort } from '../cluster/model.ts';
import { isLabelValue, isName } from '../base/names.ts';
import { describeUnusable, type Address } from '../kernel/address.ts';
import { families } from '../kernel/family.ts';
import { mostIpvsSeconds } from '../kernel/ipvs/ipvs.ts';
import { isModeOf } from '../kube-proxy/releases.ts';
import { findWrongSettings } from '../settings/table.ts';
import { settingsOf, type Manifest } from './manifest.ts';

/** Finds values of manifest.json that have the right shape, but that kpc would not write. One line each. */
export function checkManifestValues(
  manifest: Manifest,
  lineOf: LocatedLines = (_, said) => `manifest.json: ${said}`,
): readonly string[] {
  const { settings, node, families: chosen, ipvsTimeouts } = manifest;
  const isSelection = chosen.length > 0 && chosen.join() === families.filter((each) => chosen.includes(each)).join();
  const wrong: readonly (readonly [name: string, must: string])[] = [
    ...(node.name === '' || isName(node.name, 'subdomain') ? [] : [['node.name', "be a node's name"] as const]),
    ...(isModeOf(manifest.mode, settingsOf(manifest).release)
      ? []
      : [['mode', 'be one that kpc follows in its kubeProxyVersion'] as const]),
    ...(isSelection ? [] : [['families', 'be ipv4, ipv6, or both in this order'] as const]),
    ...findWrongSettings(settings).map(({ name, must }) => [`settings.${name}`, must] as const),
    ...Object.entries(ipvsTimeouts ?? {}).flatMap(([field, seconds]) =>
      Number(seconds) > mostIpvsSeconds
        ? [[`ipvsTimeouts.${field}`, `be ${mostIpvsSeconds} seconds at most`] as const]
        : [],
    ),
  ];
  return wrong.map(([name, must]) => lineOf(name.split('.'), `${name} must ${must}`));
}

/** Finds values of services.json that have the right shape, but that no Service in a cluster has. One line each. */
export function checkServiceValues(cluster: Cluster, { node }: Pick<Manifest, 'node'>): readonly string[] {
  const own = new Set([...node.hostAddresses, node.nodeIPs.ipv4, node.nodeIPs.ipv6]);
  return [
    ...cluster.servicePorts.flatMap((port) => checkServicePort(port, own)),
    ...checkStatuses(cluster),
    ...findOrphans(cluster),
  ].map((problem) => `services.json: ${problem}`);
}

/** People read the list of Services, but the rules follow from their ports: each must match the other. */
function findOrphans({ services, servicePorts, healthChecks }: Cluster): readonly string[] {
  const known = new Set(services.map(({ namespace, name }) => `${namespace}/${name}`));
  const named = [...servicePorts, ...healthChecks].map(({ namespace, service }) => `${namespace}/${service}`);
  return [...new Set(named)]
    .filter((name) => !known.has(name))
    .map((name) => `${quotePrintable(name)} has ports or health checks, and is not among the Services`);
}

/** `own` are the addresses of the node itself. */
function checkServicePort(port: ServicePort, own: ReadonlySet<string>): readonly string[] {
  const { family } = port;
  const problems: string[] = [];
  const refuse = (text: string): void => void problems.push(`${quotePrintable(port.label)}: ${text}`);
  const checkAddress = (what: string, address: Address): void => {
    const kind = describeUnusable(address);
    if (kind !== undefined) refuse(`${what} ${address.text} is ${kind}`);
    if (address.family !== family) refuse(`${what} ${address.text} is not an ${family} address`);
  };
  checkAddress('cluster IP', port.clusterIP);
  if (port.forwarding !== 'masquerade') for (const { wrong, help } of portChanges(port)) refuse(`${wrong}: ${help}`);
  // Where a cluster says so, an external address is a node's own; a cluster IP never is.
  if (own.has(port.clusterIP.text)) refuse(`cluster IP ${port.clusterIP.text} is an address of the node itself`);
  for (const address of port.externalIPs) checkAddress('external IP', address);
  for (const address of port.loadBalancerIPs) checkAddress('load balancer IP', address);
  for (const range of port.sourceRanges) {
    if (range.family !== family) refuse(`source range ${range.text} is not an ${family} network`);
  }
  for (const endpoint of port.endpoints) checkAddress('endpoint', endpoint.address);
  return problems;
}

/** Thousands of endpoints share few statuses: each is checked once. */
function checkStatuses({ servicePorts }: Cluster): readonly string[] {
  const checked = new Set<EndpointStatus>();
  const problems: string[] = [];
  for (const port of servicePorts) {
    for (const { label, status } of port.endpoints) {
      if (checked.has(status)) continue;
      checked.add(status);
      const { nodeName, zone, zoneHints, nodeHints } = status;
      const isRight =
        (nodeName === undefined || isName(nodeName, 'subdomain')) &&
        (zone === undefined || isLabelValue(zone)) &&
        [...zoneHints, ...nodeHints].every((hint) => printable(hint) === hint);
      if (isRight) continue;
      const about = quotePrintable(port.label);
      problems.push(`${about}: the node, the zone or a hint of endpoint ${label} is not a valid name`);
    }
  }
  return problems;
}
