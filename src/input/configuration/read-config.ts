import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { findingOf } from '../../diagnostics/fields.ts';
import type { FieldPath, Sourced } from '../../cluster/objects.ts';
import type { Location, Place } from '../../kernel/place.ts';
import { fieldsOf, readClusterFacts, type ClusterFacts } from './cluster-config.ts';
import { placeAt, subSource, type InputDocument } from '../documents/document.ts';
import type { KubeProxyConfig } from '../objects/schemas/kube-proxy-configuration.ts';
import { readDocuments } from '../documents/read-documents.ts';
import { Report } from '../objects/report.ts';
import { sortDiagnostics } from '../sort-diagnostics.ts';
import { TextFile } from '../documents/text-file.ts';
import { Validator } from '../objects/validate.ts';

/** What --config names. Without a config there is an error among the diagnostics. */
export interface ConfigFile {
  readonly config: Sourced<KubeProxyConfig> | undefined;
  /** What it also says about the cluster, or in another program's words. */
  readonly facts: readonly ClusterFacts[];
  readonly diagnostics: readonly Diagnostic[];
  /** The file, if it could be read. */
  readonly file: TextFile | undefined;
}

/** Reads a KubeProxyConfiguration, or the ConfigMap that holds one, under whatever key; a diagnostic is why there is no text. */
export function readConfigText(file: TextFile | Diagnostic): ConfigFile {
  if (!(file instanceof TextFile)) return { config: undefined, facts: [], diagnostics: [file], file: undefined };
  const read = readConfig(file);
  return { ...read, diagnostics: sortDiagnostics(read.diagnostics), file };
}

const version = 'kubeproxy.config.k8s.io/v1alpha1';

/** Reads the configuration in a text that has been read. */
export function readConfig(file: TextFile): Omit<ConfigFile, 'file'> {
  const { documents, diagnostics: faults } = readDocuments(file);
  const unpacked = documents.flatMap(unpackList).map((document) => unpackConfigMap(document));
  const diagnostics = [...faults, ...unpacked.flatMap((each) => each.diagnostics)];
  const inner = unpacked.flatMap((each) => each.documents);
  const facts = inner.flatMap(({ value, source }) => readClusterFacts(fieldsOf(value), source) ?? []);
  const found = inner.filter(isConfig);
  const [first, ...others] = found.filter(({ value }) => fieldsOf(value)['apiVersion'] === version);
  if (!first) {
    const isExplained = diagnostics.length > 0 || facts.some(({ configures }) => configures);
    const [other] = found;
    const absence = other
      ? diagnose(
          'no-config',
          { apiVersion: findingOf(fieldsOf(other.value)['apiVersion']) },
          other.source.place(['apiVersion']),
        )
      : diagnose('no-config', {}, placeAt(file, 0));
    return { config: undefined, facts, diagnostics: isExplained ? diagnostics : [absence] };
  }
  for (const { source } of others) {
    diagnostics.push(diagnose('duplicate-configuration', {}, source.place([])));
  }
  const report = new Report(first.source);
  const object = new Validator().validate('KubeProxyConfiguration', first.value, report);
  return {
    config: object && { object, source: first.source },
    facts,
    diagnostics: [...diagnostics, ...report.diagnostics],
  };
}

function isConfig({ value }: InputDocument): boolean {
  return fieldsOf(value)['kind'] === 'KubeProxyConfiguration';
}

/** Whether a document inside a ConfigMap is one that kpc reads settings from. */
export function isClusterConfig(document: InputDocument): boolean {
  return isConfig(document) || fieldsOf(document.value)['kind'] === 'ClusterConfiguration';
}

/** The items of a List, as kubectl prints several objects; any other document as it is. */
function unpackList(document: InputDocument): readonly InputDocument[] {
  const { kind, items } = fieldsOf(document.value);
  if ((kind !== 'List' && kind !== 'ConfigMapList') || !Array.isArray(items)) return [document];
  return items.map((value: unknown, i) => ({
    file: document.file,
    // The items of a ConfigMapList may leave out their kind.
    value: kind === 'List' ? value : { kind: 'ConfigMap', ...fieldsOf(value) },
    source: subSource(document.source, ['items', i]),
  }));
}

/** The key of kube-proxy's ConfigMap that kubeadm writes. */
const usualKey = 'config.conf';

/**
 * The keys of a ConfigMap that may hold a KubeProxyConfiguration: config.conf of kubeadm, config on EKS, others
 * elsewhere. The kubeconfig beside it never names the kind.
 */
function findConfigKeys(data: unknown): readonly string[] {
  return Object.entries(fieldsOf(data)).flatMap(([key, text]) => {
    if (typeof text !== 'string') return [];
    return key === usualKey || /KubeProxyConfiguration|kind: ClusterConfiguration/.test(text) ? [key] : [];
  });
}

/** The documents inside an object, and what is wrong with them. */
interface Unpacked {
  readonly documents: readonly InputDocument[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The documents inside a ConfigMap's configuration, in terms of the file; any other document as it is. */
export function unpackConfigMap(document: InputDocument): Unpacked {
  const { kind, data } = fieldsOf(document.value);
  const keys = kind === 'ConfigMap' ? findConfigKeys(data) : [];
  if (keys.length === 0) return { documents: [document], diagnostics: [] };
  const unpacked = keys.map((key) => unpackKey(document, key, String(fieldsOf(data)[key])));
  return {
    documents: unpacked.flatMap((each) => each.documents),
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
      return { file, value, source: { place, keyPlace: (path) => outerPlace(own.keyPlace(path)) } };
    }),
    diagnostics: inner.diagnostics.map((each) => ({ ...each, place: each.place && outerPlace(each.place) })),
  };
}

/**
 * Turns a place in the text of a field into one in the file around it. A literal block of YAML ("|") has the same lines
 * there, further to the right; for texts written in another way the field is as near as it gets.
 */
function moveLocation(file: TextFile, text: string, field: Location, inner: Location): Location {
  if (file.lineAt(field.line).charAt(field.column - 1) !== '|') return field;
  const lines = text.split('\n');
  const sample = lines.findIndex((line) => line.trim() !== '');
  const indent = sample < 0 ? 0 : file.lineAt(field.line + 1 + sample).length - (lines[sample] ?? '').length;
  return { file: field.file, line: field.line + inner.line, column: inner.column + Math.max(0, indent) };
}
