// What a comparison leaves out.
import type { BeyondKernel, CountedKind } from '../ask/diff/beyond-kernel.ts';
import type { ComparisonGap, GapPart } from '../ask/diff/not-compared.ts';
import { partsOfDump, type Scene } from '../ask/trace/scene.ts';
import { count, joinWords, nameSome, pluralOf } from '../base/printable.ts';
import type { Doubt } from '../dumps/dump.ts';
import { families, familyNames } from '../kernel/family.ts';
import { tableNames } from '../kernel/iptables/iptables.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { unlistedWords } from './way/dumps.ts';

const partNames: { readonly [P in GapPart]: string } = {
  iptables: 'rules',
  nftables: 'nftables rules',
  sets: 'sets',
  virtualServers: 'virtual servers',
  proxyPorts: 'proxy ports',
  links: 'addresses',
  sysctls: 'sysctls',
  ipvsTimeouts: 'IPVS timeouts',
  base: 'rules and sets that belong to no Service',
  nodeAddresses: "the node's addresses",
  rest: 'the rest',
  objects: 'objects with errors, which are left out',
  services: 'Services without a cluster IP, which kpc skips on both sides',
};

/** The names of the parts that were not compared, without repetition. */
export function describeGaps(gaps: readonly ComparisonGap[]): readonly string[] {
  const words = gaps.map(({ part, family, table, doubt, beyond }) => {
    if (beyond) return beyondWords(beyond);
    if (doubt) return describeDoubt(doubt);
    const ofTable = table === undefined ? '' : ` of table ${table}`;
    return (family === undefined ? '' : `${familyNames[family]} `) + partNames[part] + ofTable;
  });
  return [...new Set(words)];
}

function describeDoubt(doubt: Doubt): string {
  switch (doubt.kind) {
    case 'unread':
      return `what could not be read of ${doubt.file}`;
    case 'empty':
      return `what is not in ${doubt.file}, which is empty`;
    case 'cut-line':
      return `what may follow in ${doubt.file}, whose last line is cut off`;
    case 'unlisted':
      return `what ${doubt.file} lacks: ${unlistedWords(doubt)}`;
    case 'second-listing':
      return `${doubt.output} of another node in ${doubt.file}`;
    case 'other-table':
      return `table ${doubt.table} (nftables)`;
    case 'other-variant':
    case 'legacy-tables':
      return `${familyNames[doubt.family]} rules of the other variant of iptables`;
  }
}

export function beyondWords(beyond: BeyondKernel): string {
  switch (beyond.kind) {
    case 'objects':
      return `${countOf(beyond)} that ${beyond.count === 1 ? 'differs' : 'differ'}`;
    case 'ways':
      return `${countOf(beyond)} that ${beyond.count === 1 ? 'leads' : 'lead'} to a Service that changed`;
    case 'unrecorded': {
      const fields = beyond.fields.map(({ field, services }) => `${field} of ${nameSome(services)}`);
      return `${joinWords([...beyond.objects.map(countOf), ...fields])}, which one side does not record`;
    }
    case 'endpoints':
      return `endpoints of ${nameSome(beyond.names)}, which neither side gives`;
    case 'kept-slices':
      return `endpoints of ${nameSome(beyond.names)}, whose EndpointSlices fit only one side (give each its own, or both the Pods)`;
    case 'later-connections':
      return `later connections of a client, as session affinity of ${nameSome(beyond.names)} differs`;
    case 'zones':
      return `near endpoints of ${nameSome(beyond.names)}, as no Node shows a zone`;
    case 'nodes':
      return `packets on ${nameSome(beyond.names)}, which only one side has`;
    case 'readiness':
      return `when Pods of ${nameSome(beyond.names)} are ready: their probes or gates differ, and they are assumed ready`;
  }
}

function countOf({ of, count: number }: CountedKind): string {
  return count(number, of, pluralOf(of));
}

/** The iptables rules that a dump lacks, in words: "table filter of IPv4". */
function lackingRules({ iptables }: Snapshot['coverage']): readonly string[] {
  return families.flatMap((family) => {
    const missing = tableNames.filter((table) => !iptables[family].includes(table));
    if (missing.length === tableNames.length) return [`rules of ${familyNames[family]}`];
    return missing.map((table) => `table ${table} of ${familyNames[family]}`);
  });
}

/** Sentences about what one side of a comparison does not show. */
export function describeUnshown({ side: { name, coverage, mode } }: Scene): readonly string[] {
  const lacking = mode && modeFacts[mode].kinds.has('iptables') ? lackingRules(coverage) : [];
  const unshown = partsOfDump.filter((part) => !coverage[part]).map((part) => partNames[part]);
  return [
    ...(lacking.length > 0
      ? [`${name} does not show ${joinWords(lacking)}: what packets meet there is not known`]
      : []),
    ...(unshown.length > 0 ? [`${name} does not show ${unshown.join(', ')}: assumed equal to the other side`] : []),
  ];
}
