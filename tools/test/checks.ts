import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** The checks that read the code without running it, by the name of their npm script. */
export const CHECKS = {
  typecheck: ["tsc", "-p", "tsconfig.json"],
  lint: ["oxlint", "--type-aware", "--deny-warnings"],
  "format:check": ["oxfmt", "--check", "."],
} as const;

/** Runs one check, its output shown as it comes; whether it found nothing. */
export async function runCheck(root: string, name: keyof typeof CHECKS): Promise<boolean> {
  const [program, ...args] = CHECKS[name];
  const child = spawn(join(root, "node_modules/.bin", program), args, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code] = (await once(child, "exit")) as [number | null];
  return code === 0;
}
