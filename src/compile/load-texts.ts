import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { describeEmptiness, type EmptyResultOptions } from './empty-result.ts';
import { isName } from '../base/object-names.ts';
import { parseAssignmentRanges, parsePodNetworks, type RangeFlags } from '../input/configuration/range-flags.ts';
import type { LoadedFiles } from '../input/files/load-files.ts';
import { readConfigText } from '../input/configuration/read-config.ts';
import { collectInputs, type Inputs } from '../input/read-inputs.ts';
import type { ProxyFlags } from '../kube-proxy/settings/table.ts';
import { resolveSettings } from '../input/configuration/resolve-settings.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import type { TextFile } from '../input/documents/text-file.ts';
import type { Address } from '../kernel/address.ts';
import { assumeCluster, describeAssumptions } from './assumptions.ts';
import { prepare, type Prepared, prepareForRelease } from './compile-node.ts';
import { parseHostAddresses, type HostText } from './host-addresses.ts';
import {
  parseVersionChoice,
  startingRelease,
  type VersionChoice,
  checkReleases,
  releaseOfNode,
} from './kubernetes-version.ts';

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
  return others.map(({ source }) => diagnose('duplicate-configuration', {}, source.place([])));
}

/** Everything read and checked; not to be compiled where a diagnostic is an error. */
export interface LoadedInputs {
  readonly prepared: Prepared;
  readonly version: VersionChoice;
  readonly hostAddresses: readonly Address[] | undefined;
  /** Whether --config or a file of -f holds a configuration of kube-proxy's. */
  readonly configured: boolean;
  /** Which mode was taken and why, if nothing names one. */
  readonly modeNote: Diagnostic | undefined;
  /** The objects as they were read. */
  readonly inputs: Inputs;
  /** Sorted by place. */
  readonly diagnostics: readonly Diagnostic[];
  /** The files read, by the names that diagnostics give them. */
  readonly files: Inputs['files'];
}

/** Reads what the texts hold, checks it, and says all that is wrong with it. */
export function loadTexts(texts: InputTexts, options: InputOptions): LoadedInputs {
  const { assume = false, namespace, skipInvalid, traffic, into } = options;
  const { networks, diagnostics: wrongNetworks } = parsePodNetworks(
    options.assumeEndpoints ?? (assume ? true : undefined),
  );
  const isTolerant = assume !== false && options.assumeEndpoints === undefined;
  const inputs = collectInputs(texts.manifests, {
    workloads: networks !== undefined,
    traffic,
    namespace,
    skipInvalid,
    into,
    isTolerant,
  });
  const config = texts.config && readConfigText(texts.config);
  const given = config ? config.config : inputs.configs[0];
  const version = parseVersionChoice(options.kubernetesVersion);
  const release = startingRelease(
    version.choice,
    inputs.nodes.map(({ object }) => object),
  );
  const facts = [...(config?.facts ?? []), ...inputs.facts];
  const known = facts.find(({ configures }) => configures);
  // What is made for kube-proxy itself counts more than what another program would make of its own configuration.
  const flags = given ? options : { ...known?.proxy, ...definedOf(options) };
  const { settings, gates, diagnostics: wrongSettings, modeNote } = resolveSettings(given, flags, release);
  const { ranges, diagnostics: wrongRanges } = parseAssignmentRanges({
    ...(inputs.serviceCidrs.length > 0 ? {} : facts[0]?.ranges),
    ...definedOf(options),
  });
  const host = texts.hostAddresses && parseHostAddresses(texts.hostAddresses);
  const assumptions = assume
    ? assumeCluster({
        inputs,
        ranges,
        podNetworks: networks ?? [],
        clusterCIDRs: settings.clusterCIDRs,
        nodeNames: [[options.node ?? []], settings.hostnameOverride].flat(2),
        ipFamily: options.ipFamily,
      })
    : undefined;
  const prepared = prepare(inputs, settings, gates, ranges, host?.addresses, networks, assumptions);
  const wrongFiles = skipInvalid ? findWrongFiles(texts.manifests, prepared.diagnostics) : undefined;
  if (wrongFiles) return loadTexts({ ...texts, manifests: wrongFiles }, options);
  const configured = config !== undefined || inputs.configs.length > 0 || known !== undefined;
  return {
    prepared,
    version: version.choice,
    hostAddresses: host?.addresses,
    configured,
    modeNote: configured && !given ? undefined : modeNote,
    inputs,
    files: new Map([...inputs.files, ...(config?.file ? [[config.file.name, config.file] as const] : [])]),
    diagnostics: sortDiagnostics([
      ...describeEmptiness(inputs, prepared, options),
      ...checkNamespace(namespace),
      ...(config ? [] : describeRivals(inputs.configs)),
      ...describeSkipped(inputs.skipped, networks !== undefined),
      ...inputs.diagnostics,
      ...(config?.diagnostics ?? []),
      ...version.diagnostics,
      ...wrongSettings,
      ...wrongRanges,
      ...wrongNetworks,
      ...(host?.diagnostics ?? []),
      ...(assumptions
        ? [
            ...describeAssumptions(assumptions, prepared, assume === 'by-default'),
            // One note is enough.
            ...prepared.diagnostics.filter(({ code }) => code !== 'assumed-endpoints'),
          ]
        : prepared.diagnostics),
    ]),
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

/** What was loaded, for one node: with --kubernetes-version auto as the kube-proxy that its Node object names sees it. */
export function settleVersion(loaded: LoadedInputs, nodeName: string): LoadedInputs {
  if (loaded.version.kind !== 'auto') return loaded;
  const found = releaseOfNode(loaded.prepared.nodes.get(nodeName), nodeName);
  if (found.kind === 'unknown') return { ...loaded, diagnostics: [found.diagnostic, ...loaded.diagnostics] };
  const { release, said } = found;
  const note = diagnose('kubernetes-version', { release, node: nodeName, version: said });
  const prepared = prepareForRelease(loaded.prepared, release);
  const faults = checkReleases(loaded.prepared, [prepared]);
  return { ...loaded, prepared, diagnostics: [...faults, note, ...loaded.diagnostics] };
}
