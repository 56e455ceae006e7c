import { Comparison, type Compared } from '../equivalence/comparison.ts';
import { chooseStandIns } from '../equivalence/representatives.ts';
import type { Opened, Reading } from '../snapshot/open/opened.ts';
import { describeUnshown, onOneNode, sceneOf, type Scene } from '../trace/scene.ts';

/** Both sides of one node. */
export interface ComparedNode {
  readonly readings: readonly [Reading, Reading];
  /** Undefined if one side cannot be used. */
  readonly scenes: readonly [Scene, Scene] | undefined;
  /** What one side does not show, and is taken to be as on the other. */
  readonly notes: readonly string[];
}

/** A comparison of two inputs, on the nodes that stand for all. */
export class NodeComparison {
  /** How many nodes there are, and how many of them stand for all. */
  readonly counts: { readonly nodes: number; readonly standIns: number };
  readonly #sides: readonly [Opened, Opened];
  readonly #standIns: ReturnType<typeof chooseStandIns>;
  readonly #comparison = new Comparison();

  constructor(from: Opened, to: Opened) {
    const ofBoth = from.loaded && to.loaded ? from.loaded : undefined;
    const nodes = ofBoth ? from.nodes : [''];
    this.#sides = [from, to];
    this.#standIns = ofBoth
      ? chooseStandIns(ofBoth.prepared.nodes, ofBoth.prepared.cluster, nodes)
      : nodes.map((node) => ({ node, only: undefined }));
    this.counts = { nodes: nodes.length, standIns: this.#standIns.length };
  }

  /** Reads node after node. Each is compared when the next is asked for; after one that cannot be used, there is none. */
  *run(): Generator<ComparedNode, void, undefined> {
    const [from, to] = this.#sides;
    for (const { node, only } of this.#standIns) {
      const readings = [from.at(node), to.at(node)] as const;
      const [before, after] = readings.map(({ side }) => side && sceneOf(side));
      if (!before || !after) {
        yield { readings, scenes: undefined, notes: [] };
        return;
      }
      const scenes = onOneNode(before, after);
      yield { readings, scenes, notes: [before, after].flatMap(describeUnshown) };
      this.#comparison.add(scenes, only);
    }
  }

  result(): Compared {
    return this.#comparison.result();
  }
}
