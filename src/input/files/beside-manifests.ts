import { baseName } from '../../base/names.ts';
import type { InputDocument } from '../documents/document.ts';
import type { TextFile } from '../documents/text-file.ts';

/** Files that charts and kustomize have beside their manifests. */
const otherFiles = /^(?:Chart\.(?:ya?ml|lock)|values[^/]*\.ya?ml|kustomization\.ya?ml)$/;

/**
 * Whether a document of a folder's file is plainly another program's: no mapping, or one that has nothing that marks an
 * object of Kubernetes. One that has some of it, and lacks its kind, is a mistake to report.
 */
export function isForeign({ file, value }: InputDocument): boolean {
  if (!file.origin) return false;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
  const { apiVersion, kind } = value as Readonly<Record<string, unknown>>;
  if (isWord(apiVersion) && isWord(kind)) return false;
  if (otherFiles.test(baseName(file.name))) return true;
  const hasShape = Object.hasOwn(value, 'metadata') || Object.hasOwn(value, 'spec') || Object.hasOwn(value, 'items');
  return !hasShape && !(isWord(apiVersion) && Object.hasOwn(value, 'kind'));
}

function isWord(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Whether a folder's file that cannot be read as YAML is not for Kubernetes: nothing in it looks like an object. */
export function isForeignText({ origin, text }: TextFile): boolean {
  return (
    origin !== undefined && !/^[ \t-]*["']?(?:apiVersion|kind)["']?[ \t]*:/m.test(text) && !/"kind"\s*:/.test(text)
  );
}

/** What makes objects of a file of a chart or of kustomize that was named itself; undefined for any other. */
export function findMaker(name: string): 'helm' | 'kustomize' | undefined {
  const file = baseName(name);
  if (/^kustomization\.ya?ml$/.test(file)) return 'kustomize';
  return otherFiles.test(file) ? 'helm' : undefined;
}
