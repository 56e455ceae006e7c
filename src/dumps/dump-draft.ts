import type { ArgumentsOf, DiagnosticCode } from '../diagnostics/codes.ts';
import { faultOf } from '../diagnostics/diagnostic.ts';
import { areApart, type Host } from './host-of-output.ts';
import type { OutputKind } from './output-kinds.ts';
import type { ToolOutput } from './split-outputs.ts';
import { families } from '../kernel/family.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import { finishDrafts, startDrafts } from './kind-drafts.ts';
import type { Doubt, Dump, DumpFault, DumpFileKind } from './dump.ts';
import { findDifferences, type Listing } from './listed-twice.ts';

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
  fault<Code extends DiagnosticCode>(file: string, code: Code, details: ArgumentsOf<Code>, line?: number): void {
    const key = JSON.stringify([file, code, details]);
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#push(file, code, details, line);
  }

  /** Adds why an output is not read, or not all of it: `reason` is a clause about it. */
  refuse(file: string, line: number, output: string, reason: string): void {
    this.fault(file, 'unread-output', { output, reason, isAll: false }, line);
  }

  #push<Code extends DiagnosticCode>(file: string, code: Code, details: ArgumentsOf<Code>, line?: number): void {
    this.#faults.push({ ...faultOf(code, details), file, line });
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
    this.#push(file, 'other-host', { outputs, host, first }, firstLine);
    return true;
  }

  /**
   * Whether a listing is of another node or another time than the first of its tool, which is then said: two states are not to be
   * taken for one.
   */
  isSecond(
    { file, line, output }: { readonly file: string; readonly line: number; readonly output: DumpFileKind },
    items: Listing,
    isWhole: boolean,
  ): boolean {
    const first = this.#listings.get(output);
    const differences = first ? findDifferences(first.items, items, isWhole && first.isWhole) : [];
    if (differences.length > 0) {
      this.#push(file, 'second-listing', { output, differences }, line);
      return true;
    }
    this.#listings.set(output, {
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
        const details = { reason: line.reason, more: 0 };
        this.#unread.set(key, details);
        this.#push(file, 'unread-line', details, line.line + offset);
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
