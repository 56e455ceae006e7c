export interface AssumedWorkload {
  /** "Deployment namespace/name". */
  readonly workload: string;
  readonly pods: readonly AssumedPod[];
}

export interface AssumedPod {
  readonly name: string;
  readonly node?: string | undefined;
  /** One of each family at most. */
  readonly addresses: readonly string[];
}
