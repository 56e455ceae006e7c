import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { EndpointSlice, Node, Service, Sourced } from '../cluster/objects.ts';
import { createSource } from './document.ts';
import type { KubeProxyConfig } from './kube-proxy-config.ts';
import { type ReadYaml, readDocuments } from './read-documents.ts';
import { type CollectedObjects, collectDocument, emptyCollection } from './read-objects.ts';
import { TextFile } from './text-file.ts';
import { Validator } from './validate.ts';
import { parseYamlValue } from './yaml-parser.ts';

/** What the inputs hold. Not to be compiled where a diagnostic is an error. */
export interface Inputs {
  readonly services: readonly Sourced<Service>[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly nodes: readonly Sourced<Node>[];
  readonly configs: readonly Sourced<KubeProxyConfig>[];
  /** Kind → how many objects of it were skipped: kpc has no use for them. */
  readonly skipped: ReadonlyMap<string, number>;
  readonly diagnostics: readonly Diagnostic[];
  /** The files read, by the names that diagnostics give them. */
  readonly files: ReadonlyMap<string, TextFile>;
}

/** What -f names: '-' is stdin, whose text the caller has read. */
export interface InputOptions {
  readonly stdin?: string | Uint8Array | undefined;
  readonly readYaml?: ReadYaml | undefined;
}

/** Reads files, folders (their *.yaml, *.yml and *.json, recursively) and '-' for stdin. Never throws for bad input. */
export function readInputs(sources: readonly string[], options: InputOptions = {}): Inputs {
  const diagnostics: Diagnostic[] = [];
  const files = new Map<string, TextFile>();
  for (const source of sources) {
    for (const file of loadSource(source, options.stdin, diagnostics)) files.set(file.name, file);
  }
  const collected = collectFiles([...files.values()], options.readYaml);
  diagnostics.push(...collected.diagnostics);
  return { ...collected, diagnostics, files };
}

/** Reads texts that are already there: readInputs without the file system. */
export function collectFiles(files: readonly TextFile[], readYaml: ReadYaml = parseYamlValue): CollectedObjects {
  const collected = emptyCollection();
  const validator = new Validator();
  for (const file of files) {
    const { documents, diagnostics } = readDocuments(file, readYaml);
    collected.diagnostics.push(...diagnostics);
    for (const document of documents) collectDocument(document, validator, collected);
    if (documents.length === 0 && diagnostics.length === 0) {
      const place = createSource(file, () => 0).place([]);
      collected.diagnostics.push({ severity: 'warning', code: 'empty-file', text: 'the file holds no objects', place });
    }
  }
  return collected;
}

function loadSource(source: string, stdin: InputOptions['stdin'], diagnostics: Diagnostic[]): TextFile[] {
  if (source === '-')
    return [new TextFile('-', typeof stdin === 'string' ? stdin : Buffer.from(stdin ?? '').toString('utf8'))];
  if (statSync(source).isDirectory()) {
    const names = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.(ya?ml|json)$/.test(name),
    );
    return names.toSorted().flatMap((name) => loadSource(join(source, name), stdin, diagnostics));
  }
  return [new TextFile(source, readFileSync(source, 'utf8'))];
}
