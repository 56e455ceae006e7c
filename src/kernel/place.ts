/** A position in a file; line and column count from 1. */
export interface Location {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export type Located = Pick<Location, 'file'> & Partial<Location>;

/** A field of an input document. The line is looked up only for a diagnostic, because this means parsing the document again. */
export interface Place {
  readonly file: string;
  locate(): Location;
  /** Identifies the object in the file. Equal for all fields of one object. */
  readonly object?: string;
  readonly isWholeFile?: boolean;
}

/** Why an object exists: the Service port ("namespace/name:port") and the field that it comes from. Equality ignores it. */
export interface Origin {
  readonly servicePort: string;
  readonly place?: Place | undefined;
}
