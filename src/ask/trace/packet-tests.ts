import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { findNearest } from '../../base/names.ts';
import { isObject } from '../../base/json/check.ts';

import { diagnose, cite, Tally, type Finding } from '../../base/findings/finding.ts';
import type { InputDocument } from '../../input/documents/document.ts';
import { readDocuments } from '../../input/documents/read-documents.ts';
import type { TextFile } from '../../input/documents/text-file.ts';
import { Report } from '../../input/objects/report.ts';
import type { RawPacketTest, RawPacketTests } from '../../input/objects/shapes/packet-tests.ts';
import { validate } from '../../input/objects/validate.ts';
import type { Location } from '../../kernel/place.ts';
import { proxyModeNames, proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import { parseRelease } from '../../kube-proxy/releases.ts';
import type { PacketProtocol } from '../../packet/packet.ts';
import { compareFate, readExpectation, type Unexpected, type WrittenExpectation } from './expectation.ts';
import { ask } from './ask.ts';
import { sceneOfSender } from './read-sender.ts';
import { isPassedBy, isUnaddressed, type Trace } from './question.ts';
import type { Scene } from './scene.ts';

/** A test's settings for the scene. They are named like the flags. Flags on the command line override them, and they override kpc.yaml. */
export interface SceneSettings {
  readonly file?: readonly string[];
  readonly hostAddresses?: string | undefined;
  readonly proxyMode?: ProxyMode | undefined;
  readonly kubernetesVersion?: string | undefined;
  readonly node?: string;
  readonly allNodes?: boolean;
  readonly namespace?: string | undefined;
}

export interface TestContext {
  readonly given: SceneSettings;
  /** The inputs that kpc.yaml names. They are used if neither the command line nor the test file names any. */
  readonly file: readonly string[] | undefined;
  readonly locate: (testFile: string, path: string) => string;
}

export interface PacketTest extends WrittenExpectation {
  readonly name: string | undefined;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly protocol: PacketProtocol | undefined;
  readonly namespace: string | undefined;
  readonly settings: readonly SceneSettings[];
  /** Reports whether the test or its file has a setting that no flag on the command line overrides. */
  readonly has: (field: string) => boolean;
  readonly place: (field?: string, index?: number) => NonNullable<Finding['place']>;
  readonly isDoubtful: (field: string, index?: number) => boolean;
}

export interface PacketResult extends Pick<PacketTest, 'name'> {
  /** The sender as the test writes it. */
  readonly from: string;
  readonly to: string;
  readonly place: Location;
  readonly trace: Trace;
  readonly scene: Scene;
  readonly faults: readonly Unexpected[];
}

export function readPacketTests(
  file: TextFile,
  context: TestContext,
  found: (diagnostic: Finding) => void,
): readonly PacketTest[] {
  const { documents, diagnostics } = readDocuments(file);
  diagnostics.forEach(found);
  const [first] = documents;
  if (!first && diagnostics.length === 0) {
    const place = { file: file.name, locate: () => file.locationAt(0) };
    found(diagnose('bad-expectation', { problem: 'nothing' }, place));
  }
  const fields = first && isObject(first.value) ? Object.keys(first.value) : [];
  if (first && fields.length > 0 && !fields.includes('tests') && !fields.includes('inputs')) {
    found(diagnose('bad-expectation', { problem: 'not-tests', fields }, first.source.place([])));
    return [];
  }
  const tally = new Tally();
  const tests = documents.flatMap((document) => {
    const report = new Report(document.source, tally);
    const read = readTestDocument(document, context, report);
    report.diagnostics.forEach(found);
    return read;
  });
  tally.rest(file.name).forEach(found);
  return tests;
}

/** Reads tests. The inputs are those that the command line names, or else the test file, or else kpc.yaml. */
function readTestDocument(
  document: InputDocument,
  { given, file: usual, locate: locateFrom }: TestContext,
  report: Report,
): readonly PacketTest[] {
  const raw = validate('PacketTests', document.value, report);
  if (!raw) return [];
  const locate = (path: string): string => locateFrom(document.file.name, path);
  const tests = raw.tests ?? [];
  if (tests.length === 0) report.add(['tests'], 'bad-expectation', { problem: 'nothing' });
  const file = given.file ?? givenList(raw.inputs)?.map(locate) ?? usual ?? [];
  if (file.length === 0) report.add(['inputs'], 'bad-expectation', { problem: 'missing', field: 'inputs' });
  const common = readChoices(raw, [], report);
  const namespace = given.namespace ?? raw.namespace ?? undefined;
  const always = {
    file,
    ...(raw.hostAddresses ? { hostAddresses: locate(raw.hostAddresses) } : {}),
    // As with -n, objects without a namespace get this one.
    ...(namespace === undefined ? {} : { namespace }),
  };
  const isNodeGiven = given.node !== undefined || given.allNodes !== undefined;
  return tests.map((test, i): PacketTest => {
    const path = ['tests', i];
    // If the test leaves out a setting, the setting's place is in the file's own fields.
    const pathOf = (field?: string, index?: number): readonly (string | number)[] => {
      if (field === undefined) return path;
      const isOfFile = !isPresent(test, field) && isPresent(raw, field);
      const isList = index !== undefined && Array.isArray((test as Readonly<Record<string, unknown>>)[field]);
      return [...(isOfFile ? [] : path), field, ...(isList ? [index] : [])];
    };
    for (const field of ['from', 'to', 'expect'] as const) {
      const value = test[field];
      const isMissing = value === undefined || value === null || (field !== 'expect' && value.length === 0);
      if (isMissing) report.add([...path, field], 'bad-expectation', { problem: 'missing', field });
    }
    const own = readChoices(test, path, report);
    const modes = (given.proxyMode === undefined && (own.modes ?? common.modes)) || [{}];
    const releases = (given.kubernetesVersion === undefined && (own.releases ?? common.releases)) || [{}];
    const nodes = (!isNodeGiven && (own.nodes ?? common.nodes)) || [{}];
    const settings = modes.flatMap((mode) =>
      releases.flatMap((release) => nodes.map((node) => ({ ...always, ...mode, ...release, ...node, ...given }))),
    );
    return {
      name: test.name ?? undefined,
      from: givenList(test.from || []) ?? [],
      to: givenList(test.to || []) ?? [],
      protocol: test.proto ?? undefined,
      namespace,
      expect: test.expect ?? 'delivered',
      source: test.source ?? undefined,
      settings,
      has: (field) =>
        (isPresent(test, field) || isPresent(raw, field)) &&
        !flagsOfFields.some(([each, , key]) => each === field && given[key] !== undefined),
      place: (field, index) => report.source.place(pathOf(field, index)),
      isDoubtful: (field, index) => report.isDoubtful(pathOf(field, index)),
    };
  });
}

function isPresent(raw: object, field: string): boolean {
  return ((raw as Readonly<Record<string, unknown>>)[field] ?? undefined) !== undefined;
}

/** The fields of a test file that stand for flags. */
const flagsOfFields = [
  ['hostAddresses', '--host-addresses', 'hostAddresses'],
  ['mode', '--proxy-mode', 'proxyMode'],
  ['release', '--kubernetes-version', 'kubernetesVersion'],
  ['node', '--node', 'node'],
  ['nodes', '--node', 'node'],
] as const;

/** Returns the places of the values that flags have in a test file. */
export function flagPlacesOf({ place, has }: PacketTest): ReadonlyMap<string, Finding['place']> {
  return new Map(flagsOfFields.flatMap(([field, flag]) => (has(field) ? [[flag, place(field)] as const] : [])));
}

function readChoices(raw: RawPacketTest | RawPacketTests, path: readonly (string | number)[], report: Report) {
  for (const field of ['mode', 'release', 'node', 'nodes'] as const)
    if (raw[field]?.length === 0) report.add([...path, field], 'bad-expectation', { problem: 'empty', field });
  if (givenList(raw.node) && givenList(raw.nodes))
    report.add([...path, 'nodes'], 'bad-expectation', { problem: 'rivals' });
  const refuse = (field: 'mode' | 'release', value: string, wanted: Parameters<Report['addWrong']>[2]): readonly [] => {
    report.addWrong([...path, field], value, wanted);
    return [];
  };
  const modes = givenList(raw.mode)?.flatMap((mode): readonly SceneSettings[] => {
    const known = proxyModes.find((each) => each === mode);
    return known
      ? [{ proxyMode: known }]
      : refuse('mode', mode, { expected: findNearest(mode, proxyModes) ?? proxyModeNames });
  });
  const releases = givenList(raw.release)?.flatMap((release): readonly SceneSettings[] =>
    parseRelease(release) ? [{ kubernetesVersion: release }] : refuse('release', release, 'release'),
  );
  const nodes = givenList(raw.nodes ?? raw.node)?.map((node): SceneSettings => {
    return node === 'all' ? { allNodes: true } : { node, allNodes: false };
  });
  return { modes, releases, nodes };
}

function givenList(value: string | readonly string[] | null | undefined): readonly string[] | undefined {
  return typeof value === 'string' ? [value] : (value ?? undefined);
}

export function sceneOfTest(
  sender: Parameters<typeof sceneOfSender>[0],
  { node, allNodes }: SceneSettings,
  scene: Scene,
): Scene {
  return node !== undefined || allNodes ? scene : sceneOfSender(sender, scene);
}

export function runPacketTest(
  test: PacketTest,
  settings: SceneSettings,
  given: Scene,
  found: (diagnostic: Finding) => void,
): readonly PacketResult[] {
  const { from, to, protocol, namespace, name, place } = test;
  const refuse = (field: string, details: ArgumentsOf<'bad-expectation'>, index?: number): void => {
    if (!test.isDoubtful(field, index)) found(diagnose('bad-expectation', details, place(field, index)));
  };
  const misfit = findMisfit(settings, given);
  if (misfit) {
    const { key, details } = misfit;
    const setBy = flagsOfFields.filter(([, , own]) => own === key);
    const field = setBy.find(([each]) => test.has(each))?.[0];
    if (field === undefined) found(diagnose('bad-expectation', { ...details, field: setBy[0]?.[1] ?? key }));
    else refuse(field, { ...details, field });
    return [];
  }
  return to.flatMap((target, i) =>
    from.flatMap((source, j): readonly PacketResult[] => {
      const scene = sceneOfTest({ from: source, namespace }, settings, given);
      const read = ask({ from: source, to: target, protocol, inInterface: undefined, namespace }, scene);
      const trace = read.kind === 'read' ? read.value : undefined;
      const expected = readExpectation(test, trace?.target.address.family, namespace, scene);
      for (const { field, details } of expected.kind === 'wrong' ? expected.faults : []) refuse(field, details);
      for (const { end, diagnostic } of read.kind === 'wrong' ? read.faults : []) {
        // With --all-nodes, a Node that is not the sender's own is skipped, because the sender's node handles the packet.
        if (settings.allNodes && isPassedBy(diagnostic, namesOfKnownNodes(scene))) continue;
        const problem = isUnaddressed(diagnostic) || isPassedBy(diagnostic) ? 'unsent' : 'refused';
        refuse(end, { problem, field: end, error: cite(diagnostic) }, end === 'from' ? j : i);
      }
      if (!trace || expected.kind === 'wrong') return [];
      const faults = compareFate(trace, expected.value, scene);
      return [{ name, from: source, to: target, place: place().locate(), trace, scene, faults }];
    }),
  );
}

function namesOfKnownNodes({ side }: Scene): readonly string[] {
  return side.objects.nodes.map(({ object }) => object.metadata.name);
}

/** Returns a requirement of the test that a bundle or dump cannot meet, because either has only one node, mode and release. */
function findMisfit({ node, proxyMode, kubernetesVersion }: SceneSettings, { side }: Scene) {
  const { kind, mode: own } = side;
  if (kind === 'manifests') return undefined;
  const rows = [
    ['proxyMode', 'mode', proxyMode, own],
    ['kubernetesVersion', 'release', kubernetesVersion, side.settings?.release],
    ['node', 'node', side.node && node, side.node?.name],
  ] as const;
  const misfit = rows.find(([, , asked, has]) => asked !== undefined && asked !== has);
  if (!misfit) return undefined;
  const [key, what, , known] = misfit;
  return { key, details: { problem: 'other-input', kind, what, known } as const };
}
