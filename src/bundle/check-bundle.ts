import type { BundleFault, InFile } from '../base/findings/bundle.ts';
import { locatorIn, type LocateValue } from '../base/json/check.ts';
import { portChanges } from '../cluster/check-services.ts';
import { fullName } from '../cluster/objects.ts';
import { serviceName, type Cluster, type ServicePort } from '../cluster/model.ts';
import { isName } from '../base/names.ts';
import { type Address, families, type Network, unusableAs } from '../kernel/address.ts';
import { mostIpvsSeconds } from '../kernel/ipvs/ipvs.ts';
import { isModeOf } from '../kube-proxy/releases.ts';
import { findWrongSettings } from '../settings/table.ts';
import { settingsOf, type Manifest } from './manifest.ts';
import { bundleFileNames, type BundleFileName } from './state-files.ts';
import { freshTexts, makeBundle, type BundleFiles, type Compile } from './make-bundle.ts';
import {
  findBroken,
  readBundle,
  readBundleMeaning,
  snapshotOfBundle,
  type BundleMeaning,
  type BundleReading,
} from './read-bundle.ts';

/** Finds values of the right type that kpc would never write. */
export function checkManifestValues(
  manifest: Manifest,
  locate: (path: readonly string[]) => InFile = () => ({ file: 'manifest.json' }),
): readonly BundleFault[] {
  const { settings, node, families: chosen, ipvsTimeouts } = manifest;
  const isSelection = chosen.length > 0 && chosen.join() === families.filter((each) => chosen.includes(each)).join();
  const wrong: readonly { readonly name: string; readonly must?: string }[] = [
    ...(node.name === '' || isName(node.name, 'subdomain') ? [] : [{ name: 'node.name' }]),
    ...(isModeOf(manifest.mode, settingsOf(manifest).release) ? [] : [{ name: 'mode' }]),
    ...(isSelection ? [] : [{ name: 'families' }]),
    ...findWrongSettings(settings).map(({ name, must }) => ({ name: `settings.${name}`, must })),
    ...Object.entries(ipvsTimeouts ?? {}).flatMap(([field, seconds]) =>
      Number(seconds) > mostIpvsSeconds ? [{ name: `ipvsTimeouts.${field}` }] : [],
    ),
  ];
  return wrong.map((each) => ({ ...locate(each.name.split('.')), problem: 'value', ...each }));
}

const services = { file: 'services.json' } as const;

/** Finds values of the right type that no cluster can have. */
export function checkServiceValues(cluster: Cluster, { node }: Pick<Manifest, 'node'>): readonly BundleFault[] {
  const own = new Set([...node.hostAddresses, node.nodeIPs.ipv4, node.nodeIPs.ipv6]);
  return [...cluster.servicePorts.flatMap((port) => checkServicePort(port, own)), ...findOrphans(cluster)];
}

/** Finds ports whose Service is not listed. People review the list of Services, but kpc makes the rules from the ports. */
function findOrphans({ services: listed, servicePorts, healthChecks }: Cluster): readonly BundleFault[] {
  const known = new Set(listed.map(fullName));
  const named = [...servicePorts, ...healthChecks].map(serviceName);
  return [...new Set(named)]
    .filter((name) => !known.has(name))
    .map((name) => ({ ...services, problem: 'no-service', name }));
}

function checkServicePort(port: ServicePort, own: ReadonlySet<string>): readonly BundleFault[] {
  const { family, label: of } = port;
  const faults: BundleFault[] = [];
  const check = (what: string, { text, family: its }: Address | Network, uses: readonly Use[]): void => {
    const all = its === family ? uses : [...uses, 'of-other-family' as const];
    for (const is of all) if (is) faults.push({ ...services, problem: 'address', of, what, text, is });
  };
  // An external address may be the node's own address. A cluster IP must not be.
  const isOwn = own.has(port.clusterIP.text);
  check('cluster IP', port.clusterIP, [unusableAs(port.clusterIP), isOwn ? 'of-node' : undefined]);
  if (port.forwarding !== 'masquerade')
    for (const { label: name } of portChanges(port)) faults.push({ ...services, problem: 'value', name });
  for (const address of port.externalIPs) check('external IP', address, [unusableAs(address)]);
  for (const address of port.loadBalancerIPs) check('load balancer IP', address, [unusableAs(address)]);
  for (const range of port.sourceRanges) check('source range', range, []);
  for (const { address } of port.endpoints) check('endpoint', address, [unusableAs(address)]);
  return faults;
}

