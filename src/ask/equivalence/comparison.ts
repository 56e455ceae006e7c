import type { Scene } from '../trace/scene.ts';
import { compareScenes } from './compare.ts';
import { Findings, nodeOf, type Divergence } from './findings.ts';
import type { Only } from './representatives.ts';

/** The result of comparing many nodes. */
export interface Compared {
  /** Packet classes that were compared, and those without an answer on either side. */
  readonly classes: number;
  readonly unknown: number;
  /** Why some have no answer, and what would settle it. */
  readonly reasons: readonly string[];
  readonly findings: readonly Divergence[];
  /** The nodes that packets were sent to; '' if there is no Node object. */
  readonly asked: readonly string[];
}

export class Comparison {
  readonly #findings = new Findings();
  readonly #reasons = new Set<string>();
  readonly #asked = new Set<string>();
  #classes = 0;
  #unknown = 0;

  /** Compares both sides of one node; `only` skips what another node represents. */
  add(scenes: readonly [Scene, Scene], only: Only | undefined): void {
    const { classes, unknown, reasons } = compareScenes(...scenes, this.#findings.collector(...scenes), { only });
    this.#asked.add(nodeOf(...scenes));
    for (const reason of reasons) this.#reasons.add(reason);
    this.#classes += classes;
    this.#unknown += unknown;
  }

  result(): Compared {
    return {
      classes: this.#classes,
      unknown: this.#unknown,
      reasons: [...this.#reasons].toSorted(),
      findings: this.#findings.list(),
      asked: [...this.#asked],
    };
  }
}
