/** The Pods that a workload of the input was taken to have. */
export interface AssumedWorkload {
  /** "Deployment namespace/name". */
  readonly workload: string;
  readonly pods: readonly AssumedPod[];
}

export interface AssumedPod {
  readonly name: string;
  /** Undefined if the input holds no Node. */
  readonly node?: string | undefined;
  /** One of each family at most. */
  readonly addresses: readonly string[];
}
