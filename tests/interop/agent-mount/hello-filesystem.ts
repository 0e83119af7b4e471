/**
 * A small filesystem for tests of the mount's device, as a program of its own: `hello-filesystem.ts MOUNTPOINT`.
 * It prints one line of JSON for each event, and obeys lines on its standard input.
 *
 * - `hello.txt`, `folder/a b`: small files. `large`: 1 MiB, never cached. `folder/many`: 2,000 entries.
 * - `held`: its LOOKUP is answered after the command `release`. `notify` tells the kernel about it before.
 */
import { constants as files, readSync } from "node:fs";
import { constants } from "node:os";
import {
  DirectoryWriter,
  INIT_FLAGS,
  OPEN_REPLY_FLAGS,
  ReplyWriter,
  decodeRequest,
  encodeInvalidEntry,
  negotiate,
  type Entry,
  type FuseRequest,
} from "@devplat/fuse-protocol";
import { FuseDevice } from "../../../apps/agent/src/surfaces/mount/device/fuse-device.ts";
import { mount } from "../../../apps/agent/src/surfaces/mount/device/mount.ts";
import {
  prepareMountpoint,
  removeOwnMounts,
  resolveMountpoint,
} from "../../../apps/agent/src/surfaces/mount/device/mountpoint.ts";
import { Poller } from "../../../apps/agent/src/surfaces/mount/device/poller.ts";

const { ENOENT, ENOSYS, EIO } = constants.errno;
const MAX_BYTES = 131_072;
const OPTIONS = { source: "devplat-test", subtype: "hello", maxReadBytes: MAX_BYTES };
const VALID_MS = 60_000;
const TIME = { seconds: 1_700_000_000, nanoseconds: 500_000_000 };
const ROOT = 1n;
const HELD = "held";

interface Node {
  readonly id: bigint;
  readonly content: Buffer | ReadonlyMap<string, Node>;
}

let last = ROOT;
const nodes = new Map<bigint, Node>();
const node = (content: Node["content"], id = ++last): Node => {
  const made = { id, content };
  nodes.set(id, made);
  return made;
};
const file = (content: string | Buffer): Node => node(Buffer.from(content));
const folder = (entries: Readonly<Record<string, Node>>, id?: bigint): Node =>
  node(new Map(Object.entries(entries)), id);

const many = folder(
  Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`entry-${index}`, file(`${index}`)])),
);
folder(
  {
    "hello.txt": file("hello from the mount\n"),
    large: file(Buffer.alloc(1024 * 1024, "0123456789abcdef")),
    folder: folder({ "a b": file("a name with a space\n"), many }),
  },
  ROOT,
);

/** In no listing. */
const heldFile = file("held\n");

const say = (event: object): void => void process.stdout.write(`${JSON.stringify(event)}\n`);

const [, , given = ""] = process.argv;
const path = await resolveMountpoint(given);
const uid = process.geteuid?.() ?? 0;
const stale = await removeOwnMounts(path, { ...OPTIONS, uid });
await prepareMountpoint(path);
const descriptor = await mount(path, OPTIONS);
using device = new FuseDevice(descriptor, MAX_BYTES);
const poller = new Poller([device.descriptor, 0]);
const reply = new ReplyWriter();
const listing = new DirectoryWriter();
let held: FuseRequest | undefined;
say({ event: "mounted", uid, ...stale });

function entryOf({ id, content }: Node): Entry {
  const isFile = Buffer.isBuffer(content);
  return {
    nodeId: id,
    nameValidMs: VALID_MS,
    attributesValidMs: VALID_MS,
    attributes: {
      inode: id,
      size: isFile ? content.length : 0,
      accessTime: TIME,
      modificationTime: TIME,
      changeTime: TIME,
      mode: isFile ? files.S_IFREG | 0o400 : files.S_IFDIR | 0o500,
      links: 1,
      uid,
      gid: process.getegid?.() ?? 0,
      blockSize: 4096,
    },
  };
}

