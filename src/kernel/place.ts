/** A place in an input file; line and column count from 1. */
export interface Location {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A place as data: a file as a whole has no line. */
export type Located = Pick<Location, 'file'> & Partial<Location>;

/** A field of an input document. Finding its line costs a parse of the document, so it waits until a diagnostic needs it. */
export interface Place {
  readonly file: string;
  locate(): Location;
  /** Which object of the file it is in: the same for all its fields, and for no field of another. */
  readonly object?: string;
  /** True for the file as a whole, such as one that cannot be read: it has no lines to point at. */
  readonly isWholeFile?: boolean;
}

/**
 * Why an item is in a state: the Service port that asked for it ("namespace/name" or "namespace/name:port"), or
 * undefined for what every node has, and the field it came from. Takes no part in equality.
 */
export interface Origin {
  readonly servicePort: string;
  readonly place?: Place | undefined;
}
