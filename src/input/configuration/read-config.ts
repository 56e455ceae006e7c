import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { findingOf } from '../../diagnostics/value-in-words.ts';
import type { FieldPath, Sourced } from '../../cluster/objects.ts';
import type { Location, Place } from '../../kernel/place.ts';
import { readClusterFacts, type ClusterFacts } from './cluster-config.ts';
import { placeAt, subSource, type InputDocument, type InputSource } from '../documents/document.ts';
import type { KubeProxyConfig } from '../objects/schemas/kube-proxy-configuration.ts';
import { readDocuments } from '../documents/read-documents.ts';
import { Report } from '../objects/report.ts';
import { sortDiagnostics } from '../sort-diagnostics.ts';
import { TextFile } from '../documents/text-file.ts';
import { Validator } from '../objects/validate.ts';

/** What --config names. Without a config there is an error among the diagnostics. */
export interface ConfigFile {
  readonly config: Sourced<KubeProxyConfig> | undefined;
  /** What it says besides of the cluster, or in another program's words. */
  readonly facts: readonly ClusterFacts[];
  readonly diagnostics: readonly Diagnostic[];
  /** The file, where it could be read. */
  readonly file: TextFile | undefined;
}

/** Reads a KubeProxyConfiguration, or the ConfigMap that holds one, under whatever key; a diagnostic is why there is no text. */
export function readConfigText(file: TextFile | Diagnostic): ConfigFile {
  if (!(file instanceof TextFile)) return { config: undefined, facts: [], diagnostics: [file], file: undefined };
  const { config, facts, diagnostics } = readConfig(file);
  return { config, facts, diagnostics: sortDiagnostics(diagnostics), file };
}

/** Reads the configuration in a text that has been read. */
export function readConfig(file: TextFile): Omit<ConfigFile, 'file'> {
  const { documents, diagnostics: faults } = readDocuments(file);
  const unpacked = documents.flatMap(unpackList).map((document) => unpackConfigMap(document));
  const found = unpacked.flatMap((each) => each.documents).filter(isConfig);
  const diagnostics = [...faults, ...unpacked.flatMap((each) => each.diagnostics)];
  const configs = found.filter(isReadVersion);
  const [first, ...others] = configs;
  const facts = unpacked
    .flatMap((each) => each.documents)
    .flatMap(({ value, source }) => readClusterFacts(fieldsOf(value), source) ?? []);
  if (!first) {
    if (diagnostics.length > 0 || facts.some(({ configures }) => configures)) {
      return { config: undefined, facts, diagnostics };
    }
    return { config: undefined, facts, diagnostics: [describeAbsence(file, found[0])] };
  }
  for (const { source } of others) {
    diagnostics.push(diagnose('duplicate-object', { what: 'configuration', where: 'file' }, source.place([])));
  }
  const report = new Report(first.source);
  const object = new Validator().validate('KubeProxyConfiguration', first.value, report);
  for (const diagnostic of report.diagnostics) diagnostics.push(diagnostic);
  return { config: object && { object, source: first.source }, facts, diagnostics };
}

const version = 'kubeproxy.config.k8s.io/v1alpha1';

function describeAbsence(file: TextFile, other: InputDocument | undefined): Diagnostic {
  if (other) {
    const apiVersion = findingOf(fieldsOf(other.value)['apiVersion']);
    return diagnose('no-config', { apiVersion }, other.source.place(['apiVersion']));
  }
  return diagnose('no-config', {}, placeAt(file, 0));
}

function isConfig({ value }: InputDocument): boolean {
  return fieldsOf(value)['kind'] === 'KubeProxyConfiguration';
}

/** Whether a document inside a ConfigMap is one that kpc goes by. */
export function isClusterConfig(document: InputDocument): boolean {
  return isConfig(document) || fieldsOf(document.value)['kind'] === 'ClusterConfiguration';
}

function isReadVersion({ value }: InputDocument): boolean {
  return fieldsOf(value)['apiVersion'] === version;
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

/** The documents inside a ConfigMap's configuration, in terms of the file; any other document as it is. */
export function unpackConfigMap(document: InputDocument): {
  readonly documents: readonly InputDocument[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const { kind, data } = fieldsOf(document.value);
  const keys = kind === 'ConfigMap' ? findConfigKeys(data) : [];
  if (keys.length === 0) return { documents: [document], diagnostics: [] };
  const unpacked = keys.map((key) => unpackKey(document, key, String(fieldsOf(data)[key])));
  return {
    documents: unpacked.flatMap((each) => each.documents),
    diagnostics: unpacked.flatMap((each) => each.diagnostics),
  };
}

function unpackKey(
  { file, source }: InputDocument,
  key: string,
  text: string,
): { readonly documents: readonly InputDocument[]; readonly diagnostics: readonly Diagnostic[] } {
  const embedded: EmbeddedText = { file, source, path: ['data', key], text };
  const inner = readDocuments(new TextFile(file.name, text));
  return {
    documents: inner.documents.map(({ value, source: innerSource }) => ({
      file,
      value,
      source: outerSource(embedded, innerSource),
    })),
    diagnostics: inner.diagnostics.map((each) => ({ ...each, place: each.place && outerPlace(embedded, each.place) })),
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/** A text inside a document: the value of one of its fields. */
interface EmbeddedText {
  readonly file: TextFile;
  readonly source: InputSource;
  readonly path: FieldPath;
  readonly text: string;
}

/**
 * Turns a place in an embedded text into one in the file around it. A literal block of YAML ("|") has the same lines
 * there, further to the right; for texts written in another way the field is as near as it gets.
 */
function outerPlace(embedded: EmbeddedText, inner: Place): Place {
  const field = embedded.source.place(embedded.path);
  return {
    file: field.file,
    locate: () => moveLocation(embedded, field.locate(), inner.locate()),
  };
}

/** A source for a document of the embedded text. */
function outerSource(embedded: EmbeddedText, inner: InputSource): InputSource {
  return {
    place: (path) => outerPlace(embedded, inner.place(path)),
    keyPlace: (path) => outerPlace(embedded, inner.keyPlace(path)),
  };
}

function moveLocation({ file, text }: EmbeddedText, field: Location, inner: Location): Location {
  if (file.lineAt(field.line).charAt(field.column - 1) !== '|') return field;
  const lines = text.split('\n');
  const sample = lines.findIndex((line) => line.trim() !== '');
  const written = file.lineAt(field.line + 1 + sample);
  const indent = sample < 0 ? 0 : written.length - (lines[sample] ?? '').length;
  return { file: field.file, line: field.line + inner.line, column: inner.column + Math.max(0, indent) };
}
