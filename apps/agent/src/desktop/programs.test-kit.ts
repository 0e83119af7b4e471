import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Programs of a test that note how they were called. */
export interface TestPrograms {
  readonly folder: string;
  /** `PATH` with these programs first. */
  readonly path: string;
  /** Makes one. It writes its standard input, its arguments (one per line) and its token variable into files, then runs `script`. */
  add(name: string, script?: string): Promise<void>;
  /** The last input of a program: its `input`, its `args`, the daemon's `token`. */
  got(name: string, what: "input" | "args" | "token"): Promise<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function testPrograms(): Promise<TestPrograms> {
  const folder = await mkdtemp(join(tmpdir(), "agent-programs-"));
  return {
    folder,
    path: `${folder}:/usr/bin:/bin`,
    async add(name, script = "") {
      const file = join(folder, name);
      const notes = `cat > "${file}.input"
printf '%s\\n' "$@" > "${file}.args"
printf '%s' "$AGENT_TOKEN" > "${file}.token"`;
      await writeFile(file, `#!/bin/sh\n${notes}\n${script}\n`);
      await chmod(file, 0o755);
    },
    got: (name, what) => readFile(join(folder, `${name}.${what}`), "utf8"),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}
