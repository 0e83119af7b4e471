/** A test that cannot run as another system, and the reason. */
export interface LeftOut {
  readonly systems: readonly ("win32" | "darwin")[];
  readonly file: string;
  /** Undefined: the whole file. */
  readonly title?: string;
  readonly reason: string;
}

const WINDOWS = ["win32"] as const;
const BOTH = ["win32", "darwin"] as const;
const CHILD = "a child process of the test has paths in its code, and sees this system";
const MODES = "it is about modes of files, which Windows does not have";

/** Every entry must name a test that is there. */
export const LEFT_OUT: readonly LeftOut[] = [
  {
    systems: BOTH,
    file: "apps/agent/src/config/faults.test.ts",
    title: "store mtls os without a token",
    reason: "mtls+os is for Linux only, and is refused with another message",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/config/faults.test.ts",
    title: "agent relay to a pipe",
    reason: "Windows has pipes",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/config/load.test.ts",
    reason:
      "it reads policies from files with owners and modes; Windows has the registry, which policy.test.ts tests",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/config/policy.test.ts",
    reason: "its reg.exe is a shell script with paths in it; it has the rules of Windows as a parameter",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/config/registry.test.ts",
    reason: "its configurations have paths of Linux",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/config/as-written.test.ts",
    reason: "its configurations have paths of Linux",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/config/mounted-rules.test.ts",
    reason: "the mount is for Linux only",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/agent-files/places.test.ts",
    reason: "it has the folders of Linux; those of Windows are in platform.test.ts",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/sync/target/write-target.test.ts",
    title: "is taken back, also from a file that is gone, and the journal is empty then",
    reason: "it looks for the folders of Linux",
  },
  {
    systems: WINDOWS,
    file: "apps/agent/src/sync/target/write-target.test.ts",
    title: "EBUSY: is written in place, keeps its inode, and the result tells it [agent 13.5]",
    reason: "it replaces a function of node:fs, which the code does not get from there in this run",
  },
  {
    systems: WINDOWS,
    file: "packages/base/src/atomic-file.test.ts",
    title: "shows the complete old or new content when killed at any moment",
    reason: CHILD,
  },
  {
    systems: WINDOWS,
    file: "packages/base/src/system/process-signal.test.ts",
    title: "reach the children of a group's leader, and do nothing after its end",
    reason: "Windows has no process groups",
  },
  {
    systems: WINDOWS,
    file: "packages/cli/src/cli.test.ts",
    title: "bash offers the next word, and the options of a command",
    reason: CHILD,
  },
  {
    systems: WINDOWS,
    file: "packages/secret-store/src/embedded/embedded-store.test.ts",
    title: "refuses a folder that others can open, with a hint",
    reason: MODES,
  },
  {
    systems: WINDOWS,
    file: "packages/secret-store/src/embedded/embedded-store.test.ts",
    title: "refuses a database that others can open, with a hint",
    reason: MODES,
  },
  {
    systems: WINDOWS,
    file: "packages/secret-store/src/embedded/embedded-store.test.ts",
    title: "refuses a key file that others can open, with a hint",
    reason: MODES,
  },
  {
    systems: WINDOWS,
    file: "packages/secret-store/src/embedded/embedded-store.test.ts",
    title: "reports another process's write [agent 11.10]",
    reason: CHILD,
  },
  {
    systems: WINDOWS,
    file: "packages/secret-store/src/embedded/embedded-store.test.ts",
    title: "after a kill during a write, the store opens with complete versions only",
    reason: CHILD,
  },
  {
    systems: WINDOWS,
    file: "packages/ssh-protocol/src/agent/openssh.test.ts",
    reason: "OpenSSH of this system connects to a Unix socket",
  },
];
