import { dirname, isAbsolute, join } from 'node:path';
import { isObject } from '../../base/json-shape.ts';
import { findNearest } from '../../base/find-nearest.ts';
import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { findingOf } from '../../diagnostics/value-in-words.ts';
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
  /** Undefined for the usual one. */
  readonly node: { readonly name: string } | 'all' | undefined;
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
      diagnostics.push(
        diagnose('bad-expectation', { problem: 'nothing' }, { file: path, locate: () => file.locationAt(0) }),
      );
    }
    const [first] = read.documents;
    const fields = first && isObject(first.value) ? Object.keys(first.value) : [];
    if (first && fields.length > 0 && !fields.includes('tests') && !fields.includes('inputs')) {
      diagnostics.push(diagnose('bad-expectation', { problem: 'not-tests', fields }, first.source.place([])));
      continue;
    }
    for (const document of read.documents) {
      const reader = new Reader(document, inputs);
      tests.push(...reader.read());
      diagnostics.push(...reader.report.diagnostics);
    }
  }
  return { tests, diagnostics, files };
}

class Reader {
  readonly report: Report;
  readonly #document: InputDocument;
  readonly #inputs: OtherInputs;

  constructor(document: InputDocument, inputs: OtherInputs) {
    this.#document = document;
    this.#inputs = inputs;
    this.report = new Report(document.source);
  }

  read(): readonly PacketTest[] {
    const raw = new Validator().validate('PacketTests', this.#document.value, this.report);
    if (!raw) return [];
    if ((raw.tests ?? []).length === 0) this.#refuse([], { problem: 'nothing' });
    const { given, usual = [] } = this.#inputs;
    const inputs = given ?? givenList(raw.inputs)?.map((path) => this.#locate(path)) ?? usual;
    if (inputs.length === 0) this.#refuse([], { problem: 'missing', field: 'inputs' });
    const common = this.#readSettings(raw, []);
    return (raw.tests ?? []).map((test, i) => this.#readTest(test, ['tests', i], raw, inputs, common));
  }

  #readTest(
    test: NonNullable<RawPacketTest>,
    path: readonly (string | number)[],
    { hostAddresses, namespace }: RawPacketTests,
    inputs: readonly string[],
    common: Choices,
  ): PacketTest {
    for (const field of ['from', 'to', 'expect'] as const) {
      const value = test[field];
      const isMissing = value === undefined || value === null || (field !== 'expect' && value.length === 0);
      if (isMissing) this.report.add([...path, field], 'bad-expectation', { problem: 'missing', field });
    }
    const own = this.#readSettings(test, path);
    const choices = {
      nodes: own.nodes ?? common.nodes,
      modes: own.modes ?? common.modes,
      releases: own.releases ?? common.releases,
    };
    const settings = (choices.modes ?? [undefined]).flatMap((mode) =>
      (choices.releases ?? [undefined]).flatMap((release) =>
        (choices.nodes ?? [undefined]).map((node): SceneSettings => ({
          inputs,
          hostAddresses: hostAddresses ? this.#locate(hostAddresses) : undefined,
          node: node === undefined || node === 'all' ? node : { name: node },
          mode,
          release,
        })),
      ),
    );
    return {
      name: test.name ?? undefined,
      from: listOf(test.from),
      to: listOf(test.to),
      protocol: test.proto ?? undefined,
      namespace: namespace ?? undefined,
      expect: test.expect ?? 'delivered',
      source: test.source ?? undefined,
      settings,
      place: (field, index) => {
        const isList = index !== undefined && Array.isArray((test as Readonly<Record<string, unknown>>)[field ?? '']);
        return this.report.source.place([...path, ...(field === undefined ? [] : [field]), ...(isList ? [index] : [])]);
      },
    };
  }

  /** What a test, or the whole file, says of where its packets are sent; undefined for what it leaves open. */
  #readSettings(raw: RawPacketTest | RawPacketTests, path: readonly (string | number)[]): Choices {
    if (givenList(raw.node) && givenList(raw.nodes)) this.#refuse([...path, 'nodes'], { problem: 'rivals' });
    const modes = givenList(raw.mode)?.flatMap((name) => {
      const mode = proxyModes.find((each) => each === name);
      const expected = findNearest(name, proxyModes) ?? proxyModeNames;
      if (!mode) this.report.add([...path, 'mode'], 'bad-type', { field: 'mode', found: findingOf(name), expected });
      return mode ?? [];
    });
    const releases = givenList(raw.release);
    for (const release of releases ?? []) {
      if (parseRelease(release).kind === 'release') continue;
      const details = {
        field: 'release',
        found: findingOf(release),
        expected: 'a release such as "1.36"',
      } as const;
      this.report.add([...path, 'release'], 'bad-type', details);
    }
    return { nodes: givenList(raw.nodes ?? raw.node), modes, releases };
  }

  #refuse(path: readonly (string | number)[], details: ArgumentsOf<'bad-expectation'>): void {
    this.report.add(path, 'bad-expectation', details);
  }

  #locate(path: string): string {
    return path === '-' || isAbsolute(path) ? path : join(dirname(this.#document.file.name), path);
  }
}

interface Choices {
  readonly nodes: readonly string[] | undefined;
  readonly modes: readonly ProxyMode[] | undefined;
  readonly releases: readonly string[] | undefined;
}

function listOf(value: string | readonly string[] | null | undefined): readonly string[] {
  return givenList(value) ?? [];
}

function givenList(value: string | readonly string[] | null | undefined): readonly string[] | undefined {
  if (value === null || value === undefined) return undefined;
  return typeof value === 'string' ? [value] : value;
}
