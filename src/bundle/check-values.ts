import { printable, quotePrintable } from '../base/printable.ts';
import { portChanges } from '../cluster/ipvs-annotations.ts';
import type { EndpointStatus } from '../cluster/objects.ts';
import type { Cluster, ServiceHealthCheck, ServiceInfo, ServicePort } from '../cluster/model.ts';
import { isLabelValue, isName } from '../base/object-names.ts';
import { describeUnusable, parseAddress, type Address } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import { mostIpvsSeconds, schedulers } from '../kernel/ipvs/ipvs.ts';
import { isModeOf } from '../kube-proxy/releases.ts';
import { findWrongSettings } from '../kube-proxy/settings/values.ts';
import { settingsOf, type Manifest } from './manifest.ts';

/** The values of manifest.json that are of the right shape and that kpc would not write, a line each. */
export function checkManifestValues(manifest: Manifest): readonly string[] {
  const { settings, node, families: chosen, ipvsTimeouts } = manifest;
  const own: readonly (readonly [field: string, isWrong: boolean, must: string])[] = [
    ['node.name', node.name !== '' && !isName(node.name, 'subdomain'), "be a node's name"],
    ['mode', !isModeOf(manifest.mode, settingsOf(manifest).release), 'be one that kpc follows in its kubeProxyVersion'],
    ['node.zone', !isPlain(node.zone), 'be plain text'],
    ['families', !isSelection(chosen), 'be ipv4, ipv6, or both in this order'],
  ];
  const lines = [
    ...own.flatMap(([field, isWrong, must]) => (isWrong ? [`${field} must ${must}`] : [])),
    ...findWrongSettings(settings).map(({ name, must }) => `settings.${name} must ${must}`),
    ...Object.entries(ipvsTimeouts ?? {}).flatMap(([field, seconds]) =>
      Number(seconds) > mostIpvsSeconds ? [`ipvsTimeouts.${field} must be ${mostIpvsSeconds} seconds at most`] : [],
    ),
  ];
  return lines.map((line) => `manifest.json: ${line}`);
}

function isPlain(text: string): boolean {
  return printable(text) === text;
}

function isSelection(chosen: readonly Family[]): boolean {
  return chosen.length > 0 && chosen.join() === families.filter((family) => chosen.includes(family)).join();
}

/** The values of services.json that are of the right shape and that no Service in a cluster has, a line each. */
export function checkServiceValues(cluster: Cluster, { node }: Pick<Manifest, 'node'>): readonly string[] {
  const own = new Set([...node.hostAddresses, node.nodeIPs.ipv4, node.nodeIPs.ipv6]);
  return [
    ...cluster.services.flatMap(checkService),
    ...cluster.servicePorts.flatMap((port) => checkServicePort(port, own)),
    ...checkStatuses(cluster),
    ...cluster.healthChecks.flatMap(checkHealthCheck),
    ...findOrphans(cluster),
  ].map((problem) => `services.json: ${problem}`);
}

/** People read the list of Services, and the rules result from their ports: neither may hold what the other lacks. */
function findOrphans({ services, servicePorts, healthChecks }: Cluster): readonly string[] {
  const known = new Set(services.map(({ namespace, name }) => `${namespace}/${name}`));
  const named = [...servicePorts, ...healthChecks].map(({ namespace, service }) => `${namespace}/${service}`);
  return [...new Set(named)]
    .filter((name) => !known.has(name))
    .map((name) => `${quotePrintable(name)} has ports or health checks, and is not among the Services`);
}

function checkService(service: ServiceInfo): readonly string[] {
  const { namespace, name, ports, externalName, clusterIPs, headlessEndpoints } = service;
  const addresses = [
    ...clusterIPs.filter((text) => text !== '' && text !== 'None'),
    ...headlessEndpoints.map(({ address }) => address),
  ];
  const wrong = (texts: readonly string[], isRight: (text: string) => unknown, what: string) =>
    texts.filter((text) => !isRight(text)).map((text) => `${quotePrintable(text)} is not ${what}`);
  return [
    ...checkServiceName(namespace, name),
    ...wrong(
      ports.map((port) => port.name),
      isPortName,
      'a port name',
    ),
    ...wrong(
      externalName === undefined ? [] : [externalName],
      (text) => isName(text.replace(/\.$/, ''), 'subdomain'),
      'an external name',
    ),
    ...wrong(addresses, parseAddress, 'an IP address'),
  ];
}

function isPortName(text: string): boolean {
  return text === '' || isName(text, 'label');
}

function checkServiceName(namespace: string, name: string): readonly string[] {
  if (isName(namespace, 'label') && isName(name, 'label')) return [];
  return [`${quotePrintable(`${namespace}/${name}`)} is not a Service name`];
}

/** The longest session affinity that the API server takes: a day. */
const mostAffinitySeconds = 86_400;

/** `own` are the addresses of the node itself. */
function checkServicePort(port: ServicePort, own: ReadonlySet<string>): readonly string[] {
  const { family, scheduler, affinitySeconds, portName } = port;
  const problems: string[] = [...checkServiceName(port.namespace, port.service)];
  const about = quotePrintable(port.label);
  const refuse = (text: string): void => {
    problems.push(`${about}: ${text}`);
  };
  const checkAddress = (what: string, address: Address): void => {
    const kind = describeUnusable(address);
    if (kind !== undefined) refuse(`${what} ${address.text} is ${kind}`);
    if (address.family !== family) refuse(`${what} ${address.text} is not an ${family} address`);
  };
  if (!isPortName(portName)) refuse(`${quotePrintable(portName)} is not a port name`);
  if (scheduler !== undefined && !schedulers.some((known) => known === scheduler)) {
    refuse(`${quotePrintable(scheduler)} is not a scheduler: use one of ${schedulers.join(', ')}`);
  }
  if (affinitySeconds !== undefined && (affinitySeconds < 1 || affinitySeconds > mostAffinitySeconds)) {
    refuse(`session affinity of ${affinitySeconds} seconds: it must be from 1 to ${mostAffinitySeconds}`);
  }
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
        [...zoneHints, ...nodeHints].every(isPlain);
      if (isRight) continue;
      const about = quotePrintable(port.label);
      problems.push(`${about}: the node, the zone or a hint of endpoint ${label} is not a valid name`);
    }
  }
  return problems;
}

function checkHealthCheck({ namespace, service, readyEndpoints }: ServiceHealthCheck): readonly string[] {
  const isRight = readyEndpoints.every(
    ({ address, nodeName }) => parseAddress(address) && (nodeName === '' || isName(nodeName, 'subdomain')),
  );
  const name = quotePrintable(`${namespace}/${service}`);
  return [
    ...checkServiceName(namespace, service),
    ...(isRight ? [] : [`an endpoint of the health check of ${name} is not valid`]),
  ];
}
