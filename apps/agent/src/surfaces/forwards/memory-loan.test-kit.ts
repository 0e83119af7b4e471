/** A loan of the peer socket that remembers its calls. The user is asked until the first answer. */
export class MemoryLoan {
  readonly calls: unknown[] = [];

  consent(allowed: boolean): boolean {
    this.calls.push(allowed);
    return this.calls.length === 1;
  }

  async revoke(): Promise<void> {
    this.calls.push("revoke");
  }
}
