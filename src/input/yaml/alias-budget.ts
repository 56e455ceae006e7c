import { Refusal } from '../syntax-fault.ts';

/** go-yaml's bounds: up to so many values all but a hundredth may come through aliases, from the second on a tenth. */
const unboundCount = 400_000;
const strictCount = 4_000_000;
const mostRatio = 0.99;
const leastRatio = 0.1;

/** Counts the values of a document, and how many come from aliases: few lines can stand for more than fits in a memory. */
export class AliasBudget {
  #values = 0;
  #copies = 0;
  /** The offsets of the aliases that are being read, the outermost first. */
  readonly #aliases: number[] = [];

  count(): void {
    this.#values++;
    const [alias] = this.#aliases;
    if (alias === undefined) return;
    this.#copies++;
    if (this.#copies <= 100 || this.#values <= 1000 || this.#copies / this.#values <= allowedRatio(this.#values))
      return;
    const details = { copies: this.#copies, values: this.#values };
    throw new Refusal({ offset: alias, code: 'alias-bomb', arguments: details });
  }

  enterAlias(offset: number): void {
    this.#aliases.push(offset);
  }

  leaveAlias(): void {
    this.#aliases.pop();
  }
}

function allowedRatio(values: number): number {
  if (values <= unboundCount) return mostRatio;
  if (values >= strictCount) return leastRatio;
  return mostRatio - (mostRatio - leastRatio) * ((values - unboundCount) / (strictCount - unboundCount));
}
