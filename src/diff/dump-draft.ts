import { areApart, type Host } from '../dumps/hosts.ts';
import type { OutputKind } from '../dumps/output-kinds.ts';
import type { ToolOutput } from '../dumps/split-outputs.ts';
import { families } from '../kernel/family.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import { finishDrafts, startDrafts } from './kind-drafts.ts';
import type { Dump, DumpFault, DumpFileKind } from './dump.ts';
import { findDifferences, type Listing } from './second-listings.ts';
import type { Doubt } from './side.ts';

/** A dump while its files are read. */
export class DumpDraft {
  readonly kinds = startDrafts();
  readonly #files: Dump['files'][number][] = [];
  readonly #faults: DumpFault[] = [];
  readonly #told = new Set<string>();
  /** By reason and file: the first line, and how many more there are. */
  readonly #unread = new Map<string, { more: number }>();
  readonly #doubts: Doubt[] = [];
  /** The first host of each kind: an address and a name may be of one node. */
  readonly #hosts = new Map<Host['kind'], Host>();
  /** By file and host: the outputs of other hosts. */
  readonly #ofOthers = new Map<string, OutputKind[]>();
  /** The first listing of each tool. */
  readonly #listings = new Map<string, { readonly items: Listing; readonly isWhole: boolean }>();

  /** Adds what is wrong with a file; what is wrong with it in the same way again is told once. */
  fault(fault: DumpFault): void {
    const key = JSON.stringify({ ...fault, line: 0, count: 0 });
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#faults.push(fault);
  }

  /** Whether an output is of another host than the first one, which is then said: a dump is of one node. */
  isOfOtherHost(file: string, { host, kind, firstLine }: ToolOutput): boolean {
    const first = host && this.#hosts.get(host.kind);
    if (host && !first) this.#hosts.set(host.kind, host);
    if (!host || !first || !areApart(first, host)) return false;
    const key = `${host.name} ${file}`;
    const known = this.#ofOthers.get(key);
    if (known) {
      if (!known.includes(kind)) known.push(kind);
      return true;
    }
    const outputs = [kind];
    this.#ofOthers.set(key, outputs);
    this.#faults.push({ kind: 'other-host', file, line: firstLine, outputs, host, first });
    return true;
  }

  /**
   * Whether a listing is of another node or another time than the first of its tool, which is then said: two states are not to be
   * taken for one.
   */
  isSecond(
    at: Omit<DumpFault & { readonly kind: 'second-listing' }, 'kind' | 'differences'>,
    items: Listing,
    isWhole: boolean,
  ): boolean {
    const first = this.#listings.get(at.output);
    const differences = first ? findDifferences(first.items, items, isWhole && first.isWhole) : [];
    if (differences.length > 0) {
      this.#faults.push({ kind: 'second-listing', ...at, differences });
      return true;
    }
    this.#listings.set(at.output, {
      items: new Map([...(first?.items ?? []), ...items]),
      isWhole: isWhole || first?.isWhole === true,
    });
    return false;
  }

  doubt(doubt: Doubt): void {
    this.#doubts.push(doubt);
  }

  file(name: string, kind: DumpFileKind): void {
    if (this.#files.every((file) => file.name !== name || file.kind !== kind)) this.#files.push({ name, kind });
  }

  /** Lines that could not be read; their numbers count from the line after `offset` of the file. */
  unread(file: string, lines: readonly UnreadLine[], offset: number): void {
    if (lines.length === 0) return;
    for (const line of lines) {
      const key = `${line.reason} ${file}`;
      const known = this.#unread.get(key);
      if (known) known.more++;
      else {
        const draft = { kind: 'unread-line' as const, file, line: { ...line, line: line.line + offset }, more: 0 };
        this.#unread.set(key, draft);
        this.#faults.push(draft);
      }
    }
    if (this.#doubts.every((doubt) => doubt.kind !== 'unread' || doubt.file !== file)) {
      this.doubt({ file, kind: 'unread' });
    }
  }

  finish(): Dump {
    const { state, told } = finishDrafts(this.kinds);
    return {
      state,
      coverage: { ...told, families, excerpts: this.kinds.iptables.excerpts },
      files: this.#files,
      faults: this.#faults,
      doubts: this.#doubts,
    };
  }
}
