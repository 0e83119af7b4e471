import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { TestkitError } from "./errors.ts";
import { onPath, peerCache, pinsKey } from "./peer-programs.ts";

const SOURCES = resolve(import.meta.dirname, "../../../tools/clients");

const GO_PINS = ["go.mod", "go.sum", "main.go"];

/** A git client of another make, as a command line to which `VERB URL FOLDER` is added. */
export interface ClientProgram {
  readonly command: string;
  readonly args: readonly string[];
}

/**
 * The git clients that `npm run setup:peers` built from tools/clients. tools/clients/build.sh computes the same
 * folders.
 *
 * @throws TestkitError `peer_missing` when one is not built
 */
export function clientPrograms(): Record<"dulwich" | "pygit2" | "go-git" | "JGit", ClientProgram> {
  const python = join(builtFolder("python", ["requirements.txt"]), "bin/python");
  const goGit = join(builtFolder("go-git", GO_PINS), "client");
  const jgit = builtFolder("jgit", ["pom.xml", "jars.sha256", "Client.java"]);
  for (const path of [python, goGit, join(jgit, "Client.class")]) {
    if (!existsSync(path)) throw TestkitError.missing("the builds of git clients");
  }
  return {
    dulwich: { command: python, args: [join(SOURCES, "python/dulwich_client.py")] },
    pygit2: { command: python, args: [join(SOURCES, "python/pygit2_client.py")] },
    "go-git": { command: goGit, args: [] },
    JGit: {
      command: onPath("java") ?? "java",
      args: [
        // Short-lived: one thread to collect, no late compiler.
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        // Not the user's own configuration; and JGit keeps there what it measured of the file system, a second's work.
        `-Duser.home=${jgit}`,
        "-cp",
        `${jgit}:${jgit}/jars/*`,
        "Client",
      ],
    },
  };
}

/**
 * Path of the SSH client that `npm run setup:peers` built with Go's x/crypto. It uses an SSH agent.
 *
 * @throws TestkitError `peer_missing`
 */
export function goSshClient(): string {
  const path = join(builtFolder("go-ssh", GO_PINS), "client");
  if (!existsSync(path)) throw TestkitError.missing("the build of the Go client of SSH");
  return path;
}

/**
 * Path of the Go program that reads a file while it changes, built by `npm run setup:peers`.
 *
 * @throws TestkitError `peer_missing`
 */
export function goFileReader(): string {
  const path = join(builtFolder("go-reader", ["go.mod", "main.go"]), "client");
  if (!existsSync(path)) throw TestkitError.missing("the build of the Go reader of files");
  return path;
}

function builtFolder(name: string, pins: readonly string[]): string {
  return join(peerCache(), `${name}-${pinsKey(`tools/clients/${name}`, pins)}`);
}
