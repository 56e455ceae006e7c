import { pathWord, printable } from '../../base/printable.ts';
import {
  compareSides,
  diffOutputs,
  diffAnswer,
  formatSideDiffs,
  isUnchanged,
  listSkipped,
  listUncompared,
  type Differences,
} from '../../library/differences.ts';
import {
  areStored,
  isUsefulForStored,
  nameSides,
  namesSetting,
  openPair,
  openUpgrade,
  pathSide,
  readPair,
  recognisePair,
  refuseStrays,
  type FromTo,
} from '../../library/node/pair.ts';
import type { Snapshot } from '../../library/node/open.ts';
import { nodeFlag } from '../../library/command-flags.ts';
import { parseVersionChoice } from '../../library/inputs.ts';
import { type Flag, flagRow, openFlags } from '../../library/options.ts';
import { refuse } from '../../library/refusal.ts';
import { exitStatus, type ExitStatus } from '../shared/terminal.ts';
import { defineCommand, type Call } from './call.ts';
import { wordsOfCall, limitFlag, outputFlag, traceSide, readRevisions } from './flags.ts';
import { messageFlags } from './messages.ts';
import { expectManifests, type InputFlags } from './open-input.ts';
import { readAsWords } from '../../say/grounds.ts';

interface DiffFlags extends InputFlags {
  readonly toKubernetesVersion?: string;
  readonly output: (typeof diffOutputs)[number];
  readonly foreign?: boolean;
  readonly rules?: boolean;
  readonly limit: number;
}

const moreManifests =
  'more manifests for each side that is manifests, such as Nodes: a file, a folder, or - for stdin (repeat for more)';

const diffFlags: readonly Flag[] = [
  ...openFlags('compares', { file: { help: moreManifests } }),
  nodeFlag('the node to compile manifests for (default: the node of a bundle on the other side)'),
  flagRow(
    'text',
    '--to-kubernetes-version <version>',
    'show what an upgrade of Kubernetes changes on a node: compile the manifests of -f (or of one argument) for ' +
      '--kubernetes-version and for this release, and compare the two',
  ),
  outputFlag(diffOutputs),
  limitFlag,
  flagRow('on', '--rules', 'also show which rules, sets and virtual servers differ; always shown for a dump', {
    idle: [
      { beside: '--output unified', why: 'always-rules' },
      { beside: '--to-kubernetes-version', why: 'always-rules' },
    ],
  }),
  flagRow('on', '--foreign', 'also compare objects of other programs'),
  ...messageFlags,
];

export const addDiffCommand = defineCommand<DiffFlags>({
  name: 'diff',
  summary: 'Show what differs between two sides, Service by Service.',
  description:
    'Show what differs between two sides, Service by Service. Exit status 1 if anything differs, or if a dump has virtual ' +
    "servers that may or may not be kube-proxy's. kpc names what one side does not show, but does not compare it; if " +
    'nothing can be compared, the exit status is 2.\n' +
    'Each side is a bundle or a golden (a folder that kpc compile wrote), a dump of a node (a file or folder with the ' +
    'output of iptables-save, ip6tables-save, ipset save, ipvsadm -Sn, ip -j addr, sysctl -a or nft list ruleset, or ' +
    'a folder that kpc-apply dump wrote) or manifests (a file, a folder, or - for stdin). A side may be REVISION:PATH in the ' +
    'git repository, such as main:deploy. Where no flag says how to compile manifests, kpc follows the bundle or dump on ' +
    'the other side.',
  arguments: [
    ['[from]', 'the old side'],
    ['[to]', 'the new side'],
  ],
  flags: diffFlags,
  run: async (call) => {
    const { toKubernetesVersion, file: files = [], ...others } = call.options;
    if (toKubernetesVersion !== undefined) return diffReleases(call, toKubernetesVersion);
    // If there are too few arguments, the sides are taken from -f.
    const areInFiles = call.words.length < 2 && call.words.length + files.length === 2;
    const [from, to] = areInFiles ? [...call.words, ...files] : call.words;
    if (from === undefined || to === undefined) return refuse({ problem: 'no-side', first: from });
    const settings = [from, to].filter(namesSetting);
    if (settings.length > 0) refuse({ problem: 'settings-as-files', from, to, settings });
    return diffPaths(call, [from, to], areInFiles ? others : { ...others, file: files });
  },
});

