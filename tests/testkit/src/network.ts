import { randomInt } from "node:crypto";
import { TestkitError } from "./errors.ts";
import { run } from "./process.ts";

/** Networks of the range for benchmarks (RFC 2544) that a test may choose from, each with two addresses. */
const NETWORKS = 2 ** 13;

/** A network namespace with one address, which this machine reaches by one route. Needs root. */
export interface TestNetwork {
  readonly namespace: string;
  /** IPv4 address inside. */
  readonly address: string;
  /** Takes the route away: packets to the address are refused here. */
  removeRoute(): Promise<void>;
  restoreRoute(): Promise<void>;
  /** Drops all packets without a word, as a firewall or a dead cable does. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  stop(): Promise<void>;
}

/** Makes a network namespace that is connected by a pair of virtual cards. */
export async function startNetwork(): Promise<TestNetwork> {
  const number = randomInt(NETWORKS);
  const name = `tk${number}`;
  const base = number * 4;
  const prefix = `198.${18 + (base >> 16)}.${(base >> 8) & 255}`;
  const own = `${prefix}.${(base & 255) + 1}`;
  const address = `${prefix}.${(base & 255) + 2}`;
  const network = `${prefix}.${base & 255}/30`;
  const [near, far] = [`${name}a`, `${name}b`];
  await ip("netns", "add", name);
  await ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name);
  await ip("addr", "add", `${own}/30`, "dev", near);
  await ip("link", "set", near, "up");
  await ip("-n", name, "addr", "add", `${address}/30`, "dev", far);
  await ip("-n", name, "link", "set", far, "up");
  await ip("-n", name, "link", "set", "lo", "up");
  return {
    namespace: name,
    address,
    removeRoute: async () => {
      await ip("route", "del", network, "dev", near);
      // Else another route, such as the default one, takes the packets.
      await ip("route", "add", "unreachable", network);
    },
    restoreRoute: async () => {
      await ip("route", "del", "unreachable", network);
      await ip("route", "add", network, "dev", near, "src", own);
    },
    cut: () => ip("-n", name, "addr", "del", `${address}/30`, "dev", far),
    restore: () => ip("-n", name, "addr", "add", `${address}/30`, "dev", far),
    stop: async () => {
      // The pair of cards and their routes go with the namespace; this route may be left by a test that failed.
      await run("ip", ["route", "del", "unreachable", network], {});
      await ip("netns", "delete", name);
    },
  };
}

async function ip(...args: string[]): Promise<void> {
  const { code, stderr } = await run("ip", args, {});
  if (code !== 0) throw TestkitError.failed(`ip ${args.join(" ")}`, stderr);
}
