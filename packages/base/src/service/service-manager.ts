import { closeSync } from "node:fs";
import { unixAddress } from "../system/unix-address.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2_000_000;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
/** Variables of the service manager. A child must not take them for its own. */
const VARIABLES = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] as const;
/** Maximum length of a status, in characters: it is one line of `systemctl status`. */
const MAX_STATUS_CHARS = 200;

/** How a service manager supervises this process. */
interface Supervision {
  /** Sends a message (sd_notify(3)). @returns whether it was sent */
  readonly send: (message: string) => boolean;
  /** Milliseconds after which a process that is silent is ended; undefined: it may be silent. */
  readonly watchdogMs: number | undefined;
}

/**
 * The service manager that started this process, such as systemd. Without one, and after a failure to reach it, every
 * method does nothing.
 */
export class ServiceManager {
  readonly #send: Supervision["send"];
  /** Milliseconds after which a process that does not call {@link alive} is ended; undefined: it is not supervised so. */
  readonly watchdogMs: number | undefined;
  #isStopping = false;

  constructor({ send, watchdogMs }: Supervision) {
    this.#send = send;
    this.watchdogMs = watchdogMs;
  }

  /**
   * Finds it by the environment, and takes its variables out, so that no child speaks for this process.
   * @param environment of this process
   */
  static async find(environment: NodeJS.ProcessEnv, pid: number = process.pid): Promise<ServiceManager> {
    const { NOTIFY_SOCKET: path = "", WATCHDOG_USEC: interval = "", WATCHDOG_PID: watched } = environment;
    for (const name of VARIABLES) delete environment[name];
    const address = /^[/@]/.test(path) ? unixAddress(path) : undefined;
    if (process.platform !== "linux" || address === undefined) return new ServiceManager(UNSUPERVISED);
    const isWatched = /^[1-9]\d{0,15}$/.test(interval) && (watched === undefined || watched === String(pid));
    return new ServiceManager({
      send: await datagramSender(address),
      watchdogMs: isWatched ? Number(interval) / 1000 : undefined,
    });
  }

  /** The start, or a reload of the configuration, is complete. After {@link stopping} nothing is sent. @param status for people */
  ready(status: string): void {
    if (this.#isStopping) return;
    this.#send(`READY=1\n${statusLine(status)}`);
  }

  /** The configuration is read again. {@link ready} follows, also if the old one stays. After {@link stopping} nothing is sent. */
  reloading(): void {
    if (this.#isStopping) return;
    this.#send(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  /** @param graceMs longest time until the end, where it is longer than the service manager expects */
  stopping(graceMs: number): void {
    this.#isStopping = true;
    this.#send(`STOPPING=1\nEXTEND_TIMEOUT_USEC=${Math.ceil(graceMs * 1000)}\n${statusLine("stopping")}`);
  }

  /** @param status for people: the state of the process in one line */
  status(status: string): void {
    this.#send(statusLine(status));
  }

  /** The process works. */
  alive(): void {
    this.#send("WATCHDOG=1");
  }
}

const UNSUPERVISED: Supervision = { send: () => false, watchdogMs: undefined };

/** A message is lines of `NAME=VALUE`: a line break in a text would begin another one. */
function statusLine(text: string): string {
  return `STATUS=${text.replace(/\p{Cc}+/gu, " ").slice(0, MAX_STATUS_CHARS)}`;
}

/**
 * Node has no datagrams on Unix sockets, so the C library sends them. The process that sends counts (`NotifyAccess=main`), so a
 * child such as systemd-notify could not do it.
 */
async function datagramSender(address: Buffer): Promise<Supervision["send"]> {
  // Only a process with a service manager loads it.
  const { bindLibc } = await import("../system/libc.ts");
  const { socket, sendto } = bindLibc({
    socket: { arguments: ["int32", "int32", "int32"], return: "int32" },
    sendto: { arguments: ["int32", "buffer", "uint64", "int32", "buffer", "uint32"], return: "int64" },
  });
  return (message) => {
    const descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return false;
    try {
      const bytes = Buffer.from(message);
      // Never waits: a service manager that does not read must not hold up the process.
      const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
      const sent = sendto(descriptor, bytes, BigInt(bytes.length), flags, address, address.length);
      return sent === BigInt(bytes.length);
    } finally {
      closeSync(descriptor);
    }
  };
}
