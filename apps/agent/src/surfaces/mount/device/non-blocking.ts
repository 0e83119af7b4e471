import { AgentError } from "../../../errors.ts";
import { lastErrorName, systemCalls } from "./system-calls.ts";

const F_SETFL = 4;
const O_NONBLOCK = 0o4000;
const O_RDWR = 2;

/** Calls on this descriptor never wait: they fail with EAGAIN. @throws AgentError `mount_failed` */
export function setNonBlocking(descriptor: number): void {
  if (systemCalls().fcntl(descriptor, F_SETFL, O_NONBLOCK | O_RDWR) !== 0)
    throw new AgentError("mount_failed", `cannot prepare a descriptor of the mount: ${lastErrorName()}`);
}
