import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "@devplat/testkit";
import { HEADERS } from "./raw-fetch.ts";

/** Cost of many concurrent transfers. */
export interface ParallelTransfers {
  /** From the first request to the last byte of the last one. */
  readonly seconds: number;
  /** Sum of all transfers. */
  readonly bytes: number;
}

/**
 * Sends many concurrent copies of a request with one curl, which discards the responses. Each response must be 200.
 *
 * @param request file with the body to post; undefined: GET
 */
export async function inParallel(
  url: string,
  request: string | undefined,
  count: number,
  work: string,
): Promise<ParallelTransfers> {
  const entry = [
    `url = "${url}"`,
    'output = "/dev/null"',
    'write-out = "%{http_code} %{size_download}\\n"',
    ...(request === undefined
      ? []
      : [`data-binary = "@${request}"`, ...HEADERS.map((header) => `header = "${header}"`)]),
  ].join("\n");
  const config = join(work, "parallel.curl");
  await writeFile(config, Array.from({ length: count }, () => entry).join("\nnext\n"));
  const startedAt = performance.now();
  const args = ["-sS", "-Z", "--parallel-immediate", "--parallel-max", String(count), "-K", config];
  const { stdout, code } = await run("curl", args, { timeoutMs: 600_000 });
  const seconds = (performance.now() - startedAt) / 1000;
  const lines = stdout.trim().split("\n");
  const good = lines.filter((line) => line.startsWith("200 "));
  if (code !== 0 || good.length !== count) {
    const statuses = [...new Set(lines.map((line) => line.split(" ")[0]))].join(", ");
    throw new Error(
      `${count - good.length} of ${count} transfers failed: curl ended with ${code}, HTTP ${statuses}`,
    );
  }
  return { seconds, bytes: good.reduce((sum, line) => sum + Number(line.split(" ")[1]), 0) };
}
