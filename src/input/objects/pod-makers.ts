import { isObject } from '../../base/json/check.ts';
import type { ObjectMeta } from '../../cluster/objects.ts';
import { isOfKubernetes } from './kinds.ts';

type Labels = ObjectMeta['labels'];

/** An object that kpc does not read, and that may make Pods: a CronJob, or one of a kind that another program defined. */
export interface PodMaker extends Pick<ObjectMeta, 'name' | 'namespace'> {
  readonly kind: string;
  /** "argoproj.io"; '' for the core group. */
  readonly group: string;
  /** Whether another program defined its kind. Its Pods may then have labels that no template shows. */
  readonly isCustom: boolean;
  /** The labels of each of its templates. */
  readonly templates: readonly Labels[];
  /** Other namespaces that it names: what it makes may be there. */
  readonly namespaces: readonly string[];
}

/** Deep enough for a template in a template in a list. */
const deepest = 12;

/** Returns undefined for an object of Kubernetes' own kinds that has no template. */
export function findPodMaker(
  { spec }: Readonly<Record<string, unknown>>,
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  { name, namespace }: Pick<ObjectMeta, 'name' | 'namespace'>,
): PodMaker | undefined {
  const isCustom = !isOfKubernetes(apiVersion);
  const templates: Labels[] = [];
  const namespaces = new Set<string>();
  search(spec, 0, (key, value) => {
    if (/metadata$/i.test(key) && isObject(value) && isObject(value['labels']))
      templates.push(readLabels(value['labels']));
    if (/namespace$/i.test(key) && typeof value === 'string' && value !== namespace) namespaces.add(value);
  });
  if (!isCustom && templates.length === 0) return undefined;
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return { kind, name, namespace, group, isCustom, templates, namespaces: [...namespaces] };
}

function search(value: unknown, depth: number, visit: (key: string, value: unknown) => void): void {
  if (depth > deepest || typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    visit(key, inner);
    search(inner, depth + 1, visit);
  }
}

function readLabels(labels: Readonly<Record<string, unknown>>): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([, text]) => typeof text === 'string')) as Labels;
}
