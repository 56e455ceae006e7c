import type { Finding } from '../../base/findings/finding.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import type { Location, Place } from '../../kernel/place.ts';
import type { InputDocument } from '../documents/document.ts';
import { readDocuments } from '../documents/read-documents.ts';
import { TextFile } from '../documents/text-file.ts';
import { fieldsOf } from './cluster-config.ts';

/** The key of kube-proxy's ConfigMap that kubeadm writes. */
const usualKey = 'config.conf';

/**
 * The keys of a ConfigMap that may hold a KubeProxyConfiguration: config.conf with kubeadm, config on EKS, others
 * elsewhere. The kubeconfig beside it never names the kind.
 */
function findConfigKeys(data: unknown): readonly string[] {
  return Object.entries(fieldsOf(data)).flatMap(([key, text]) => {
    if (typeof text !== 'string') return [];
    return key === usualKey || /KubeProxyConfiguration|kind: ClusterConfiguration/.test(text) ? [key] : [];
  });
}

/** The documents inside an object, and the diagnostics about them. */
interface Unpacked {
  readonly documents: readonly InputDocument[];
  readonly diagnostics: readonly Finding[];
}

/** The documents inside a ConfigMap that kpc reads settings from, with their places in the file. */
export function unpackConfigMap(document: InputDocument): Unpacked {
  const { data } = fieldsOf(document.value);
  const unpacked = findConfigKeys(data).map((key) => unpackKey(document, key, String(fieldsOf(data)[key])));
  const documents = unpacked.flatMap((each) => each.documents);
  return {
    documents: documents.filter(({ value }) =>
      /^(?:KubeProxy|Cluster)Configuration$/.test(String(fieldsOf(value)['kind'])),
    ),
    diagnostics: unpacked.flatMap((each) => each.diagnostics),
  };
}

function unpackKey({ file, source }: InputDocument, key: string, text: string): Unpacked {
  const inner = readDocuments(new TextFile(file.name, text));
  const outerPlace = (place: Place): Place => {
    const field = source.place(['data', key]);
    return { file: field.file, locate: () => moveLocation(file, text, field.locate(), place.locate()) };
  };
  return {
    documents: inner.documents.map(({ value, source: own }) => {
      const place = (path: FieldPath): Place => outerPlace(own.place(path));
      const keyPlace = (path: FieldPath): Place => outerPlace(own.keyPlace(path));
      return { file, value, source: { place, keyPlace, written: (path) => own.written(path) } };
    }),
    diagnostics: inner.diagnostics.map((each) => ({ ...each, place: each.place && outerPlace(each.place) })),
  };
}

/**
 * Converts a location in a field's text to one in the file around it. A YAML literal block ("|") has the same lines
 * there, indented further; for other styles, the field's own location is the nearest.
 */
function moveLocation(file: TextFile, text: string, field: Location, inner: Location): Location {
  if (file.lineAt(field.line).charAt(field.column - 1) !== '|') return field;
  const lines = text.split('\n');
  const sample = lines.findIndex((line) => line.trim() !== '');
  const indent = sample < 0 ? 0 : file.lineAt(field.line + 1 + sample).length - (lines[sample] ?? '').length;
  return { file: field.file, line: field.line + inner.line, column: inner.column + Math.max(0, indent) };
}
