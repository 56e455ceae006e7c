// Checks a bundle beyond its schema, and whether its files are the result of compiling its Services.
import { createLocatedLines, type LocatedLines } from '../base/json/check.ts';
import { printable, quotePrintable } from '../base/printable.ts';
import { portChanges } from '../cluster/check-services.ts';
import { fullName, type EndpointStatus } from '../cluster/objects.ts';
import { serviceName, type Cluster, type ServicePort } from '../cluster/model.ts';
import { isLabelValue, isName } from '../base/names.ts';
import { describeUnusable, type Address } from '../kernel/address.ts';
import { families } from '../kernel/family.ts';
import { mostIpvsSeconds } from '../kernel/ipvs/ipvs.ts';
import { isModeOf } from '../kube-proxy/releases.ts';
import { findWrongSettings } from '../settings/table.ts';
import { settingsOf, type Manifest } from './manifest.ts';
import { bundleFileNames } from './state-files.ts';
import { freshTexts, makeBundle, type BundleFiles, type Compile } from './make-bundle.ts';
import {
  findBroken,
  readBundle,
  readBundleMeaning,
  snapshotOfBundle,
  type BundleMeaning,
  type BundleReading,
} from './read-bundle.ts';

/** Finds values of the right shape that kpc would not write; one line each. */
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

/** Finds values of the right shape that no cluster has; one line each. */
export function checkServiceValues(cluster: Cluster, { node }: Pick<Manifest, 'node'>): readonly string[] {
  const own = new Set([...node.hostAddresses, node.nodeIPs.ipv4, node.nodeIPs.ipv6]);
  return [
    ...cluster.servicePorts.flatMap((port) => checkServicePort(port, own)),
    ...checkStatuses(cluster),
    ...findOrphans(cluster),
  ].map((problem) => `services.json: ${problem}`);
}

/** People read the list of Services, but rules follow from their ports: each must match the other. */
function findOrphans({ services, servicePorts, healthChecks }: Cluster): readonly string[] {
  const known = new Set(services.map(fullName));
  const named = [...servicePorts, ...healthChecks].map(serviceName);
  return [...new Set(named)]
    .filter((name) => !known.has(name))
    .map((name) => `${quotePrintable(name)} has ports or health checks, and is not among the Services`);
}

/** `own`: the node's own addresses. */
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
  // An external address may be a node's own; a cluster IP never is.
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

/**
 * Reads a bundle that may be an attacker's. services.json and manifest.json must hold values of Kubernetes and kube-proxy, and every other
 * file must equal, byte by byte, the result of compiling them: the compiler alone defines what a bundle may hold.
 */
export function checkBundle(files: BundleFiles, compile: Compile, path = ''): BundleReading {
  const meaning = readBundleMeaning(files);
  if ('kind' in meaning) return meaning;
  return meaning.manifest.dumped ? checkDumped(files, compile, path) : checkCompiled(meaning, files, compile, path);
}

/** A dump has no Services to compile its files from: it is only for comparing. */
function checkDumped(files: BundleFiles, compile: Compile, path: string): BundleReading {
  const reading = readBundle(files, compile, path);
  if (reading.kind === 'broken') return reading;
  const { manifest, snapshot } = reading.bundle;
  const problems = [...snapshot.state.sysctls].flatMap(([name, value]) => {
    const shown = quotePrintable(name);
    if (!/^net\.(ipv4|ipv6|netfilter|bridge)\.[\w.-]+$/.test(name))
      return [`sysctl.conf: ${shown} is not a network sysctl`];
    if (/^\d+$/.test(value)) return [];
    return [`sysctl.conf: ${shown} is set to ${quotePrintable(value)}, which is not a number`];
  });
  return findBroken(problems, manifest) ?? reading;
}

