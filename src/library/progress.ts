/** Told of each node that is done. */
export interface Progress {
  readonly step: () => Promise<void>;
  readonly end: () => Promise<void>;
}

/** For whoever shows nothing. */
export const noProgress: Progress = { step: async () => {}, end: async () => {} };
