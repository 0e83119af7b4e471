import type { Clock, Logger } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { SshAgentIdentityView, SshAgentStatus } from "../../../ssh-agent-view.ts";

/** Refusals that the status shows. */
const MAX_REFUSALS = 20;
/** Keys whose uses are remembered. */
const MAX_KEYS = 1000;

/** A signature that was made or refused. */
export interface SignatureRecord {
  readonly fingerprint: string;
  /** Name of the source, or the socket of another agent; undefined: no such key is listed. */
  readonly source: string | undefined;
  /** Such as "login as alice". */
  readonly purpose: string;
  /** Name of the host, or the fingerprint of its key. */
  readonly destination: string | undefined;
  readonly forwarded: boolean;
  /** Names of the hosts that the connection is forwarded through. */
  readonly through: readonly string[];
  readonly pid: number | undefined;
  readonly program: string | undefined;
  /** Why it was refused; undefined: it was made. */
  readonly refusal: string | undefined;
}

interface KeyUse {
  readonly last: NonNullable<SshAgentIdentityView["last_use"]>;
  readonly signatures: number;
}

/** Writes one line for each signature, and remembers the last ones for the status. */
export class SignatureLog {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #uses = new BoundedMap<string, KeyUse>({ max: MAX_KEYS });
  #refusals: SshAgentStatus["refusals"] = [];
  #signed = 0;
  #refused = 0;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  note(record: SignatureRecord): void {
    const { refusal, ...fields } = record;
    const { fingerprint, destination, forwarded, program } = fields;
    const at = new Date(this.#clock.now()).toISOString();
    if (refusal !== undefined) {
      this.#refused++;
      this.#logger.warn({ ...fields, outcome: "refused", reason: refusal }, "SSH signature refused");
      this.#refusals = [{ at, fingerprint, reason: refusal }, ...this.#refusals].slice(0, MAX_REFUSALS);
      return;
    }
    this.#logger.info({ ...fields, outcome: "signed" }, "SSH signature made");
    this.#signed++;
    const last = { at, destination: destination ?? null, forwarded, program: program ?? null };
    const signatures = (this.#uses.get(fingerprint)?.signatures ?? 0) + 1;
    this.#uses.set(fingerprint, { last, signatures });
  }

  useOf(fingerprint: string): Pick<SshAgentIdentityView, "last_use" | "signatures"> {
    const use = this.#uses.peek(fingerprint);
    return { last_use: use?.last ?? null, signatures: use?.signatures ?? 0 };
  }

  counts(): SshAgentStatus["signatures"] {
    return { signed: this.#signed, refused: this.#refused };
  }

  refusals(): SshAgentStatus["refusals"] {
    return this.#refusals;
  }
}
