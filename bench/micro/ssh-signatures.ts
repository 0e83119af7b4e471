import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decodePublicKeyLine, type AgentRequest } from "@devplat/ssh-protocol";
import { medianOf } from "../lib/agent-requests.ts";
import { run as runProgram, tempFolder, until } from "@devplat/testkit";
import type { Report } from "../lib/report.ts";
import { interleave, summarize } from "../lib/statistics.ts";

/** Requests of one sample, one after another on one connection. */
const REQUESTS = 2000;
/** Bytes that are signed, as many as in a login. */
const DATA_BYTES = 250;
const SERVER = join(import.meta.dirname, "ssh-agent-server.ts");

/** Signatures and lists of keys over a Unix socket: an agent that is only the codec, and OpenSSH's. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-ssh");
  const at = (name: string): string => join(folder.path, name);
  const children: ChildProcess[] = [];
  try {
    await runProgram("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at("id")]);
    const { blob } = decodePublicKeyLine(readFileSync(at("id.pub"), "utf8"));
    const ours = ["--disable-warning=ExperimentalWarning", SERVER, at("id"), at("ours.sock")];
    children.push(spawn(process.execPath, ours, { stdio: "ignore" }));
    children.push(spawn("ssh-agent", ["-D", "-a", at("reference.sock")], { stdio: "ignore" }));
    await until(() => existsSync(at("ours.sock")) && existsSync(at("reference.sock")));
    await runProgram("ssh-add", ["-q", at("id")], {
      env: { ...process.env, SSH_AUTH_SOCK: at("reference.sock") },
    });
    const requests: Readonly<Record<string, AgentRequest>> = {
      "Ed25519 signature": { type: "sign", key: blob, data: Buffer.alloc(DATA_BYTES, 7), flags: 0 },
      "list of one key": { type: "identities" },
    };
    const rows: Report["rows"][number][] = [];
    for (const [what, request] of Object.entries(requests)) {
      const samples = await interleave(
        {
          ours: () => medianOf(at("ours.sock"), request, REQUESTS),
          reference: () => medianOf(at("reference.sock"), request, REQUESTS),
        },
        rounds,
      );
      rows.push({
        what: `${what}, p50`,
        unit: "µs",
        ours: summarize(samples.ours),
        reference: summarize(samples.reference),
        referenceName: "ssh-agent",
        target: { atMost: 2 },
      });
    }
    return {
      name: "ssh-signatures",
      title: "SSH agent: requests over a Unix socket",
      method: `${rounds} rounds of ${REQUESTS} requests each, one after another on one connection; the median of each round. Ours is packages/ssh-protocol behind a socket, in a process of its own, without audit and look-up of the caller.`,
      rows,
    };
  } finally {
    for (const child of children) child.kill();
    await folder.remove();
  }
}
