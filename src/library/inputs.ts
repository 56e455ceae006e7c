import { ipFamilyChoices, type IpFamilyChoice } from '../snapshot/open/choose-families.ts';
import type { InputOptions as PipelineOptions, InputTexts } from '../snapshot/open/load-texts.ts';
import { TextFile } from '../input/documents/text-file.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import type { Release } from '../kube-proxy/releases.ts';
import type { OpenOptions } from './options.ts';
import { checkText, listOf, type NamedText, type Texts } from './texts.ts';

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
