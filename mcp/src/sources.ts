// Opens the inputs that a question names, by the rules of the command line.
import { baseName, bundleHead, folderOf, goldenHead } from '../../src/base/names.ts';
import { diagnose, type Finding } from '../../src/base/findings/finding.ts';
import type { ProxyMode } from '../../src/kube-proxy/modes.ts';
import type { ManifestsOfNodes, NamedText } from '../../src/library/index.ts';
import { openAny } from '../../src/library/open.ts';
import { Refusal, refuse } from '../../src/library/refusal.ts';
import { sayFinding } from '../../src/say/words/said.ts';
import { unknownInFleet, type Recognised } from '../../src/snapshot/open/stored-side.ts';
import { recogniseTexts } from '../../src/snapshot/open/recognise-texts.ts';
import { refuseUse } from './refusals.ts';
import type { TextsBelow } from './texts-below.ts';

type Source = string | { readonly name: string; readonly text: string };

export interface Compiled {
  readonly manifests?: readonly Source[] | undefined;
  readonly dump?: readonly Source[] | undefined;
  readonly proxyMode?: ProxyMode | undefined;
  readonly kubernetesVersion?: ManifestsOfNodes['kubernetesVersion'];
  readonly node?: string | undefined;
  readonly namespace?: string | undefined;
  readonly assume?: boolean | undefined;
  readonly config?: Source | undefined;
  readonly toConfig?: Source | undefined;
  readonly hostAddresses?: Source | undefined;
  readonly exclude?: string | readonly string[];
}

interface Named {
  readonly name: string;
  readonly texts: readonly NamedText[];
  readonly kind: Recognised['kind'];
  readonly diagnostics: readonly Finding[];
}

/** Reads a folder's manifests as kpc lists them, or all of its files if it holds something else. */
async function listSource(path: string, { exclude = [], node }: Compiled, files: TextsBelow): Promise<Named> {
  const packed = await files.readPack(path);
  if (packed) return recognise(path, packed);
  const listed = recognise(path, files.readManifests(path, [exclude].flat()));
  if (listed.kind === 'manifests' && listed.texts.length > 0) return listed;
  const all = ofNode(recognise(path, files.read(path)), node);
  return all.kind === 'manifests' ? listed : all;
}

function recognise(name: string, texts: readonly NamedText[]): Named {
  const { kind, diagnostics } = recogniseTexts(name, texts);
  return { name, texts, kind, diagnostics };
}

function ofNode(named: Named, node: string | undefined): Named {
  const { name, texts, diagnostics } = named;
  if (node === undefined || diagnostics[0]?.code !== 'nodes-folder') return named;
  const own = texts.filter((text) => baseName(folderOf(text.name)) === node);
  if (own.length > 0) return recognise(`${name}/${node}`, own);
  const heads = texts.filter((text) => [bundleHead, goldenHead].includes(baseName(text.name)));
  const known = heads.map((head) => baseName(folderOf(head.name))).toSorted();
  throw new Refusal(sayFinding(unknownInFleet(node, known)));
}

async function sourcesOf(input: Compiled, files: TextsBelow): Promise<readonly Named[]> {
  const { manifests: given = [] } = input;
  return Promise.all(
    given.map(async (each) =>
      typeof each === 'string' ? listSource(each, input, files) : recognise(each.name, [each]),
    ),
  );
}

async function printedIn({ dump = [], node }: Compiled, files: TextsBelow): Promise<readonly Named[]> {
  return Promise.all(
    dump.map(async (each) => {
      if (typeof each !== 'string') return recognise(each.name, [each]);
      return ofNode(recognise(each, (await files.readPack(each)) ?? files.read(each)), node);
    }),
  );
}

function textOptions(input: Compiled, files: TextsBelow) {
  const { manifests: _, dump: __, exclude: ___, config, toConfig, hostAddresses, ...others } = input;
  const [ofConfig, ofChange, ofHost] = [config, toConfig, hostAddresses].map((each) =>
    typeof each === 'string' ? files.read(each)[0] : each,
  );
  return {
    ...others,
    ...(ofConfig ? { config: ofConfig } : {}),
    ...(ofChange ? { toConfig: ofChange } : {}),
    ...(ofHost ? { hostAddresses: ofHost } : {}),
  };
}

function pathOf(sources: readonly Named[]): string {
  return sources.map(({ name }) => name).join(', ');
}

/** `path`: the input's name in answers. */
export async function readManifests(input: Compiled, files: TextsBelow) {
  const sources = await sourcesOf(input, files);
  if (sources.length === 0) refuseUse('no manifests are named', 'name manifests, or write file: into kpc.yaml');
  for (const { kind, name: path, diagnostics } of sources) {
    const wrong = kind === 'unreadable' ? diagnostics[0] : diagnose('no-manifests', { what: kind, path });
    if (kind !== 'manifests' && wrong) throw new Refusal(sayFinding(wrong));
  }
  return {
    path: pathOf(sources),
    options: { ...textOptions(input, files), manifests: sources.flatMap(({ texts }) => texts) },
  };
}

/** Recognises each source by its content. Manifests beside a dump name its Services. `path`: the input's name in messages. */
export async function openInput(input: Compiled, files: TextsBelow) {
  const printed = await printedIn(input, files);
  const sources = await sourcesOf(input, files);
  if (printed.length + sources.length === 0)
    refuseUse('no input is named', 'name manifests or a dump, or write file: into kpc.yaml');
  const others = [...printed, ...sources.filter(({ kind }) => kind !== 'manifests')];
  const beside = sources.filter(({ kind }) => kind === 'manifests');
  const path = pathOf(others.length > 0 ? others : beside);
  const textsOf = (named: readonly Pick<Named, 'texts'>[]) => named.flatMap(({ texts }) => texts);
  const opened = openAny(textsOf(others), textOptions(input, files), path, textsOf(beside));
  return printed.length > 0 && opened.kind === 'manifests' ? refuse({ problem: 'no-dump', path }) : { ...opened, path };
}
