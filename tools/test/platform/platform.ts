/**
 * `npm run test:platform -- win32|darwin [PART …]`: runs tests of code that depends on the operating system, as if it ran on another
 * one (as-platform.ts). left-out.ts has the tests that cannot, with reasons.
 */
import { resolve } from "node:path";
import { runAsPlatform } from "./run-as-platform.ts";

const root = resolve(import.meta.dirname, "../../..");
const [system, ...parts] = process.argv.slice(2);
if (system !== "win32" && system !== "darwin") {
  process.stderr.write("Usage: npm run test:platform -- win32|darwin [PART ...]\n");
  process.exitCode = 2;
} else {
  const { code, leftOut, output } = await runAsPlatform(root, system, parts, "inherit");
  for (const { file, title, reason } of leftOut)
    process.stdout.write(`left out: ${file}${title === undefined ? "" : `: ${title}`} (${reason})\n`);
  if (output !== "") process.stdout.write(`${output}\n`);
  process.exitCode = code;
}
