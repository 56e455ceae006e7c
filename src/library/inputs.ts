// The texts and options that a program hands over, checked.
import { findNearest } from '../base/names.ts';
import { ipFamilyChoices, type IpFamilyChoice } from '../snapshot/open/choose-families.ts';
import type { InputOptions as PipelineOptions, InputTexts } from '../snapshot/open/load-texts.ts';
import { TextFile } from '../input/documents/text-file.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Release } from '../kube-proxy/releases.ts';
import type { OpenOptions } from './options.ts';

/** A text, with the name that diagnostics give it: the path of a file, say. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** Throws for an option with an unknown name: a program without types would not learn that it is ignored. */
export function checkOptionNames(options: object, known: readonly string[]): void {
  const strange = Object.keys(options).find((name) => !known.includes(name));
  if (strange === undefined) return;
  const near = findNearest(strange, known);
  throw new TypeError(`no option "${strange}"${near === undefined ? '' : `: did you mean ${near}?`}`);
}

/** Texts by name: a Map or an object from name to text, or a list of { name, text }. */
export type Texts = ReadonlyMap<string, string> | Readonly<Record<string, string>> | readonly NamedText[];

/** Throws if a program without types passes something else, such as a buffer or a path. */
function checkText(value: NamedText, what: string): NamedText {
  const { name, text } = (value ?? {}) as Partial<Record<'name' | 'text', unknown>>;
  if (typeof name === 'string' && typeof text === 'string') return value;
  throw new TypeError(`${what} is not { name, text } with two strings`);
}

/** Texts by name. Throws if one is not text. */
export function mapOf(texts: Texts, what: string): ReadonlyMap<string, string> {
  return new Map(listOf(texts, what).map(({ name, text }) => [name, text]));
}

/** A list of texts, in their order. Throws if one is not text. */
export function listOf(texts: Texts, what: string): readonly NamedText[] {
  if (Array.isArray(texts)) return texts.map((each: NamedText) => checkText(each, `one of ${what}`));
  if (typeof texts !== 'object' || texts === null) {
    throw new TypeError(`${what} is not a Map, an object or an array of texts`);
  }
  const entries: readonly (readonly [string, unknown])[] =
    texts instanceof Map ? [...(texts as ReadonlyMap<string, unknown>)] : Object.entries(texts);
  return entries.map(([name, text]) => {
    if (typeof text !== 'string') throw new TypeError(`${what}: ${name} is not a string`);
    return { name, text };
  });
}

export { checkFlags, checkValues, type GivenFlags } from '../snapshot/open/compile.ts';

/** What is compiled for one node or for many, and how: the flags of `kpc compile`, under their names in camel case. */
export interface InputOptions extends OpenOptions {
  readonly proxyMode?: ProxyMode | undefined;
  /** Services, EndpointSlices, Endpoints and Nodes, in YAML or JSON. */
  readonly manifests: Texts;
  /** kube-proxy's configuration: a KubeProxyConfiguration, or the ConfigMap that holds one. */
  readonly config?: NamedText | undefined;
  /** "auto" takes the families that the Services and the node use; so does leaving it out. */
  readonly ipFamily?: IpFamilyChoice | undefined;
  /** The release of Kubernetes whose kube-proxy is meant, "1.30" or "auto": the one that the Node names. */
  readonly kubernetesVersion?: Release | 'auto' | undefined;
  /** The networks of the Pods that workloads are taken to have, or true for the known ones; nothing is assumed without it. */
  readonly assumeEndpoints?: string | true | undefined;
  /**
   * Assume what manifests from git lack: addresses, node ports, ready Pods and Nodes. By default compile does not, and what
   * only looks (trace, test, equivalence, migrate) does.
   */
  readonly assume?: boolean | undefined;
  /** The namespace of objects that name none. */
  readonly namespace?: string | undefined;
  /** Leave out objects with errors, and those defined twice, and continue with the others. */
  readonly skipInvalid?: boolean | undefined;
  /** Compile even if the result programs nothing: on a node that removes all Services. */
  readonly allowEmpty?: boolean | undefined;
}

/** The texts of the options. Throws a TypeError for what is not one. */
export function textsOf({ manifests, config }: InputOptions, hostAddresses: NamedText | undefined): InputTexts {
  const files = listOf(manifests, 'manifests').map(({ name, text }) => new TextFile(name, text));
  const configText = config && checkText(config, 'config');
  return {
    manifests: { files, diagnostics: [] },
    config: configText && new TextFile(configText.name, configText.text),
    hostAddresses: hostAddresses && checkText(hostAddresses, 'hostAddresses'),
  };
}

/** The options as the pipeline takes them, for a result that is written. */
export function pipelineOptions(options: InputOptions & { readonly node?: string | undefined }): PipelineOptions {
  return { ...shownOptions(options), emptyResult: options.allowEmpty === true ? 'allowed' : 'of-a-cluster' };
}

/** The options as the pipeline takes them, for a result that is only shown. */
export function shownOptions<Options extends Omit<InputOptions, 'manifests' | 'config'>>({
  ipFamily = 'auto',
  allowEmpty: _,
  ...options
}: Options) {
  if (!ipFamilyChoices.includes(ipFamily)) {
    throw new TypeError(`ipFamily is not one of ${ipFamilyChoices.join(', ')}`);
  }
  return { ...options, ipFamily };
}
