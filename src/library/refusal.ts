/** Ends what was asked for: the call or its input is not one that it can be done for. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  /** What to do about it. */
  readonly help: string | undefined;

  constructor(what: string, help?: string) {
    super(what);
    this.help = help;
  }
}

export function refuse(what: string, help?: string): never {
  throw new Refusal(what, help);
}