type AddressFault = Extract<BundleFault, { readonly problem: 'address' }>;
type Use = AddressFault['is'] | undefined;

/**
 * Reads a bundle that may come from an attacker. services.json and manifest.json must hold values that Kubernetes and kube-proxy allow.
 * Every other file must equal, byte by byte, what kpc compiles from them. A bundle can thus hold only the compiler's output.
 */
export function checkBundle(files: BundleFiles, compile: Compile, path = ''): BundleReading {
  const meaning = readBundleMeaning(files);
  if ('kind' in meaning) return meaning;
  return meaning.manifest.dumped ? checkDumped(files, compile, path) : checkCompiled(meaning, files, compile, path);
}

/** Checks a dump. A dump serves only for comparisons and has no Services to compile. */
function checkDumped(files: BundleFiles, compile: Compile, path: string): BundleReading {
  const reading = readBundle(files, compile, path);
  if (reading.kind === 'broken') return reading;
  const { manifest, snapshot } = reading.bundle;
  const problems = [...snapshot.state.sysctls].flatMap(([name, value]): readonly BundleFault[] => {
    const isRight = /^net\.(ipv4|ipv6|netfilter|bridge)\.[\w.-]+$/.test(name) && /^\d+$/.test(value);
    return isRight ? [] : [{ file: 'sysctl.conf', problem: 'value', name: `${name} = ${value}` }];
  });
  return findBroken(problems, manifest) ?? reading;
}

/** Takes the compiled state as the bundle's state. The tools' files have equal bytes, so they need not be parsed. */
function checkCompiled(meaning: BundleMeaning, files: BundleFiles, compile: Compile, path: string): BundleReading {
  const { manifest, cluster } = meaning;
  const locate = locatorIn('manifest.json', files.get('manifest.json') ?? '');
  const values = checkManifestValues(manifest, locate);
  const ofServices = checkServiceValues(cluster, manifest);
  try {
    const compiled = snapshotOfBundle(meaning, compile, { name: path });
    // The files themselves are compared, so their checksums are skipped.
    const fresh = makeBundle(compiled, { ...freshTexts, digest: () => '' });
    const problems = [
      ...values,
      ...compareManifests(manifest, fresh.manifest, locate),
      ...bundleFileNames.flatMap((name) => compareFiles(name, files.get(name), fresh.files.get(name))),
      ...ofServices,
    ];
    const state = { ...compiled.state, ipvsTimeouts: manifest.ipvsTimeouts ?? undefined };
    const snapshot = compiled.with({ state: () => state });
    return findBroken(problems, manifest) ?? { kind: 'bundle', bundle: { manifest, files, snapshot } };
  } catch (error) {
    // These faults are reported even if compiling fails, because with some of them no rule can be written.
    const broken = findBroken([...values, ...ofServices], manifest);
    if (broken) return broken;
    throw error;
  }
}

/** Fields that follow from other fields, and that kpc-apply uses or shows. */
const derived: readonly (keyof Manifest)[] = [
  ...(['kubeProxyVersion', 'mode', 'serviceCidrs', 'healthChecks', 'tools', 'counts'] as const),
];

function compareManifests(found: Manifest, fresh: Manifest, locate: LocateValue): readonly BundleFault[] {
  const strangers = Object.keys(found.files).filter((name) => !bundleFileNames.some((known) => known === name));
  return [
    ...derived
      .filter((key) => JSON.stringify(found[key]) !== JSON.stringify(fresh[key]))
      .map((name) => ({ ...locate([name]), problem: 'value', name }) as const),
    ...strangers.map((name) => ({ ...locate(['files', name]), problem: 'stray-file', name }) as const),
  ];
}

function compareFiles(
  name: BundleFileName,
  found: string | undefined,
  fresh: string | undefined,
): readonly BundleFault[] {
  if (found === fresh) return [];
  if (found === undefined) return [{ problem: 'no-file', name }];
  if (fresh === undefined) return [{ problem: 'stray-file', name }];
  const [lines, freshLines] = [found.split('\n'), fresh.split('\n')];
  const at = lines.findIndex((line, i) => line !== freshLines[i]);
  const line = at < 0 ? lines.length : at;
  return [{ file: name, line: line + 1, problem: 'line', text: lines[line], expected: freshLines[line] }];
}
