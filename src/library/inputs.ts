// Checks the texts and options that a program passes.
import { findNearest } from '../base/names.ts';
import { type IpFamilyChoice, ipFamilyChoices } from '../snapshot/open/assumptions.ts';
import type { LoadOptions as PipelineOptions, InputTexts } from '../snapshot/open/load-texts.ts';
import { TextFile, type FolderOrigin } from '../input/documents/text-file.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Release } from '../kube-proxy/releases.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { CommonOptions } from './options.ts';
import { misuse } from './words.ts';

/** `name`: the text's name in diagnostics, for example a path. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
  /** The folder in which the file was found. A file from a folder is skipped instead of refused if it is clearly not a manifest. */
  readonly origin?: FolderOrigin | undefined;
}

export function findEmpty(options: object): string | undefined {
  return Object.entries(options).find(([, value]) => value === '')?.[0];
}

/** Throws a TypeError for an unknown or empty option. Otherwise a program without types would not notice that the option is ignored. */
export function checkOptionNames(options: object | null | undefined, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    misuse({ problem: 'wrong-argument', what: 'options', is: 'object' });
  const strange = Object.keys(options).find((name) => !known.includes(name));
  if (strange !== undefined) misuse({ problem: 'no-option', name: strange, near: findNearest(strange, known) });
  const empty = findEmpty(options);
  if (empty !== undefined) misuse({ problem: 'wrong-argument', what: empty, is: 'filled' });
}

/** A Map or an object from name to text, or a list of { name, text }. */
export type Texts = ReadonlyMap<string, string> | Readonly<Record<string, string>> | readonly NamedText[];

/** Throws a TypeError if the value is not a named text. A program without types may pass a buffer or a path. */
export function checkText(value: NamedText, what: string): NamedText {
  const { name, text } = (value ?? {}) as Partial<Record<'name' | 'text', unknown>>;
  if (typeof name === 'string' && typeof text === 'string') return value;
  return misuse({ problem: 'wrong-argument', what, is: 'text' });
}

/** Throws a TypeError if the value is not a snapshot. A program without types may pass undefined if it could not read its input. */
export function expectSnapshot(value: Snapshot, what: string, is: 'snapshot' | 'side' = 'snapshot'): void {
  const { kind } = (value ?? {}) as Partial<Snapshot>;
  if (kind === undefined) misuse({ problem: 'wrong-argument', what, is });
}

export function mapTexts(texts: Texts, what: string): ReadonlyMap<string, string> {
  return byName(listTexts(texts, what));
}

function byName(texts: readonly NamedText[]): ReadonlyMap<string, string> {
  return new Map(texts.map(({ name, text }) => [name, text]));
}

/** Returns each text once, in order. Throws a TypeError if different texts share a name, which messages could not tell apart. */
export function eachOnce(texts: readonly NamedText[], what: string): readonly NamedText[] {
  const first = new Map<string, NamedText>();
  for (const each of texts) {
    const other = first.get(each.name);
    if (other && other.text !== each.text) misuse({ problem: 'same-name', what, name: each.name });
    first.set(each.name, other ?? each);
  }
  return [...first.values()];
}

/** Lists texts in their order. Throws a TypeError for a value that is not a text, and if different texts have the same name. */
export function listTexts(texts: Texts, what: string): readonly NamedText[] {
  if (Array.isArray(texts))
    return eachOnce(
      texts.map((each: NamedText) => checkText(each, `one of ${what}`)),
      what,
    );
  if (typeof texts !== 'object' || texts === null) return misuse({ problem: 'wrong-argument', what, is: 'texts' });
  const entries: readonly (readonly [string, unknown])[] =
    texts instanceof Map ? [...(texts as ReadonlyMap<string, unknown>)] : Object.entries(texts);
  return entries.map(([name, text]) => {
    if (typeof text !== 'string') return misuse({ problem: 'wrong-argument', what: `${what}: ${name}`, is: 'string' });
    return { name, text };
  });
}

export { parseVersionChoice } from '../snapshot/open/load-texts.ts';
export { checkFlags, checkValues, type GivenFlags } from '../snapshot/open/compile.ts';

/** The input to compile, and how to compile it. The options are `kpc compile`'s flags, in camel case. */
export interface InputOptions extends CommonOptions {
  readonly proxyMode?: ProxyMode | undefined;
  /** Services, EndpointSlices, Endpoints and Nodes, in YAML or JSON. */
  readonly manifests: Texts;
  /** kube-proxy's configuration: a KubeProxyConfiguration, or a ConfigMap that holds one. */
  readonly config?: NamedText | undefined;
  /** "auto", the default, means the families that the Services and the node use. */
  readonly ipFamily?: IpFamilyChoice | undefined;
  /** The Kubernetes release of kube-proxy, such as "1.30". "auto" means the release that the Node names. */
  readonly kubernetesVersion?: Release | 'auto' | undefined;
  /** The networks for the Pods to assume for workloads. true means the known networks. By default, no Pods are assumed. */
  readonly assumeEndpoints?: string | true | undefined;
  /**
   * Whether to assume what manifests from git lack: addresses, node ports, ready Pods and Nodes. The default is false for compile, and true
   * for trace, test, equivalence and migrate.
   */
  readonly assume?: boolean | undefined;
  /** The namespace for objects that do not name one. */
  readonly namespace?: string | undefined;
  /** Whether to leave out duplicates and objects with errors, and continue with all other objects. */
  readonly skipInvalid?: boolean | undefined;
  /** Whether to compile even if the result programs nothing. Such a result would remove all Services from a node. */
  readonly allowEmpty?: boolean | undefined;
}

/** Throws a TypeError for a value that is not a text. */
export function readInputTexts({ manifests, config }: InputOptions, hostAddresses: NamedText | undefined): InputTexts {
  const files = listTexts(manifests, 'manifests').map(({ name, text, origin }) => new TextFile(name, text, origin));
  const configText = config && checkText(config, 'config');
  return {
    manifests: { files, diagnostics: [] },
    config: configText && new TextFile(configText.name, configText.text),
    hostAddresses: hostAddresses && checkText(hostAddresses, 'hostAddresses'),
  };
}

export function pipelineOptions(options: InputOptions & { readonly node?: string | undefined }): PipelineOptions {
  return { ...shownOptions(options), emptyResult: options.allowEmpty === true ? 'allowed' : 'of-a-cluster' };
}

export function shownOptions<Options extends Omit<InputOptions, 'manifests' | 'config'>>({
  ipFamily = 'auto',
  allowEmpty: _,
  ...options
}: Options) {
  if (!ipFamilyChoices.includes(ipFamily))
    misuse({ problem: 'not-one-of', option: 'ipFamily', values: ipFamilyChoices });
  return { ...options, ipFamily };
}
