/** One socket of `/proc/net/tcp` or `/proc/net/tcp6` (proc_net_tcp(5)). */
export interface SocketRecord {
  /** Address and port as 16 bytes in hex (IPv4 mapped, RFC 4291 section 2.5.5.2) and a number: see {@link endpoint}. */
  readonly local: string;
  readonly remote: string;
  /** See {@link TCP_STATE}. */
  readonly state: number;
  readonly uid: number;
  /** 0: no process holds the socket (not accepted yet, or closed), and `uid` says nothing. */
  readonly inode: number;
}

/** Kernel states of a TCP socket (include/net/tcp_states.h). */
export const TCP_STATE = {
  established: 1,
  finWait1: 4,
  finWait2: 5,
  closeWait: 8,
  listen: 10,
} as const;

/**
 * The records of one table. Lines that do not look as expected are left out, and connections in TIME_WAIT, which no
 * process holds: a server has thousands of them after many short connections.
 *
 * @param port only records with this port at either end; a busy host has thousands of records
 */
export function parseSocketTable(text: string, port?: number): SocketRecord[] {
  const records: SocketRecord[] = [];
  const mark = port === undefined ? "" : `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  for (const line of text.split("\n").slice(1)) {
    if (!line.includes(mark) || line.includes(TIME_WAIT)) continue;
    const [, local, remote, state, , , , uid, , inode] = line.trim().split(/\s+/);
    if (local === undefined || remote === undefined || uid === undefined || inode === undefined) continue;
    const [from, to] = [kernelEndpoint(local), kernelEndpoint(remote)];
    if (from === undefined || to === undefined || !/^\d+$/.test(uid) || !/^\d+$/.test(inode)) continue;
    const fits = port === undefined || [from, to].some((end) => end.endsWith(`:${port}`));
    if (!fits || state === undefined || !/^[0-9A-F]{2}$/.test(state)) continue;
    records.push({
      local: from,
      remote: to,
      state: Number.parseInt(state, 16),
      uid: Number(uid),
      inode: Number(inode),
    });
  }
  return records;
}

/** `0100007F:1F90` as the kernel prints it: 32-bit words in the byte order of the machine. */
function kernelEndpoint(text: string): string | undefined {
  const match = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/.exec(text);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  const bytes = Buffer.from(match[1], "hex");
  if (LITTLE_ENDIAN) bytes.swap32();
  const address = bytes.toString("hex");
  return `${address.length === 8 ? MAPPED_PREFIX + address : address}:${Number.parseInt(match[2], 16)}`;
}

/** The state between the addresses and the first queue; no other column has two digits. */
const TIME_WAIT = " 06 ";
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
const MAPPED_PREFIX = "00000000000000000000ffff";

/** The same form for an address as Node prints it; undefined if it is none. */
export function endpoint(address: string | undefined, port: number | undefined): string | undefined {
  if (address === undefined || port === undefined) return undefined;
  const hex = address.includes(":") ? ipv6Hex(address) : ipv4Hex(address);
  return hex === undefined ? undefined : `${hex}:${port}`;
}

function ipv4Hex(address: string): string | undefined {
  const octets = address.split(".").map(Number);
  const valid = octets.length === 4 && octets.every((octet) => Number.isInteger(octet) && octet <= 255);
  return valid ? MAPPED_PREFIX + Buffer.from(octets).toString("hex") : undefined;
}

function ipv6Hex(address: string): string | undefined {
  // The URL parser prints every IPv6 address in one form, mapped IPv4 included (RFC 5952).
  const host = URL.parse(`http://[${address.split("%", 1)[0]}]/`)?.hostname.slice(1, -1);
  if (host === undefined) return undefined;
  const [head = "", tail] = host.split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return [...before, ...zeros, ...after].map((word) => word.padStart(4, "0")).join("");
}
