/** `step` is called for each finished node. */
export interface Progress {
  readonly step: () => Promise<void>;
  readonly end: () => Promise<void>;
}

export const noProgress: Progress = { step: async () => {}, end: async () => {} };
