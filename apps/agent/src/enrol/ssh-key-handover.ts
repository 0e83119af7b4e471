import type { KeyPair } from "@devplat/ssh-protocol";

/** Hands new SSH keys with a passphrase from their enrolment to the SSH agent, which is built later, or not at all. */
export class SshKeyHandover {
  #receiver: ((pair: KeyPair) => void) | undefined;

  /** Sets the only receiver. Keys from before are not handed over. */
  receive(receiver: (pair: KeyPair) => void): void {
    this.#receiver = receiver;
  }

  offer(pair: KeyPair): void {
    this.#receiver?.(pair);
  }
}
