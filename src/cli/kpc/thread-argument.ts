/** The argument of a thread of `kpc compile --jobs`, in the place of a command. */
export const threadArgument = 'fleet-thread';
