import type { Finding } from '../../base/findings/finding.ts';
import { showsAnything } from '../../dumps/coverage.ts';
import { compileLike, flagsOfFollowed, namesItself, optionsLike, type Beside } from '../open/compile-like.ts';
import {
  openManifests,
  openNodes,
  openReading,
  type Opened,
  type Reading,
  type Recognised,
  withHostAddresses,
  withNames,
} from '../open/stored-side.ts';
import type { LoadedInputs } from '../open/load-texts.ts';
import { recogniseInputs, type SideOptions } from './read-side.ts';
import { emptyText } from './empty-sides.ts';
import { loadInputs, loadUnder, readHostText } from './read-texts.ts';

interface OpenPathsOptions extends SideOptions {
  readonly allNodes?: boolean | undefined;
  /** Whether to add flows that are listed beside manifests. Flows show present connections; manifests show where new packets go. */
  readonly addsFlows?: boolean;
  readonly name?: string;
}

export interface OpenedPaths extends Opened {
  readonly kind: Recognised['kind'];
  readonly path: string | undefined;
}

export async function openPaths(options: OpenPathsOptions): Promise<OpenedPaths> {
  const { file = [], addsFlows = false } = options;
  const input = await recogniseInputs(file, options);
  const path = file.find((each) => !input.beside.includes(each));
  const { flows, coverage } = input.side ?? {};
  if (input.kind === 'manifests') return openFiles(options);
  if (addsFlows && flows && input.beside.length > 0 && coverage && !showsAnything(coverage)) {
    const { at, ...opened } = await openFiles({ ...options, file: input.beside });
    const withFlows = ({ side, ...reading }: Reading) => ({ ...reading, side: side?.with({ flows }) });
    return { ...opened, at: (name) => withFlows(at(name)) };
  }
  const reading = input.kind === 'dump' ? await openDump(input, options) : input;
  return { ...openReading(reading), kind: input.kind, path };
}

async function openFiles(options: OpenPathsOptions): Promise<OpenedPaths> {
  const { file = [], name = file.join(', ') } = options;
  const opened = openManifests(name, await loadInputs(options), options);
  return { ...opened, kind: 'manifests', path: undefined };
}

/** Opens a dump. Adds the addresses from the options. Also adds the objects from manifests beside the dump or in its support bundle. */
async function openDump(
  { beside, manifests: texts, ...input }: Recognised & { readonly kind: 'dump' },
  options: OpenPathsOptions,
): Promise<Reading> {
  const { hostAddresses } = options;
  const read = withHostAddresses(input, hostAddresses === undefined ? undefined : readHostText(hostAddresses));
  const { side } = read;
  if (!side || beside.length + texts.length === 0) return read;
  // Errors in a support bundle's manifests are tolerated, because the user did not choose these manifests.
  return withNames({ ...read, side }, await loadInputs({ ...options, file: beside, texts }), beside.length > 0);
}

export interface ManifestSide extends Pick<LoadedInputs, 'assumedCluster' | 'inputs' | 'nodes' | 'settings'> {
  readonly compile: (beside: Beside, allNodes: boolean) => Opened;
}

/** `adds`: what a mode, release or configuration on the other side sets. It applies here too, unless this side's own objects set it. */
export async function readManifestSide(
  path: string,
  { side: other }: Recognised,
  options: SideOptions & { readonly emptiness?: Finding | undefined },
  adds?: Partial<SideOptions>,
): Promise<ManifestSide> {
  const { file = [], emptiness } = options;
  const inputs = emptiness
    ? { file, texts: [emptyText(path)], emptyResult: 'allowed' as const }
    : { file: [path, ...file] };
  const unadded = optionsLike(other, { ...options, ...inputs });
  const bare = await loadInputs(unadded);
  const isAdded = adds !== undefined && !namesItself(bare, adds);
  const asOther = isAdded ? { ...adds, ...unadded } : unadded;
  const read = isAdded ? await loadUnder(asOther, bare) : bare;
  const taken = isAdded ? flagsOfFollowed(adds, read) : undefined;
  return {
    ...read,
    compile: (beside, allNodes) => {
      const isAlone = Object.values(beside).every((fact) => fact === undefined);
      const loaded = isAlone ? read : read.under({ ...asOther, ...beside }, read.texts.config);
      const { dualStackAs, ...unflagged } = beside;
      // No flag can express `remade` (slices made again), or the use of the other side's Nodes (`nodesBeside`, `takenNodes`).
      const isOwn = !emptiness && Object.values(unflagged).every((fact) => fact === undefined);
      const alone = (node: string) => {
        if (emptiness) return undefined;
        const own = read.under({ ...asOther, node, dualStackAs }, read.texts.config);
        return compileLike(path, own, other, { ...options, node, dualStackAs, taken }).side;
      };
      return openNodes(loaded, { ...options, allNodes }, (node) => {
        const reading = compileLike(path, loaded, other, { ...options, ...beside, node, taken });
        if (isOwn) return reading;
        const diagnostics = emptiness ? [emptiness, ...reading.diagnostics] : reading.diagnostics;
        return { ...reading, diagnostics, side: reading.side && withAlone(reading.side, alone) };
      });
    },
  };
}

type Side = NonNullable<Reading['side']>;

function withAlone(side: Side, alone: (node: string) => Side | undefined): Side {
  if (side.kind === 'dump') return side;
  return side.with({ alone, onNode: (name) => side.onNode(name)?.with({ alone }) });
}
