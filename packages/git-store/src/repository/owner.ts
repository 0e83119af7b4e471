import { createHash, randomBytes } from "node:crypto";
import { readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";

/**
 * Who made a lock or a temporary file: `<machine>.<pid>.<instance>`. The machine part covers the host name and, on
 * Linux, the pid namespace, because containers that share a folder reuse small pids; the instance is random, because
 * a restarted container often has the pid that the one before had.
 */
const MACHINE = createHash("sha256").update(`${hostname()}\0${pidNamespace()}`).digest("hex").slice(0, 12);
const INSTANCE = instanceOfProcess();

/** This process, as {@link ownerIsGone} understands it. Letters, digits and dots only. */
export const OWNER = `${MACHINE}.${process.pid}.${INSTANCE}`;

/** Whether the owner has ended. `undefined` when that cannot be known from here: judge by age. */
export function ownerIsGone(owner: string): boolean | undefined {
  const [machine, pidText, instance] = owner.split(".");
  const pid = Number(pidText);
  if (machine !== MACHINE || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  if (pid === process.pid) return instance !== INSTANCE;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, as another user.
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
  // Alive, or another process that was given its pid.
  return undefined;
}

/** The same in all threads of a process: a worker inherits the environment data of the thread that started it. */
function instanceOfProcess(): string {
  const key = "git-store.instance";
  const known = getEnvironmentData(key);
  if (typeof known === "string") return known;
  const made = randomBytes(6).toString("hex");
  setEnvironmentData(key, made);
  return made;
}

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}