function list(request: Extract<FuseRequest, { operation: "readdir" | "readdirplus" }>): Buffer {
  const here = nodes.get(request.header.nodeId)?.content;
  if (!(here instanceof Map)) return reply.error(request.header.unique, EIO);
  listing.begin(request.header.unique, request.size);
  const entries = [...here];
  for (let index = request.offset; index < entries.length; index++) {
    const [name, child] = entries[index]!;
    const entry = entryOf(child);
    const shown = { name, inode: child.id, mode: entry.attributes.mode, nextOffset: index + 1 };
    const fits = request.operation === "readdir" ? listing.add(shown) : listing.addPlus(shown, entry);
    if (!fits) break;
  }
  return listing.finish();
}

function answer(request: FuseRequest): void {
  const { unique, nodeId } = request.header;
  const found = nodes.get(nodeId);
  switch (request.operation) {
    case "init": {
      const { asyncRead, readdirplus, readdirplusAuto, parallelDirectoryOperations } = INIT_FLAGS;
      const flags = asyncRead | readdirplus | readdirplusAuto | parallelDirectoryOperations;
      const connection = negotiate(request, { flags, maxWriteBytes: MAX_BYTES });
      say({ event: "init", minor: request.minor, flags: connection.flags });
      device.write(reply.init(unique, connection));
      return;
    }
    case "lookup": {
      const child = found?.content instanceof Map ? found.content.get(request.name.text ?? "") : undefined;
      if (request.name.text === HELD && held === undefined) {
        held = request;
        say({ event: "held", pid: request.header.pid });
      } else
        device.write(
          child === undefined ? reply.missing(unique, VALID_MS) : reply.entry(unique, entryOf(child)),
        );
      return;
    }
    case "getattr":
      if (found !== undefined) device.write(reply.attributes(unique, entryOf(found).attributes, VALID_MS));
      else device.write(reply.error(unique, ENOENT));
      return;
    case "open":
      device.write(reply.opened(unique, nodeId, OPEN_REPLY_FLAGS.directIo));
      return;
    case "opendir":
      device.write(reply.opened(unique, nodeId, 0));
      return;
    case "read": {
      const content = found?.content;
      if (!Buffer.isBuffer(content)) device.write(reply.error(unique, EIO));
      else {
        const data = content.subarray(request.offset, request.offset + request.size);
        device.write(reply.dataHeader(unique, data.length), data);
      }
      return;
    }
    case "readdir":
    case "readdirplus":
      device.write(list(request));
      return;
    case "statfs":
      device.write(
        reply.statfs(unique, {
          blockSize: 4096,
          blocks: 300,
          freeBlocks: 0,
          files: nodes.size,
          freeFiles: 0,
          maxNameBytes: 255,
        }),
      );
      return;
    case "release":
    case "releasedir":
    case "flush":
      device.write(reply.done(unique));
      return;
    case "forget":
    case "batch-forget":
    case "interrupt":
      return;
    default:
      device.write(reply.error(unique, ENOSYS));
  }
}

function obey(command: string): void {
  if (command === "release" && held !== undefined) {
    device.write(reply.entry(held.header.unique, entryOf(heldFile)));
  }
  if (command === "notify")
    void device.notify(encodeInvalidEntry(ROOT, HELD)).then((known) => say({ event: "notified", known }));
}

const input = Buffer.alloc(256);
const trace = process.env["TRACE_REQUESTS"] !== undefined;
for (;;) {
  poller.wait(500);
  if (poller.isReady(0)) {
    const message = device.read();
    if (message === "unmounted") break;
    if (message !== undefined) {
      if (trace) say({ event: "request", hex: message.toString("hex") });
      answer(decodeRequest(message));
    }
  }
  if (poller.isReady(1)) {
    const length = readSync(0, input);
    // The end of the input is the end of the test.
    if (length === 0) break;
    for (const command of input.toString("utf8", 0, length).trim().split("\n")) obey(command);
  }
  await new Promise(setImmediate);
}
say({ event: "unmounted" });
