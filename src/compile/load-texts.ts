import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { describeEmptiness, type EmptyResultOptions } from './empty-result.ts';
import { isName } from '../base/object-names.ts';
import { parseAssignmentRanges, parsePodNetworks, type RangeFlags } from '../input/configuration/range-flags.ts';
import type { LoadedFiles } from '../input/files/load-files.ts';
import { readConfigText, type ConfigFile } from '../input/configuration/read-config.ts';
import { collectInputs, type Inputs } from '../input/read-inputs.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { FeatureGates, Release } from '../kube-proxy/releases.ts';
import type { ProxyFlags } from '../kube-proxy/settings/table.ts';
import { resolveSettings } from '../input/configuration/resolve-settings.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import type { TextFile } from '../input/documents/text-file.ts';
import type { Address } from '../kernel/address.ts';
import { assumeCluster, describeAssumptions } from './assumptions.ts';
import { prepare, type Prepared } from './compile-node.ts';
import { parseHostAddresses, type HostText } from './host-addresses.ts';
import { parseVersionChoice, startingRelease, type VersionChoice } from './kubernetes-version.ts';

/** All texts that a node is compiled from; a diagnostic in the place of one that cannot be read. */
export interface InputTexts {
  readonly manifests: LoadedFiles;
  /** kube-proxy's configuration, if it is not among the manifests. */
  readonly config: TextFile | Diagnostic | undefined;
  /** What `ip -j addr` printed on the node. */
  readonly hostAddresses: HostText | Diagnostic | undefined;
}

/** What says how manifests are compiled, under the names of the flags. */
export interface InputOptions extends ProxyFlags, RangeFlags, EmptyResultOptions {
  readonly kubernetesVersion?: string | undefined;
  /** Of objects that name none. */
  readonly namespace?: string | undefined;
  /** Whether files with errors are left out, instead of being errors. */
  readonly skipInvalid?: boolean | undefined;
  /** Whether NetworkPolicies, Ingresses and Namespaces are read too. */
  readonly traffic?: boolean | undefined;
  /** The networks of the Pods that workloads are taken to have, or true (or auto) for the known ones. */
  readonly assumeEndpoints?: string | true | undefined;
  /** Whether to assume what manifests from git lack: addresses, node ports, Pods and Nodes. */
  readonly assume?: boolean | 'by-default' | undefined;
  /** The nodes to compile for, by name. */
  readonly node?: string | readonly string[] | undefined;
}

/** Of several configurations none is better than the others, and the order of files must not choose. */
function describeRivals([, ...others]: Inputs['configs']): readonly Diagnostic[] {
  return others.map(({ source }) =>
    diagnose('duplicate-object', { what: 'configuration', where: 'input' }, source.place([])),
  );
}

/** How kube-proxy is set up, by flags and configurations. */
interface ReadSettings {
  readonly version: VersionChoice;
  readonly settings: ProxySettings;
  readonly gates: FeatureGates;
  /** Whether --config or a file of -f holds a configuration of kube-proxy's. */
  readonly configured: boolean;
  /** Which mode was taken and why, if nothing names one. */
  readonly modeNote: Diagnostic | undefined;
  /** What is wrong with the settings as the kube-proxy of a release sees them. */
  readonly checkSettings: (release: Release) => readonly Diagnostic[];
}

/** Everything read and checked; not to be compiled where a diagnostic is an error. */
export interface LoadedInputs extends Omit<ReadSettings, 'settings' | 'gates'> {
  readonly prepared: Prepared;
  readonly hostAddresses: readonly Address[] | undefined;
  /** The objects as they were read. */
  readonly inputs: Inputs;
  /** Sorted by place. */
  readonly diagnostics: readonly Diagnostic[];
  /** The files read, by the names that diagnostics give them. */
  readonly files: Inputs['files'];
}

