import { randomBytes } from "node:crypto";
import { json, type SideAnswer } from "./side.ts";

/** Decision of the person with a device code. */
type Decision = { readonly login: string } | "denied" | undefined;

interface Device {
  readonly userCode: string;
  decision: Decision;
  askedAt: number;
}

/** GitHub's device flow (RFC 8628, with GitHub's habit of answering errors with status 200). */
export class DeviceGrants {
  /** Seconds between two questions of a client; a quicker one is told to slow down. */
  interval = 1;
  readonly #devices = new Map<string, Device>();

  begin(base: string): SideAnswer {
    const deviceCode = randomBytes(20).toString("hex");
    const letters = randomBytes(4).toString("hex").toUpperCase();
    const userCode = `${letters.slice(0, 4)}-${letters.slice(4)}`;
    this.#devices.set(deviceCode, { userCode, decision: undefined, askedAt: 0 });
    return json(200, {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: `${base}/login/device`,
      expires_in: 900,
      interval: this.interval,
    });
  }

  /** The person types the code and decides. False for a code that was never given out. */
  decide(userCode: string, decision: NonNullable<Decision>): boolean {
    const device = [...this.#devices.values()].find((each) => each.userCode === userCode);
    if (device !== undefined) device.decision = decision;
    return device !== undefined;
  }

  /** Whose token a device gets now, or the error that it is told. A code works once. */
  poll(deviceCode: string): { readonly login: string } | { readonly error: string } {
    const device = this.#devices.get(deviceCode);
    if (device === undefined) return { error: "incorrect_device_code" };
    const isEarly = Date.now() - device.askedAt < this.interval * 1000;
    device.askedAt = Date.now();
    if (isEarly) return { error: "slow_down" };
    if (device.decision === undefined) return { error: "authorization_pending" };
    this.#devices.delete(deviceCode);
    return device.decision === "denied" ? { error: "access_denied" } : device.decision;
  }
}