async function diffPaths(
  call: Call<DiffFlags>,
  paths: FromTo<string>,
  options: Omit<DiffFlags, 'toKubernetesVersion'>,
): Promise<ExitStatus> {
  const { file: more = [] } = options;
  const found = await recognisePair([pathSide(paths[0]), pathSide(paths[1])], options);
  // This is checked before the flags about compiling are used.
  refuseStrays(
    call.given.filter((each) => !isUsefulForStored(each, found)),
    found,
  );
  const { optionsOf, taken, commandOf } = readRevisions(call);
  const opened = await openPair(
    found,
    {
      ...options,
      allNodes: false,
      compare: wordsOfCall(
        call.command,
        more.flatMap((each) => ['-f', pathWord(each)]),
      ),
    },
    more,
    optionsOf,
  );
  const read = readPair(opened, found);
  await call.report(read);
  const sides = read.sides.map((side) => side ?? call.end()) as [Snapshot, Snapshot];
  await call.note(...read.notes);
  const named = more.length > 0 && areStored(found) ? await nameSides(sides, options) : undefined;
  if (named) await call.report(named);
  const [from, to] = named?.sides ?? sides;
  const [before, after] = [from.settings?.release, to.settings?.release];
  // If the releases differ, the manifests alone do not explain all differences.
  if (before !== undefined && after !== undefined && before !== after) {
    const releases = { fromRelease: before, toRelease: after };
    await call.note({ problem: 'two-releases', from: from.name, to: to.name, ...releases });
  }
  const traceOf = (side: Snapshot, path: string) => traceSide(commandOf(path), side, [path, ...more]);
  const trace = { old: traceOf(from, paths[0]), new: traceOf(to, paths[1]) };
  const isReview = !options.rules && options.output !== 'unified';
  const differences = compareSides(from, to, {
    foreign: options.foreign === true,
    trace: isReview ? trace : undefined,
  });
  const status = await print(call, differences, [...(options.taken ?? []), ...taken]);
  if (read.bothAs) await call.say(`Both sides: ${printable(readAsWords(read.bothAs))}\n`);
  return status;
}

async function diffReleases(call: Call<DiffFlags>, toVersion: string): Promise<ExitStatus> {
  const toFlag = '--to-kubernetes-version';
  const { options } = call;
  const [path, second] = call.words;
  if (second !== undefined) refuse({ problem: 'second-input', path: second });
  const paths = path === undefined ? [] : [path];
  const to = parseVersionChoice(toVersion, toFlag);
  await call.expectNone(to.diagnostics);
  await expectManifests(call, paths);
  const read = { ...options, file: [...paths, ...(options.file ?? [])] };
  const opened = await openUpgrade(path ?? '-f', read, to.choice, toFlag);
  await call.report(opened);
  const { notes, ...compared } = (opened.compare ?? call.end())();
  await call.note(...notes);
  return print(call, compared, options.taken);
}

async function print(
  call: Call<DiffFlags>,
  differences: Differences,
  taken: readonly string[] | undefined,
): Promise<ExitStatus> {
  const services = listSkipped(differences.from, differences.to);
  if (services.length > 0) await call.note({ problem: 'skipped-on-both', services });
  const parts = listUncompared(differences);
  // This list is printed only for people. In JSON, it is part of the result.
  if (parts.length > 0) await call.say(`note: not compared, because one side lacks them: ${parts.join(', ')}\n`);
  const isSame = isUnchanged(differences);
  const { output, limit } = call.options;
  if (output === 'unified') await call.out(formatSideDiffs(differences.from, differences.to));
  else {
    const style = { limit, isColoured: call.terminal.colour.out, taken, said: call.said };
    await call.answerAs(output, diffAnswer(differences, style));
  }
  return isSame ? exitStatus.ok : exitStatus.negative;
}
