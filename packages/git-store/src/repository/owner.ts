import { createHash, randomBytes } from "node:crypto";
import { readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";
import { hasCode } from "../errors.ts";

/**
 * Owner of a lock or a temporary file: `<machine>.<pid>.<instance>`. The machine part covers the host name and, on
 * Linux, the pid namespace, because containers that share a folder reuse small pids. The instance is random, because
 * a restarted container often has the pid of its predecessor.
 */
const MACHINE = createHash("sha256").update(`${hostname()}\0${pidNamespace()}`).digest("hex").slice(0, 12);
const INSTANCE = instanceOfProcess();

/** Owner name of this process, for {@link ownerIsGone}. It has only letters, digits and dots. */
export const OWNER = `${MACHINE}.${process.pid}.${INSTANCE}`;

/** Tells whether the owner has ended. `undefined` when this machine cannot know: the caller decides by age. */
export function ownerIsGone(owner: string): boolean | undefined {
  const [machine, pidText, instance] = owner.split(".");
  const pid = Number(pidText);
  if (machine !== MACHINE || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  if (pid === process.pid) return instance !== INSTANCE;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it runs as another user.
    return hasCode(error, "ESRCH");
  }
  // The owner runs, or another process has its pid.
  return undefined;
}

/** Random per process, equal in its threads: a worker inherits the environment data of the thread that started it. */
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
