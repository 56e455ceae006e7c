import { endOfQuoted } from '../../base/json/locate.ts';
import { findMeantKind, findReader, isOfOtherVersion, isOfKubernetes, type AskedKinds } from './kinds.ts';
import { holdsPlaceholder } from '../files/not-manifests.ts';
import { isObject } from '../../base/json/check.ts';
import type { ObjectMeta, PodMaker, Labels } from '../../cluster/objects.ts';

/** Matches a line that is indented, or a field, item, bracket, comment or document marker. */
const plainAtMargin = /^(?:[A-Za-z][\w.-]*:(?:[ \t\r].*)?|[\]}-].*|#(?!@).*|[ \t](?![ \t]*(?:\{\{|\{%|<%|#@)).*|)\r?$/;

const head = /^(apiVersion|kind):[ \t]+(["']?)([\w./-]+)\2[ \t]*(?:#.*)?\r?$/;

/** Other programs' API groups that describe the cluster or list files of objects. */
const groupsRead = /^(?:kustomize\.config\.k8s\.io|kubeadm\.k8s\.io|kind\.x-k8s\.io)\//;

/** Texts that show that a ConfigMap or DaemonSet may hold a configuration that kpc reads. */
const programs = /kube-?proxy|kube-?apiserver|ClusterConfiguration/i;

/**
 * Returns the apiVersion and kind of an unparsable document whose kind kpc would skip, so that its faults do not matter. Undefined if the
 * document does not name both exactly once, each on its own line, or if an unindented line may belong to a template or another object.
 */
export function findUnreadKind(text: string, asked: AskedKinds): readonly [string, string] | undefined {
  const found = /^\s*\{/.test(text) ? findHeadOfJson(text) : findHeadOfYaml(text);
  const [apiVersion, kind] = [found?.get('apiVersion'), found?.get('kind')];
  if (apiVersion === undefined || kind === undefined) return undefined;
  return isSkipped(apiVersion, kind, text, asked) ? [apiVersion, kind] : undefined;
}

/** Returns undefined if a key is repeated, or a line may belong to another object. */
function findHeadOfYaml(text: string): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>();
  for (const line of text.split('\n')) {
    if (!plainAtMargin.test(line)) return undefined;
    if (!/^(?:apiVersion|kind):/.test(line)) continue;
    const [, name = '', , value = ''] = head.exec(line) ?? [];
    if (name === '' || found.has(name)) return undefined;
    found.set(name, value);
  }
  return found;
}

const jsonHead = /[ \t\r\n]*:[ \t\r\n]*"([\w./-]+)"/y;

/**
 * Returns undefined if "apiVersion" is repeated. A repeated one reveals a second object, even if unbalanced brackets hide where the first
 * object ends.
 */
function findHeadOfJson(text: string): ReadonlyMap<string, string> | undefined {
  if (/\{[{%]/.test(text) || text.split('"apiVersion"').length > 2) return undefined;
  const fields = new Map<string, string>();
  let depth = 0;
  const sign = /["{}[\]]/g;
  for (let found = sign.exec(text); found; found = sign.exec(text)) {
    const { 0: part, index } = found;
    if (part === '{' || part === '[') depth++;
    else if (part === '}' || part === ']') depth--;
    else {
      const end = endOfText(text, index);
      sign.lastIndex = jsonHead.lastIndex = end;
      const name = ['apiVersion', 'kind'].find((each) => text.startsWith(`"${each}"`, index));
      if (depth !== 1 || name === undefined) continue;
      const [, value] = jsonHead.exec(text) ?? [];
      if (value === undefined || fields.has(name)) return undefined;
      fields.set(name, value);
    }
  }
  return fields;
}

/** Returns the end of a JSON text, or of its line if the text is not closed there. */
function endOfText(text: string, start: number): number {
  const end = endOfQuoted(text, start) ?? text.length;
  const lineEnd = text.slice(start, end).indexOf('\n');
  return lineEnd < 0 ? end : start + lineEnd;
}

function isSkipped(apiVersion: string, kind: string, text: string, asked: AskedKinds): boolean {
  if (findReader(apiVersion, kind, asked) !== undefined || findMeantKind(apiVersion, kind, asked) !== undefined)
    return false;
  if (kind.endsWith('List') || groupsRead.test(apiVersion)) return false;
  if (holdsPlaceholder(kind) || holdsPlaceholder(apiVersion)) return false;
  return !(kind === 'ConfigMap' || kind === 'DaemonSet') || !programs.test(text);
}

export function nameSkipped(apiVersion: string, kind: string): string {
  if (apiVersion === 'v1' && kind === 'Config') return 'kubeconfig';
  return isOfOtherVersion(apiVersion, kind) ? `${kind} of ${apiVersion}` : kind;
}

/** The depth to search, which is enough for a template in a template in a list. */
const deepest = 12;

/** Kinds that make no Pods although their specs have fields of Pods. */
const podless = /^KafkaTopic\.|\.kyverno\.io$|\.image\.toolkit\.fluxcd\.io$/;

/** Returns undefined for an object that shows no sign of making Pods, such as one for a Secret, a certificate or a route. */
export function findPodMaker(
  { spec }: Readonly<Record<string, unknown>>,
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  { name, namespace }: Pick<ObjectMeta, 'name' | 'namespace'>,
): PodMaker | undefined {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  if (podless.test(`${kind}.${group}`)) return undefined;
  const templates: Labels[] = [];
  const namespaces = new Set<string>();
  let hasPods = false;
  search(spec, 0, (key, value, isOfPod) => {
    hasPods ||= isOfPod || isSignOfPods(key, value);
    if (isOfPod && /metadata$/i.test(key) && isObject(value) && isObject(value['labels']))
      templates.push(readLabels(value['labels']));
    if (/namespace$/i.test(key) && typeof value === 'string' && value !== namespace) namespaces.add(value);
  });
  const makes = isOfKubernetes(apiVersion) ? makesOfKubernetes(group, kind) : makesOfCustom(spec, hasPods);
  if (makes === undefined || (makes === 'templates' && templates.length === 0)) return undefined;
  return { kind, name, namespace, group, makes, templates, namespaces: [...namespaces] };
}

/** Controllers make Pods for a Gateway. */
function makesOfKubernetes(group: string, kind: string): PodMaker['makes'] {
  return kind === 'Gateway' && group !== '' ? 'pods' : 'templates';
}

function makesOfCustom(spec: unknown, hasPods: boolean): PodMaker['makes'] | undefined {
  const fields = isObject(spec) ? Object.keys(spec) : [];
  if (fields.length === 0) return 'unsaid';
  if (fields.some((field) => /^(?:chart(?:Ref)?|sources?|sourceRef)$/.test(field))) return 'objects';
  return hasPods ? 'pods' : undefined;
}

/** Reports whether only objects that make Pods have this field: the Pods' image, number, storage or account. */
function isSignOfPods(key: string, value: unknown): boolean {
  if (typeof value === 'number') return /^(?:replicas|members|count|clusterSize)$|instances$/i.test(key);
  if (key === 'resources') return isObject(value) && (isObject(value['requests']) || isObject(value['limits']));
  return /^(?:containers|storage|serviceAccountName)$|image(?:Name)?$|^volumeClaimTemplates?$/i.test(key);
}

/**
 * Reports whether a field holds a Pod's metadata or template. The template must have a spec, because a Secret's template, for example, has
 * none.
 */
function isPodTemplate(key: string, value: unknown): boolean {
  return (
    /^pod(?:Template|Metadata)?$/i.test(key) || (/template$/i.test(key) && isObject(value) && isObject(value['spec']))
  );
}

function search(
  value: unknown,
  depth: number,
  visit: (key: string, value: unknown, isOfPod: boolean) => void,
  isOfPod = false,
): void {
  if (depth > deepest || typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const isInner = isOfPod || isPodTemplate(key, inner);
    visit(key, inner, isInner);
    search(inner, depth + 1, visit, isInner);
  }
}

function readLabels(labels: Readonly<Record<string, unknown>>): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([, text]) => typeof text === 'string')) as Labels;
}
