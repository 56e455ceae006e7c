/** The Pods that a workload of the input was taken to have. */
export interface AssumedWorkload {
  /** "Deployment namespace/name". */
  readonly workload: string;
  readonly pods: readonly AssumedPod[];
}

/** A Pod that kpc assumed, with the addresses that its endpoints got. */
export interface AssumedPod {
  readonly name: string;
  /** Undefined if the input holds no Node. */
  readonly node?: string | undefined;
  /** One of each family at most. */
  readonly addresses: readonly string[];
}
