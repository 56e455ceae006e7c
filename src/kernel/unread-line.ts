/** A line of a tool's output that kpc cannot read; line counts from 1. */
export interface UnreadLine {
  readonly line: number;
  readonly text: string;
  readonly reason: string;
}
