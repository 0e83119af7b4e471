import type { CommandSpec, OptionSpec, OptionSpecs } from "./command.ts";

const json: OptionSpec = { type: "boolean", description: "Print JSON." };
const reveal: OptionSpec = {
  type: "boolean",
  description: "With --dry-run: show values, on a terminal only.",
};

const loginCheckOptions: OptionSpecs = {
  "no-passwd": { type: "boolean", description: "Do nothing for users that this host's passwd file names." },
  quiet: { type: "boolean", description: "Do not print why a login is needed." },
};
const noWait: OptionSpec = {
  type: "boolean",
  description: "Do not wait for the running daemon to have written the files.",
};
const force: OptionSpec = { type: "boolean", description: "Also a secret that an enrolment has made." };

/** In the order of the help. */
export const COMMANDS: readonly CommandSpec[] = [
  {
    name: "run",
    summary: "Run the daemon in the foreground.",
    options: { once: { type: "boolean", description: "Do one sync cycle, then exit." }, reveal },
    load: () => import("./run.ts"),
  },
  {
    name: "sync",
    summary: "Do one sync cycle, then exit.",
    options: { reveal },
    load: () => import("./sync.ts"),
  },
  {
    name: "status",
    summary: "Show who is signed in, and the state of every rule.",
    options: {
      json,
      check: { type: "boolean", description: "Exit with 1 when something is failed or stale." },
    },
    load: () => import("./status.ts"),
  },
  {
    name: "login",
    summary: "Sign in anew with the configured method, whatever token is at hand.",
    options: { switch: { type: "boolean", description: "Become another identity than the last one." } },
    load: () => import("./login.ts"),
  },
  {
    name: "login-check",
    summary:
      "For the start of a shell: sign in if there is no valid token; silent for hours after each look.",
    options: loginCheckOptions,
    load: () => import("./login-check.ts"),
  },
  {
    name: "shell-hook",
    usage: "zsh|fish|bash|sh",
    summary: "Print a function for a shell's start-up file that runs login-check when it is due.",
    options: loginCheckOptions,
    arguments: { min: 1, max: 1 },
    load: () => import("./shell-hook.ts"),
  },
  {
    name: "logout",
    summary: "Remove the token; a running daemon forgets it too.",
    options: {
      revoke: { type: "boolean", description: "End it in the store as well, if it is of a login of ours." },
    },
    load: () => import("./logout.ts"),
  },
  {
    name: "init",
    summary: "Write a commented configuration with a store on this host.",
    load: () => import("./init.ts"),
  },
  {
    name: "secrets put",
    usage: "KEY FIELD… (field=@file, field=- for stdin, field to be asked, field=value)",
    summary: "Set fields of a secret; its other fields stay.",
    options: {
      replace: { type: "boolean", description: "Drop the fields that are not given." },
      force,
      "no-wait": noWait,
    },
    arguments: { min: 2, max: 200 },
    load: () => import("./secrets-put.ts"),
  },
  {
    name: "secrets get",
    usage: "KEY [FIELD]",
    summary: "Show the names of a secret's fields, or the value of one.",
    options: { json, reveal: { type: "boolean", description: "Show all values." } },
    arguments: { min: 1, max: 2 },
    load: () => import("./secrets-get.ts"),
  },
  {
    name: "secrets list",
    usage: "[FOLDER/]",
    summary: "List secrets and folders.",
    options: { json },
    arguments: { min: 0, max: 1 },
    load: () => import("./secrets-list.ts"),
  },
  {
    name: "secrets rm",
    usage: "KEY",
    summary: "Remove a secret with every version; there is no undelete.",
    options: { yes: { type: "boolean", description: "Do not ask." }, force, "no-wait": noWait },
    arguments: { min: 1, max: 1 },
    load: () => import("./secrets-rm.ts"),
  },
  {
    name: "rules list",
    summary: "Show every rule and its state.",
    options: { json },
    load: () => import("./rules-list.ts"),
  },
  {
    name: "rules pause",
    usage: "RULE",
    summary: "Stop a rule from writing until it is resumed.",
    arguments: { min: 1, max: 1 },
    load: () => import("./rules-pause.ts"),
  },
  {
    name: "rules resume",
    usage: "RULE",
    summary: "Let a paused rule go on.",
    arguments: { min: 1, max: 1 },
    load: () => import("./rules-resume.ts"),
  },
  {
    name: "rules diff",
    usage: "RULE",
    summary: "Show what a rule would change, values masked.",
    options: { json, reveal: { type: "boolean", description: "Show values, on a terminal only." } },
    arguments: { min: 1, max: 1 },
    load: () => import("./rules-diff.ts"),
  },
  {
    name: "restore",
    usage: "RULE",
    summary: "Bring back the file as it was before the rule first touched it.",
    options: {
      force: { type: "boolean", description: "Also while the rule is active (the next cycle writes again)." },
    },
    arguments: { min: 1, max: 1 },
    load: () => import("./restore.ts"),
  },
  {
    name: "browse",
    usage: "URL",
    summary: "Open a web address on the workstation in front of you, else on this host.",
    arguments: { min: 1, max: 1 },
    load: () => import("./browse.ts"),
  },
  {
    name: "notify",
    usage: "info|warning|error|attention TITLE [BODY]",
    summary: "Raise a notification on the workstation in front of you, else on this host.",
    options: {
      "action-url": { type: "string", value: "<url>", description: "Web address that it leads to." },
    },
    arguments: { min: 2, max: 3 },
    load: () => import("./notify.ts"),
  },
  {
    name: "clipboard",
    usage: "[TEXT]",
    summary: "Put a text, or standard input, on the clipboard in front of you, else on this host's.",
    arguments: { min: 0, max: 1 },
    load: () => import("./clipboard.ts"),
  },
  {
    name: "open",
    summary: "Print a link that opens the web UI: single use, 30 seconds.",
    load: () => import("./open.ts"),
  },
  {
    name: "reload",
    summary: "Have the running daemon read its configuration again.",
    load: () => import("./reload.ts"),
  },
  {
    name: "config check",
    summary: "Check the configuration.",
    options: { json },
    load: () => import("./config-check.ts"),
  },
  {
    name: "config print",
    summary: "Print the configuration with its defaults.",
    options: { json },
    load: () => import("./config-print.ts"),
  },
  {
    name: "config schema",
    summary: "Print the JSON Schema of the configuration.",
    load: () => import("./config-schema.ts"),
  },
  {
    name: "reg-export",
    usage: "[FILE]",
    summary: "Print a configuration file as a Windows registry file.",
    arguments: { min: 0, max: 1 },
    load: () => import("./reg-export.ts"),
  },
  {
    name: "reg-import",
    usage: "FILE",
    summary: "Print the configuration of a Windows registry file as YAML.",
    arguments: { min: 1, max: 1 },
    load: () => import("./reg-import.ts"),
  },
  {
    name: "enrol list",
    summary: "Show every enrolment and how it stands.",
    options: { json },
    load: () => import("./enrol-list.ts"),
  },
  {
    name: "enrol run",
    usage: "KEY",
    summary: "Get a credential and store it.",
    options: { again: { type: "boolean", description: "Replace one that is there." } },
    arguments: { min: 1, max: 1 },
    load: () => import("./enrol-run.ts"),
  },
  {
    name: "enrol skip",
    usage: "KEY",
    summary: "Do without a credential; it is not asked for any more.",
    arguments: { min: 1, max: 1 },
    load: () => import("./enrol-skip.ts"),
  },
  {
    name: "enrol reset",
    usage: "KEY",
    summary: "Ask for a skipped credential again.",
    arguments: { min: 1, max: 1 },
    load: () => import("./enrol-reset.ts"),
  },
  {
    name: "exec",
    usage: "[--env VAR=path#field]… [--rule NAME]… [--restart | --signal NAME] -- COMMAND…",
    summary: "Run a command with secrets in its environment; they are written nowhere.",
    options: {
      env: {
        type: "string",
        value: "<VAR=path#field>",
        description: "A field of a secret as a variable; repeatable.",
        repeatable: true,
      },
      rule: {
        type: "string",
        value: "<name>",
        description: "The variables of a dotenv rule; repeatable.",
        repeatable: true,
      },
      restart: { type: "boolean", description: "Start it again when a secret changes." },
      signal: { type: "string", value: "<name>", description: "Send it a signal when a secret changes." },
    },
    arguments: { min: 1, max: 10_000 },
    load: () => import("./exec.ts"),
  },
  {
    name: "git-credential",
    usage: "get|store|erase",
    summary: "Answer git as its credential helper, for the hosts of git_credentials.",
    arguments: { min: 1, max: 1 },
    load: () => import("./git-credential.ts"),
  },
  {
    name: "doctor",
    summary: "Look at everything that sync depends on, and say what is wrong.",
    options: { json },
    load: () => import("./doctor.ts"),
  },
  {
    name: "completion",
    usage: "bash|zsh|fish",
    summary: "Print a script that completes commands in a shell.",
    arguments: { min: 1, max: 1 },
    load: () => import("./completion.ts"),
  },
  { name: "version", summary: "Print the version.", options: { json }, load: () => import("./version.ts") },
];
