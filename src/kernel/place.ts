/** Line and column count from 1. */
export interface Location {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A place as data: no line means the whole file. */
export type Located = Pick<Location, 'file'> & Partial<Location>;

/** A field of an input document. Finding its line means parsing the document again, so that waits until a diagnostic needs it. */
export interface Place {
  readonly file: string;
  locate(): Location;
  /** The object in the file: equal for all fields of one object, and different between objects. */
  readonly object?: string;
  /** True for the whole file, such as one that cannot be read. */
  readonly isWholeFile?: boolean;
}

/** Why an item exists: the Service port ("namespace/name:port") and field it comes from. Ignored by equality. */
export interface Origin {
  readonly servicePort: string;
  readonly place?: Place | undefined;
}
