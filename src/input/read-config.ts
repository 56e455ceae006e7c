import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { Sourced } from '../cluster/objects.ts';
import { placeAt, type InputDocument } from './document.ts';
import { type EmbeddedText, outerPlace, outerSource } from './embedded-text.ts';
import type { KubeProxyConfig } from './schemas/kube-proxy-configuration.ts';
import { loadFile, type Stdin } from './load-files.ts';
import { readDocuments } from './read-documents.ts';
import { Report } from './report.ts';
import { sortDiagnostics } from './sort-diagnostics.ts';
import { TextFile } from './text-file.ts';
import { Validator } from './validate.ts';

/** What --config names. Without a config there is an error among the diagnostics. */
export interface ConfigFile {
  readonly config: Sourced<KubeProxyConfig> | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** The file, where it could be read. */
  readonly file: TextFile | undefined;
}

/** The key of kube-proxy's ConfigMap that holds its configuration, as kubeadm writes it. */
export const configKey = 'config.conf';

/** Reads a KubeProxyConfiguration, or the ConfigMap that holds one in its key config.conf. */
export function readConfigFile(path: string, stdin?: Stdin): ConfigFile {
  const file = loadFile(path, stdin);
  if (!(file instanceof TextFile)) return { config: undefined, diagnostics: [file], file: undefined };
  const { config, diagnostics } = readConfig(file);
  return { config, diagnostics: sortDiagnostics(diagnostics), file };
}

/** Reads the configuration in a text that has been read. */
export function readConfig(file: TextFile): Omit<ConfigFile, 'file'> {
  const { documents, diagnostics: faults } = readDocuments(file);
  const unpacked = documents.map((document) => unpackConfigMap(document));
  const configs = unpacked.flatMap((each) => each.documents).filter(isConfig);
  const diagnostics = [...faults, ...unpacked.flatMap((each) => each.diagnostics)];
  const [first, second] = configs;
  if (!first) {
    if (diagnostics.length > 0) return { config: undefined, diagnostics };
    const text = `the file holds neither a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1) nor a ConfigMap with one in ${configKey}`;
    const place = placeAt(file, 0);
    return { config: undefined, diagnostics: [{ severity: 'error', code: 'no-config', text, place }] };
  }
  if (second) {
    const text = 'the file holds another KubeProxyConfiguration before this one: leave one of them';
    diagnostics.push({ severity: 'error', code: 'duplicate-object', text, place: second.source.place([]) });
  }
  const report = new Report(first.source);
  const object = new Validator().validate('KubeProxyConfiguration', first.value, report);
  for (const diagnostic of report.diagnostics) diagnostics.push(diagnostic);
  return { config: object && { object, source: first.source }, diagnostics };
}

function isConfig({ value }: InputDocument): boolean {
  const { apiVersion, kind } = fieldsOf(value);
  return kind === 'KubeProxyConfiguration' && apiVersion === 'kubeproxy.config.k8s.io/v1alpha1';
}

/** The documents inside a ConfigMap's configuration, in terms of the file; any other document as it is. */
function unpackConfigMap(document: InputDocument): {
  readonly documents: readonly InputDocument[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const { kind, data } = fieldsOf(document.value);
  const text = fieldsOf(data)[configKey];
  if (kind !== 'ConfigMap' || typeof text !== 'string') return { documents: [document], diagnostics: [] };
  const { file, source } = document;
  const embedded: EmbeddedText = { file, source, path: ['data', configKey], text };
  const inner = readDocuments(new TextFile(file.name, text));
  return {
    documents: inner.documents.map(({ value, source: innerSource }) => ({
      file,
      value,
      source: outerSource(embedded, innerSource),
    })),
    diagnostics: inner.diagnostics.map(({ severity, code, text: words, place }) => ({
      severity,
      code,
      text: words,
      place: place && outerPlace(embedded, place),
    })),
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