/** The state is the compiled one: equal bytes mean the same, so no tool's file is read back. */
function checkCompiled(meaning: BundleMeaning, files: BundleFiles, compile: Compile, path: string): BundleReading {
  const { manifest, cluster } = meaning;
  const lineOf = createLocatedLines('manifest.json', files.get('manifest.json') ?? '');
  const values = [
    ...checkManifestValues(manifest, lineOf),
    ...cut('services.json', checkServiceValues(cluster, manifest)),
  ];
  try {
    const compiled = snapshotOfBundle(meaning, compile, { name: path });
    // Files are compared themselves, so skip their checksums.
    const fresh = makeBundle(compiled, { ...freshTexts, digest: () => '' });
    const problems = [
      ...values,
      ...compareManifests(manifest, fresh.manifest, lineOf),
      ...bundleFileNames.flatMap((name) => cut(name, compareFiles(name, files.get(name), fresh.files.get(name)))),
    ];
    const state = { ...compiled.state, ipvsTimeouts: manifest.ipvsTimeouts ?? undefined };
    const snapshot = compiled.with({ state: () => state });
    return findBroken(problems, manifest) ?? { kind: 'bundle', bundle: { manifest, files, snapshot } };
  } catch (error) {
    // No rule can be written with some of these faults.
    const broken = findBroken(values, manifest);
    if (broken) return broken;
    throw error;
  }
}

/** Fields that follow from others and that kpc-apply uses or shows. */
const derived: readonly (keyof Manifest)[] = [
  ...(['kubeProxyVersion', 'mode', 'serviceCidrs', 'healthChecks', 'tools', 'counts'] as const),
];

function compareManifests(found: Manifest, fresh: Manifest, lineOf: LocatedLines): readonly string[] {
  const strangers = Object.keys(found.files).filter((name) => !bundleFileNames.some((known) => known === name));
  return [
    ...derived
      .filter((key) => JSON.stringify(found[key]) !== JSON.stringify(fresh[key]))
      .map((key) => lineOf([key], `${key} does not match services.json and the settings`)),
    ...strangers.map((name) =>
      lineOf(['files', name], `files lists ${quotePrintable(name)}, which is not a file of a bundle`),
    ),
  ];
}

/** Reports added lines, missing ones, or a different order. */
function compareFiles(name: string, found: string | undefined, fresh: string | undefined): readonly string[] {
  if (found === fresh) return [];
  if (found === undefined) return [`${name} is missing`];
  if (fresh === undefined) return [`${name}: a bundle of this mode and these families has no such file`];
  const [lines, freshLines] = [splitLines(found), splitLines(fresh)];
  const [missing, ...others] = linesBeyond(freshLines, lines);
  const extra = linesBeyond(lines, freshLines);
  const moved = lines.findIndex((line, i) => line !== freshLines[i]);
  const strange = extra.length > 0 || missing ? extra : [{ line: lines[moved] ?? '', number: moved + 1 }];
  const more = others.length > 0 ? ` and ${others.length} more` : '';
  return [
    ...strange.map(({ line, number }) => `${name}:${number}: not what kpc writes: ${printableLine(line)}`),
    ...(missing
      ? [`${name}:${missing.number}: what services.json calls for is missing: ${printableLine(missing.line)}${more}`]
      : []),
  ];
}

/** Keeps the line ends: the last line may have none. */
function splitLines(text: string): readonly string[] {
  return text.split(/(?<=\n)/);
}

function printableLine(line: string): string {
  return quotePrintable(line.replace(/\n$/, ''));
}

function linesBeyond(lines: readonly string[], others: readonly string[]) {
  const left = new Map<string, number>();
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1);
  return lines.flatMap((line, i) => {
    const count = left.get(line) ?? 0;
    if (count > 0) left.set(line, count - 1);
    return count > 0 ? [] : { line, number: i + 1 };
  });
}

const mostOfFile = 50;

function cut(name: string, problems: readonly string[]): readonly string[] {
  if (problems.length <= mostOfFile + 1) return problems;
  return [...problems.slice(0, mostOfFile), `${name}: and ${problems.length - mostOfFile} more of this kind`];
}
