import { dirname, isAbsolute, join } from 'node:path';
import { isObject } from '../../base/json-shape.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { findingOf } from '../../diagnostics/fields.ts';
import type { InputDocument } from '../../input/documents/document.ts';
import { loadFile, type Stdin } from '../../input/files/load-files.ts';
import { readDocuments } from '../../input/documents/read-documents.ts';
import { Report } from '../../input/objects/report.ts';
import type { RawPacketTest, RawPacketTests } from '../../input/objects/schemas/packet-tests.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { Validator } from '../../input/objects/validate.ts';
import { proxyModeNames, proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import { parseRelease } from '../../kube-proxy/releases.ts';
import type { PacketProtocol } from '../../packet/packet.ts';
import type { WrittenExpectation } from '../../packet/trace/expectation.ts';

/** One test of a file: packets that share an expectation, and where they are sent. */
export interface PacketTest extends WrittenExpectation {
  readonly name: string | undefined;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly protocol: PacketProtocol | undefined;
  readonly namespace: string | undefined;
  readonly settings: readonly SceneSettings[];
  /** Where the file has the test, one of its fields, or an item of it. */
  readonly place: (field?: string, index?: number) => NonNullable<Diagnostic['place']>;
}

/** What a test sets of a scene; what is undefined, the command line and the input decide. */
export interface SceneSettings {
  readonly inputs: readonly string[];
  readonly hostAddresses: string | undefined;
  /** "all" for each of the input; undefined for the usual one. */
  readonly node: string | undefined;
  readonly mode: ProxyMode | undefined;
  readonly release: string | undefined;
}

/** The tests of some files, with what is wrong with them. */
export interface PacketTests {
  readonly tests: readonly PacketTest[];
  readonly diagnostics: readonly Diagnostic[];
  readonly files: ReadonlyMap<string, TextFile>;
}

/** Inputs that count more than those of a file of tests, or less. */
interface OtherInputs {
  readonly given: readonly string[] | undefined;
  readonly usual: readonly string[] | undefined;
}

/** Reads files of tests. */
export function readPacketTests(paths: readonly string[], inputs: OtherInputs, stdin: Stdin | undefined): PacketTests {
  const tests: PacketTest[] = [];
  const diagnostics: Diagnostic[] = [];
  const files = new Map<string, TextFile>();
  for (const path of paths) {
    const file = loadFile(path, stdin);
    if (!(file instanceof TextFile)) {
      diagnostics.push(file);
      continue;
    }
    files.set(file.name, file);
    const read = readDocuments(file);
    diagnostics.push(...read.diagnostics);
    if (read.documents.length === 0 && read.diagnostics.length === 0) {
      const place = { file: path, locate: () => file.locationAt(0) };
      diagnostics.push(diagnose('bad-expectation', { problem: 'nothing' }, place));
    }
    const [first] = read.documents;
    const fields = first && isObject(first.value) ? Object.keys(first.value) : [];
    if (first && fields.length > 0 && !fields.includes('tests') && !fields.includes('inputs')) {
      diagnostics.push(diagnose('bad-expectation', { problem: 'not-tests', fields }, first.source.place([])));
      continue;
    }
    for (const document of read.documents) {
      const report = new Report(document.source);
      tests.push(...readTests(document, inputs, report));
      diagnostics.push(...report.diagnostics);
    }
  }
  return { tests, diagnostics, files };
}

function readTests(document: InputDocument, { given, usual = [] }: OtherInputs, report: Report): readonly PacketTest[] {
  const raw = new Validator().validate('PacketTests', document.value, report);
  if (!raw) return [];
  const locate = (path: string): string =>
    path === '-' || isAbsolute(path) ? path : join(dirname(document.file.name), path);
  const tests = raw.tests ?? [];
  if (tests.length === 0) report.add([], 'bad-expectation', { problem: 'nothing' });
  const inputs = given ?? givenList(raw.inputs)?.map(locate) ?? usual;
  if (inputs.length === 0) report.add([], 'bad-expectation', { problem: 'missing', field: 'inputs' });
  const common = readChoices(raw, [], report);
  const hostAddresses = raw.hostAddresses ? locate(raw.hostAddresses) : undefined;
  return tests.map((test, i): PacketTest => {
    const path = ['tests', i];
    for (const field of ['from', 'to', 'expect'] as const) {
      const value = test[field];
      const isMissing = value === undefined || value === null || (field !== 'expect' && value.length === 0);
      if (isMissing) report.add([...path, field], 'bad-expectation', { problem: 'missing', field });
    }
    const own = readChoices(test, path, report);
    const open = [undefined];
    const settings = (own.modes ?? common.modes ?? open).flatMap((mode) =>
      (own.releases ?? common.releases ?? open).flatMap((release) =>
        (own.nodes ?? common.nodes ?? open).map((node) => ({ inputs, hostAddresses, node, mode, release })),
      ),
    );
    return {
      name: test.name ?? undefined,
      from: givenList(test.from) ?? [],
      to: givenList(test.to) ?? [],
      protocol: test.proto ?? undefined,
      namespace: raw.namespace ?? undefined,
      expect: test.expect ?? 'delivered',
      source: test.source ?? undefined,
      settings,
      place: (field, index) => {
        const isList = index !== undefined && Array.isArray((test as Readonly<Record<string, unknown>>)[field ?? '']);
        return report.source.place([...path, ...(field === undefined ? [] : [field]), ...(isList ? [index] : [])]);
      },
    };
  });
}

/** What a test, or the whole file, says of where its packets are sent; undefined for what it leaves open. */
function readChoices(raw: RawPacketTest | RawPacketTests, path: readonly (string | number)[], report: Report) {
  if (givenList(raw.node) && givenList(raw.nodes))
    report.add([...path, 'nodes'], 'bad-expectation', { problem: 'rivals' });
  const modes = givenList(raw.mode)?.flatMap((name) => {
    const mode = proxyModes.find((each) => each === name);
    const expected = findNearest(name, proxyModes) ?? proxyModeNames;
    if (!mode) report.add([...path, 'mode'], 'bad-type', { field: 'mode', found: findingOf(name), expected });
    return mode ?? [];
  });
  const releases = givenList(raw.release);
  for (const release of releases ?? []) {
    if (parseRelease(release)) continue;
    const details = { field: 'release', found: findingOf(release), expected: 'a release such as "1.36"' } as const;
    report.add([...path, 'release'], 'bad-type', details);
  }
  return { nodes: givenList(raw.nodes ?? raw.node), modes, releases };
}

function givenList(value: string | readonly string[] | null | undefined): readonly string[] | undefined {
  if (value === null || value === undefined) return undefined;
  return typeof value === 'string' ? [value] : value;
}