/** Reads what the texts hold, checks it, and says all that is wrong with it. */
export function loadTexts(texts: InputTexts, options: InputOptions): LoadedInputs {
  const { assume = false, assumeEndpoints, ipFamily, namespace, skipInvalid, traffic, into } = options;
  const pods = parsePodNetworks(assumeEndpoints ?? (assume ? true : undefined));
  const workloads = pods.networks !== undefined;
  const isTolerant = assume !== false && assumeEndpoints === undefined;
  const inputs = collectInputs(texts.manifests, { workloads, traffic, namespace, skipInvalid, into, isTolerant });
  const config = texts.config && readConfigText(texts.config);
  const facts = [...(config?.facts ?? []), ...inputs.facts];
  const { settings, gates, diagnostics: wrongSettings, ...read } = readSettings(inputs, config, facts, options);
  const { ranges, diagnostics: wrongRanges } = parseAssignmentRanges({
    ...(inputs.serviceCidrs.length > 0 ? {} : facts[0]?.ranges),
    ...definedOf(options),
  });
  const host = texts.hostAddresses && parseHostAddresses(texts.hostAddresses);
  const assumptions = assume
    ? assumeCluster(inputs, [options.node ?? []].flat(), ipFamily, settings, ranges, pods.networks ?? [])
    : undefined;
  const prepared = prepare(inputs, settings, gates, {
    ranges,
    hostAddresses: host?.addresses,
    assumedNetworks: pods.networks,
    assumptions,
  });
  const wrongFiles = skipInvalid ? findWrongFiles(texts.manifests, prepared.diagnostics) : undefined;
  if (wrongFiles) return loadTexts({ ...texts, manifests: wrongFiles }, options);
  return {
    ...read,
    prepared,
    hostAddresses: host?.addresses,
    inputs,
    files: new Map([...inputs.files, ...(config?.file ? [[config.file.name, config.file] as const] : [])]),
    diagnostics: sortDiagnostics([
      ...describeEmptiness(inputs, prepared, options),
      ...checkNamespace(namespace),
      ...describeSkipped(inputs.skipped, workloads),
      ...inputs.diagnostics,
      ...(config?.diagnostics ?? describeRivals(inputs.configs)),
      ...wrongSettings,
      ...wrongRanges,
      ...pods.diagnostics,
      ...(host?.diagnostics ?? []),
      // One note on what is assumed is enough.
      ...prepared.diagnostics.filter(({ code }) => !assumptions || code !== 'assumed-endpoints'),
      ...(assumptions ? describeAssumptions(assumptions, prepared, assume === 'by-default') : []),
    ]),
  };
}

function readSettings(
  { configs, nodes }: Inputs,
  config: ConfigFile | undefined,
  facts: ConfigFile['facts'],
  options: InputOptions,
): ReadSettings & { readonly diagnostics: readonly Diagnostic[] } {
  const given = config ? config.config : configs[0];
  const known = facts.find(({ configures }) => configures);
  const configured = config !== undefined || configs.length > 0 || known !== undefined;
  // What is made for kube-proxy itself counts more than what another program would make of its own configuration.
  const flags = given ? options : { ...known?.proxy, ...definedOf(options) };
  const { choice: version, diagnostics: wrongVersion } = parseVersionChoice(options.kubernetesVersion);
  const started = startingRelease(
    version,
    nodes.map(({ object }) => object),
  );
  const { settings, gates, diagnostics, modeNote } = resolveSettings(given, flags, started);
  return {
    version,
    settings,
    gates,
    configured,
    modeNote: configured && !given ? undefined : modeNote,
    checkSettings: (release) => resolveSettings(given, flags, release).diagnostics,
    diagnostics: [...wrongVersion, ...diagnostics],
  };
}

/** The manifests without the files of which one object cannot be compiled beside the others; undefined if there are none. */
function findWrongFiles(
  { files, diagnostics, unreadable = [] }: LoadedFiles,
  found: readonly Diagnostic[],
): LoadedFiles | undefined {
  const wrong = new Map<string, Diagnostic>();
  for (const diagnostic of found) {
    const name = diagnostic.place?.file;
    if (name !== undefined && isError(diagnostic) && !wrong.has(name)) wrong.set(name, diagnostic);
  }
  const left = files.filter(({ name }) => !wrong.has(name));
  if (left.length === files.length) return undefined;
  return { files: left, diagnostics, unreadable: [...unreadable, ...wrong.values()] };
}

/** The options that are given: one that is undefined takes no other's place. */
function definedOf<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** What is wrong with a namespace after --namespace. */
export function checkNamespace(namespace: string | undefined): readonly Diagnostic[] {
  if (namespace === undefined || isName(namespace, 'label')) return [];
  return [diagnose('bad-name', { field: '--namespace', value: namespace, rule: 'label' })];
}

/** Objects of other kinds are no fault, but a user may wonder where they went. */
function describeSkipped(skipped: Inputs['skipped'], assumes: boolean): readonly Diagnostic[] {
  if (skipped.size === 0) return [];
  const kinds = [...skipped]
    .toSorted(([a, countOfA], [b, countOfB]) => countOfB - countOfA || (a < b ? -1 : 1))
    .map(([kind, count]) => ({ kind, count }));
  return [diagnose('skipped-kinds', { kinds, leavesOutCronJobs: assumes && skipped.has('CronJob') })];
}
