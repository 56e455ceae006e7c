import type { ArgumentsOf, DiagnosticCode } from '../diagnostics/codes.ts';
import { faultOf, type Fault } from '../diagnostics/diagnostic.ts';
import type { NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import type { Coverage } from './coverage.ts';
import { DraftedState } from './drafted-state.ts';
import { findDifferences, type Listing } from './compare-repeated.ts';
import type { OutputKind, ReadableKind } from './output-kinds.ts';
import type { ToolOutput } from './split-outputs.ts';
import { areApart, type Host } from './typed-commands.ts';

/** What a file of a dump is: the tool that printed it. */
export type DumpFileKind =
  Exclude<ReadableKind, 'rules'> | 'iptables-save' | 'ip6tables-save' | 'iptables -S' | 'ip6tables -S';

/** What was taken from a node, by kpc-apply dump or by hand. */
export interface Dump {
  readonly state: KernelState;
  readonly coverage: Coverage;
  /** Each output that was read, with the file it is in. */
  readonly files: readonly { readonly name: string; readonly kind: DumpFileKind }[];
  readonly faults: readonly DumpFault[];
  readonly doubts: readonly Doubt[];
}

/** Why a dump may hold more than was read of it. */
export type Doubt =
  | {
      readonly file: string;
      /**
       * Lines that could not be read; nothing at all, as of a tool that failed; or an end in the middle of a line.
       */
      readonly kind: 'unread' | 'empty' | 'cut-line';
    }
  /** A table of another program in nftables, which is no part of a side's state: packets alone meet it. */
  | {
      readonly kind: 'other-table';
      /** "inet firewalld". */
      readonly table: string;
      /** Its rules for packets of IP: none in families such as arp. Undefined if not all of it could be read. */
      readonly tables: readonly NftTable[] | undefined;
    };

/** Why a file of a dump, or a part of it, is left out, or how it was read; without a line, of the whole file. */
export type DumpFault = Fault & { readonly file: string; readonly line: number | undefined };

/** A dump while its files are read: what is taken, and what there is to say about it. */
export class DumpDraft {
  readonly state = new DraftedState();
  readonly #files: Dump['files'][number][] = [];
  readonly #faults: DumpFault[] = [];
  readonly #doubts: Doubt[] = [];
  readonly #reported = new Set<string>();
  /** By reason and file: how many lines there are besides the first. */
  readonly #unread = new Map<string, { more: number }>();
  /** The first host of each kind: an address and a name may be of one node. */
  readonly #hosts = new Map<Host['kind'], Host>();
  /** By file and host: the outputs of other hosts. */
  readonly #ofOthers = new Map<string, OutputKind[]>();
  /** The first listing of each tool. */
  readonly #listings = new Map<DumpFileKind, { readonly items: Listing; readonly isWhole: boolean }>();

  /** Adds what is wrong with a file; what is wrong with it in the same way again is reported once. */
  fault<Code extends DiagnosticCode>(file: string, code: Code, details: ArgumentsOf<Code>, line?: number): void {
    const key = JSON.stringify([file, code, details]);
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#faults.push({ ...faultOf(code, details), file, line });
  }

  /** Adds why an output is not read, or not all of it: `reason` is a clause about it. */
  refuse(file: string, line: number, output: string, reason: string): void {
    this.fault(file, 'unread-output', { output, reason, isAll: false }, line);
  }

  doubt(doubt: Doubt): void {
    this.#doubts.push(doubt);
  }

  file(name: string, kind: DumpFileKind): void {
    if (this.#files.every((file) => file.name !== name || file.kind !== kind)) this.#files.push({ name, kind });
  }

  /** Whether an output is of another host than the first one, which is then reported: a dump is of one node. */
  isOfOtherHost(file: string, { host, kind, firstLine }: ToolOutput): boolean {
    if (!host) return false;
    const first = this.#hosts.get(host.kind) ?? host;
    this.#hosts.set(host.kind, first);
    if (!areApart(first, host)) return false;
    const key = `${host.name} ${file}`;
    const outputs = this.#ofOthers.get(key);
    if (!outputs) {
      const others = [kind];
      this.#ofOthers.set(key, others);
      this.fault(file, 'other-host', { outputs: others, host, first }, firstLine);
    } else if (!outputs.includes(kind)) outputs.push(kind);
    return true;
  }

  /**
   * Whether a listing is of another node or another time than the first of its tool, which is then reported: two states are not
   * taken for one.
   */
  isSecond(file: string, line: number, output: DumpFileKind, items: Listing, isWhole: boolean): boolean {
    const first = this.#listings.get(output);
    const differences = first ? findDifferences(first.items, items, isWhole && first.isWhole) : [];
    if (differences.length > 0) {
      this.fault(file, 'second-listing', { output, differences }, line);
      return true;
    }
    this.#listings.set(output, {
      items: new Map([...(first?.items ?? []), ...items]),
      isWhole: isWhole || first?.isWhole === true,
    });
    return false;
  }

  /** Reports lines that could not be read, one for each reason; their numbers count from the line after `offset`. */
  unread(file: string, lines: readonly UnreadLine[], offset: number): void {
    for (const { reason, line } of lines) {
      const key = `${reason} ${file}`;
      const known = this.#unread.get(key);
      if (known) known.more++;
      else {
        const details = { reason, more: 0 };
        this.#unread.set(key, details);
        this.fault(file, 'unread-line', details, line + offset);
      }
    }
    const isKnown = this.#doubts.some((doubt) => doubt.kind === 'unread' && doubt.file === file);
    if (lines.length > 0 && !isKnown) this.doubt({ file, kind: 'unread' });
  }

  finish(): Dump {
    return { ...this.state.finish(), files: this.#files, faults: this.#faults, doubts: this.#doubts };
  }
}
