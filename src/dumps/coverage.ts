import { families, type Family } from '../kernel/family.ts';
import { tableNames, type TableName, type Tables } from '../kernel/iptables/iptables.ts';
import { mapKinds, type ObjectKind } from '../kernel/kinds.ts';
import type { Link } from '../kernel/link/link.ts';
import type { KernelState } from '../kernel/state.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import { setFamily } from '../kube-proxy/sets.ts';

/** What is told of the objects of each kind. */
export interface Told extends Readonly<Record<ObjectKind, unknown>> {
  /** For each family the tables of iptables whose rules are known. */
  readonly iptables: Readonly<Record<Family, readonly TableName[]>>;
  /** Families whose tables of nftables are known. */
  readonly nftables: readonly Family[];
  readonly sets: boolean;
  readonly virtualServers: boolean;
  readonly links: boolean;
  readonly sysctls: boolean;
  readonly ipvsTimeouts: boolean;
  readonly modules: boolean;
}

/** What a side can tell of a kernel. What one of two sides cannot tell is no difference between them. */
export interface Coverage extends Told {
  /** Families that sets, virtual servers and addresses were made for. */
  readonly families: readonly Family[];
  /** Families of whose rules a part was printed, as it was meant: what there is of it can be looked at. */
  readonly excerpts?: readonly Family[] | undefined;
}

/** How much can be told of the objects of one kind. */
interface KindCoverage<Objects, All> {
  /** All of them. */
  readonly all: All;
  /** What two sides can both tell. */
  both(a: All, b: All): All;
  /** The objects that are told, of these families. */
  cut(objects: Objects, told: All, ofFamilies: readonly Family[]): Objects;
}

const kindCoverages: { readonly [K in ObjectKind]: KindCoverage<KernelState[K], Told[K]> } = {
  iptables: {
    all: { ipv4: tableNames, ipv6: tableNames },
    both: (a, b) => ({ ipv4: common(a.ipv4, b.ipv4), ipv6: common(a.ipv6, b.ipv6) }),
    cut: (iptables, told) => {
      const cut: { [F in Family]?: Tables } = {};
      for (const family of families) {
        if (told[family].length > 0) cut[family] = cutTables(iptables[family] ?? {}, told[family]);
      }
      return cut;
    },
  },
  nftables: {
    all: families,
    both: common,
    cut: (tables, told) => tables.filter(({ family }) => told.includes(family)),
  },
  sets: wholeOrNothing([], (sets, ofFamilies) => sets.filter((set) => ofFamilies.includes(setFamily(set)))),
  virtualServers: wholeOrNothing([], (servers, ofFamilies) =>
    servers.filter(({ family }) => ofFamilies.includes(family)),
  ),
  links: wholeOrNothing<readonly Link[]>([], (links, ofFamilies) =>
    links.map((link) => ({
      ...link,
      addresses: link.addresses.filter(({ family }) => ofFamilies.includes(family)),
    })),
  ),
  sysctls: wholeOrNothing(new Map(), (sysctls) => sysctls),
  ipvsTimeouts: wholeOrNothing(undefined, (timeouts) => timeouts),
  modules: wholeOrNothing([], (modules) => modules),
};

function common<T>(a: readonly T[], b: readonly T[]): readonly T[] {
  return a.filter((each) => b.includes(each));
}

/** A kind that a side tells all of, or nothing. */
function wholeOrNothing<Objects>(
  nothing: Objects,
  ofFamilies: (objects: Objects, ofFamilies: readonly Family[]) => Objects,
): KindCoverage<Objects, boolean> {
  return {
    all: true,
    both: (a, b) => a && b,
    cut: (objects, isTold, those) => (isTold ? ofFamilies(objects, those) : nothing),
  };
}

/** What is compiled tells everything: of a family that it was not compiled for, that kube-proxy programs nothing there. */
export function coverAll(): Coverage {
  return { ...mapKinds<Told>((kind) => kindCoverages[kind].all), families };
}

/** What both can tell. */
export function intersectCoverage(a: Coverage, b: Coverage): Coverage {
  return {
    ...mapKinds<Told>((kind) => kindCoverages[kind].both(a[kind], b[kind])),
    families: common(a.families, b.families),
  };
}

/** What of a state is told. */
export function coverState(state: KernelState, coverage: Coverage): KernelState {
  return mapKinds<KernelState>((kind) => kindCoverages[kind].cut(state[kind], coverage[kind], coverage.families));
}

/** The rules that Services are read from: all but those that are cut off somewhere. */
export function coverRulesToRead(iptables: FamilyTables, coverage: Coverage): FamilyTables {
  const covered: { [F in Family]?: Tables } = {};
  for (const family of families) {
    const tables = iptables[family];
    const isExcerpt = coverage.excerpts?.includes(family) === true;
    if (tables) covered[family] = isExcerpt ? tables : cutTables(tables, coverage.iptables[family]);
  }
  return covered;
}

function cutTables(tables: Tables, told: readonly TableName[]): Tables {
  if (tableNames.every((name) => told.includes(name))) return tables;
  return Object.fromEntries(told.flatMap((name) => (tables[name] ? [[name, tables[name]]] : [])));
}

/** The tables that kube-proxy works in. */
export const workingTables: readonly TableName[] = ['nat', 'filter'];

/** Whether all of kube-proxy's rules of a family are known. */
export function tellsRules({ iptables }: Coverage, family: Family): boolean {
  return workingTables.every((table) => iptables[family].includes(table));
}

/** Whether kube-proxy's tables of nftables are known, of both families. */
export function tellsNftables({ nftables }: Coverage): boolean {
  return nftables.length === families.length;
}
