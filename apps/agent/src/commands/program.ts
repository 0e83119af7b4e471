import {
  commandGroup,
  completionCommand,
  countOption,
  flagOption,
  textOption,
  versionCommand,
  type OptionSpec,
  type Program,
} from "@devplat/cli";
import { BRAND } from "../brand.ts";
import type { RemoteOption } from "../remote-settings.ts";
import { MOUNT_HELPER } from "../own-program.ts";
import { VERSION } from "../version.ts";
import type { CommandSpec } from "./common/command.ts";
import { GLOBAL_OPTIONS, globalFlags, type GlobalFlags } from "./common/global-options.ts";

const json = flagOption("Print JSON.");
const reveal = flagOption("With --dry-run: show values, on a terminal only.");
const noWait = flagOption("Do not wait until the running daemon has written the files.");
const force = flagOption("Also change a secret that belongs to an enrolment.");

const remoteOptions = {
  socket: textOption("<path>", "Socket on the host: absolute, or begins with ~/."),
  port: countOption("<port>", "Port of the SSH server (default 22)."),
  user: textOption("<name>", "Account on the host (default: as your ssh does)."),
  "proxy-jump": textOption("<hosts>", "Jump hosts, as in ssh -J, or none (default: as your ssh does)."),
  offers: textOption(
    "<list>",
    "What the host may ask for: token, browse, notify, clipboard (default all), or none.",
  ),
  policies: textOption("<list>", "Policies of lent tokens (default: those of the daemon's token)."),
  "policies-strict": flagOption("Lend nothing if the store adds other policies."),
  "token-ttl": textOption("<duration>", "Maximum life of a lent token (default 15m)."),
  ask: {
    ...textOption("<when>", "Ask you before a token is lent (default never)."),
    choices: ["never", "first", "always"],
  },
  lend: {
    ...textOption("<token>", "Lend a token made for this host, or the daemon's own (default child)."),
    choices: ["child", "own"],
  },
} satisfies Readonly<Record<RemoteOption, OptionSpec>>;

/** Settings that `ssh edit --reset` takes. */
const RESETTABLE = Object.keys(remoteOptions);
const gitLocal = flagOption("Use the configuration of this repository, not the user's.");

const loginCheckOptions = {
  "no-passwd": flagOption("Do nothing for users that this host's passwd file names."),
  quiet: flagOption("Do not print why a login is needed."),
};

const COMMANDS: readonly CommandSpec[] = [
  {
    name: "run",
    summary: "Run the daemon in the foreground.",
    options: { once: flagOption("Do one sync cycle, then exit."), reveal },
    load: async () => (await import("./run.ts")).run,
  },
  {
    name: "sync",
    summary: "Do one sync cycle, then exit.",
    options: { reveal },
    load: async () => (await import("./sync.ts")).run,
  },
  {
    name: "status",
    summary: "Show the signed-in user and the state of every rule.",
    options: {
      json,
      check: flagOption("Exit with 1 when something is failed or stale, or a forward is down."),
    },
    load: async () => (await import("./status.ts")).run,
  },
  {
    name: "login",
    summary: "Sign in with the configured method, even if a valid token exists.",
    options: { switch: flagOption("Allow another identity than the last one.") },
    load: async () => (await import("./login.ts")).login,
  },
  {
    name: "login-check",
    summary: "Sign in at the start of a shell if there is no valid token. Repeated only after hours.",
    options: loginCheckOptions,
    load: async () => (await import("./login-check.ts")).run,
  },
  {
    name: "shell-hook",
    usage: "zsh|fish|bash|sh",
    summary: "Print a function for a shell's start-up file that runs login-check when it is due.",
    options: loginCheckOptions,
    load: async () => (await import("./shell-hook.ts")).run,
  },
  {
    name: "logout",
    summary: "Remove the token, also from a running daemon.",
    options: { revoke: flagOption("Revoke the token in the store as well, if it comes from 'agent login'.") },
    load: async () => (await import("./login.ts")).logout,
  },
  {
    name: "init",
    summary: "Write a commented configuration with a store on this host.",
    options: { mount: flagOption("With the filesystem mount: secrets as files below ~/.daemon.") },
    load: async () => (await import("./init.ts")).run,
  },
  ...commandGroup("secrets", async () => import("./secrets.ts"), {
    put: {
      usage: "KEY FIELD… (field=@file, field=- for stdin, field to be asked, field=value)",
      summary: "Set fields of a secret. Its other fields stay.",
      options: { replace: flagOption("Remove the fields that are not given."), force, "no-wait": noWait },
    },
    get: {
      usage: "KEY [FIELD]",
      summary: "Show the names of a secret's fields, or the value of one.",
      options: { json, reveal: flagOption("Show all values.") },
    },
    list: { usage: "[FOLDER/]", summary: "List secrets and folders.", options: { json } },
    rm: {
      usage: "KEY",
      summary: "Remove a secret with every version. This cannot be undone.",
      options: { yes: flagOption("Do not ask."), force, "no-wait": noWait },
    },
  }),
  ...commandGroup("rules", async () => import("./rules.ts"), {
    list: { summary: "Show every rule and its state.", options: { json } },
    pause: { usage: "RULE", summary: "Stop a rule from writing until it is resumed.", options: { json } },
    resume: { usage: "RULE", summary: "Resume a paused rule.", options: { json } },
    diff: {
      usage: "RULE",
      summary: "Show the changes that a rule would make, with masked values.",
      options: { json, reveal: flagOption("Show values, on a terminal only.") },
    },
  }),
  {
    name: "restore",
    usage: "RULE",
    summary: "Restore the file as it was before the rule first changed it.",
    options: { force: flagOption("Restore also while the rule is active (the next cycle writes again).") },
    load: async () => (await import("./restore.ts")).run,
  },
  {
    name: "browse",
    usage: "URL",
    summary: "Open a web address on the workstation in front of you, else on this host.",
    load: async () => (await import("./desktop.ts")).browse,
  },
  {
    name: "notify",
    usage: "info|warning|error|attention TITLE [BODY]",
    summary: "Raise a notification on the workstation in front of you, else on this host.",
    options: { "action-url": textOption("<url>", "Web address that a click opens.") },
    load: async () => (await import("./desktop.ts")).notify,
  },
  {
    name: "clipboard",
    usage: "[TEXT]",
    summary: "Put a text, or standard input, on the clipboard in front of you, else on this host's.",
    load: async () => (await import("./desktop.ts")).clipboard,
  },
  ...commandGroup(
    "ssh",
    async () => import("./ssh.ts"),
    {
      add: {
        usage: "HOST",
        summary: "Forward this daemon's peer socket to a host, and keep the forward up.",
        options: {
          "accept-host-key": flagOption("Accept the host's key without a question."),
          force: flagOption("Save the remote without connecting to the host."),
          repin: flagOption("Pin the key of a remote again, and change nothing else."),
          ...remoteOptions,
        },
      },
      edit: {
        usage: "HOST",
        summary: "Change settings of a remote. The others stay.",
        options: {
          enable: { ...flagOption("Connect to the host."), excludes: "disable" },
          disable: flagOption("End the forward, and keep the remote."),
          ...remoteOptions,
          reset: {
            ...textOption("<setting>", "Take the default of a setting again, named like its option."),
            repeatable: true,
            choices: RESETTABLE,
          },
        },
      },
      list: { summary: "Show every remote and its state." },
      remove: { usage: "HOST", summary: "Remove a remote, and end its forward." },
      retry: { usage: "HOST", summary: "Try to connect now." },
      allow: { usage: "HOST", summary: "Lend the token that a host waits for (--ask)." },
      refuse: { usage: "HOST", summary: "Refuse the token that a host waits for, for 10 minutes." },
      revoke: { usage: "HOST", summary: "Revoke the tokens that are lent to a host." },
    },
    { json },
  ),
  ...commandGroup(
    "peer-socket",
    async () => import("./peer-socket.ts"),
    {
      allow: { summary: "Lend the token that a host behind a forward of yours waits for." },
      refuse: { summary: "Refuse the token that such a host waits for, for 10 minutes." },
      revoke: { summary: "Revoke the tokens that are lent over the peer socket." },
    },
    { json },
  ),
  {
    name: "open",
    summary: "Print a link that opens the web UI: single use, 30 seconds.",
    options: { json },
    load: async () => (await import("./daemon.ts")).open,
  },
  {
    name: "reload",
    summary: "Make the running daemon read its configuration again.",
    load: async () => (await import("./daemon.ts")).reload,
  },
  ...commandGroup("config", async () => import("./config.ts"), {
    check: { summary: "Check the configuration.", options: { json } },
    print: { summary: "Print the configuration with its defaults.", options: { json } },
    schema: { summary: "Print the JSON Schema of the configuration." },
  }),
  {
    name: "reg-export",
    usage: "[FILE]",
    summary: "Print a configuration file as a Windows registry file.",
    load: async () => (await import("./config/registry.ts")).exportRegistry,
  },
  {
    name: "reg-import",
    usage: "FILE",
    summary: "Print the configuration of a Windows registry file as YAML.",
    load: async () => (await import("./config/registry.ts")).importRegistry,
  },
  ...commandGroup("enrol", async () => import("./enrol.ts"), {
    list: { summary: "Show every enrolment with its state.", options: { json } },
    run: {
      usage: "KEY",
      summary: "Get a credential and store it.",
      options: { json, again: flagOption("Replace a stored credential.") },
    },
    skip: { usage: "KEY", summary: "Skip a credential. It is not asked for any more.", options: { json } },
    reset: { usage: "KEY", summary: "Ask for a skipped credential again.", options: { json } },
  }),
  {
    name: "exec",
    usage: "[--env VAR=path#field]… [--rule NAME]… [--restart | --signal NAME] -- COMMAND…",
    summary: "Run a command with secrets in its environment. No file is written.",
    options: {
      env: {
        ...textOption("<VAR=path#field>", "Set a variable from a field of a secret."),
        repeatable: true,
      },
      rule: { ...textOption("<name>", "Set the variables of a dotenv rule."), repeatable: true },
      restart: flagOption("Restart the command when a secret changes."),
      signal: textOption("<name>", "Send a signal to the command when a secret changes."),
    },
    load: async () => (await import("./exec.ts")).run,
  },
  {
    name: "git-credential",
    usage: "get|store|erase",
    summary: "Answer git as its credential helper, for the hosts of git_credentials.",
    load: async () => (await import("./git-credential.ts")).run,
  },
  {
    name: "ssh-env",
    usage: "[SOCKET]",
    summary: "Print the line that makes a shell use a socket of the daemon's SSH agent (default: main).",
    argumentsFrom: "ssh-env --list",
    options: {
      list: { ...flagOption("Print the name and the path of each socket."), excludes: "shell" },
      shell: {
        ...textOption("<shell>", "Kind of the shell (default: your login shell)."),
        choices: ["sh", "bash", "zsh", "fish", "csh", "tcsh", "powershell", "pwsh"],
      },
    },
    load: async () => (await import("./ssh-agent/ssh-env.ts")).run,
  },
  {
    name: "keys",
    summary: "List the keys of the daemon's SSH agent.",
    options: { json },
    load: async () => (await import("./ssh-agent/keys.ts")).list,
  },
  ...commandGroup("keys", async () => import("./ssh-agent/keys.ts"), {
    list: { summary: "The same.", options: { json } },
    unlock: {
      usage: "NAME",
      summary: "Open a key that has a passphrase, by its comment, path or fingerprint.",
      options: {
        json,
        "passphrase-stdin": flagOption("Read the passphrase from standard input, and do not ask for it."),
      },
    },
    show: { summary: "Show the daemon's keys again after 'ssh-add -D'.", options: { json } },
  }),
  ...commandGroup("git-signing", async () => import("./ssh-agent/git-signing.ts"), {
    enable: {
      summary: "Make git sign with a key of the SSH agent. A signature is tried first.",
      options: {
        json,
        local: gitLocal,
        key: textOption("<name>", "Comment or fingerprint of the key (default: the only one)."),
        force: flagOption("Replace another way of signing."),
      },
    },
    disable: {
      summary: "Restore git's configuration as it was before.",
      options: { json, local: gitLocal, force: flagOption("Also if the key of git was changed since.") },
    },
    status: { summary: "Show how git signs.", options: { json, local: gitLocal } },
  }),
  {
    name: "mount",
    summary: "Have the daemon make the filesystem mount again.",
    options: { json },
    load: async () => (await import("./mount/mount.ts")).run,
  },
  {
    name: "unmount",
    summary: `Remove the filesystem mount, until '${BRAND.command} mount' or the next start of the daemon.`,
    options: {
      json,
      lazy: flagOption("Also while files are open: it disappears now, and ends with the last of them."),
    },
    load: async () => (await import("./mount/unmount.ts")).run,
  },
  ...commandGroup("docker", async () => import("./docker/docker.ts"), {
    register: {
      summary: "Tell container engines where the volume plugin is. Shows first what it will write.",
      options: {
        json,
        system: flagOption("For engines that run as root: /etc/docker/plugins."),
        replace: flagOption("Replace the registration of another socket."),
        yes: flagOption("Do not ask."),
      },
    },
    list: { summary: "List container volumes with their state.", options: { json } },
    release: {
      usage: "VOLUME",
      summary: "Drop the mounts of a volume that its engine has forgotten, and remove its files.",
      options: { json },
    },
  }),
  ...commandGroup(
    "service",
    async () => import("./service/service.ts"),
    {
      install: {
        summary: "Make the daemon a service of your account, which starts when you log in, and start it.",
        options: { force: flagOption("Replace files that you have changed. A copy of each is kept.") },
      },
      status: {
        summary: "Show whether the service runs and the daemon answers. Exits with 1 if not.",
      },
      remove: {
        summary: "Stop the service, and remove its files. Configuration, secrets and state stay.",
      },
    },
    { json },
  ),
  {
    name: "doctor",
    summary: "Check everything that sync depends on, and print the faults.",
    options: { json },
    load: async () => (await import("./doctor.ts")).run,
  },
  completionCommand(() => PROGRAM),
  versionCommand(() => VERSION),
];

/** The command line of this program. Exit codes: 0 success, 1 error. */
export const PROGRAM: Program<GlobalFlags> = {
  name: BRAND.command,
  description: "Keeps local files in step with the credentials of a secrets store.",
  commands: COMMANDS,
  globalOptions: GLOBAL_OPTIONS,
  flags: globalFlags,
  debug: { isOn: ({ logLevel }) => logLevel === "debug", hint: "--log-level debug shows where" },
};

/** The mount helper, with the options of every command. */
export const MOUNT_HELPER_PROGRAM: Program<GlobalFlags> = {
  ...PROGRAM,
  commands: [
    {
      name: MOUNT_HELPER,
      summary: "Mount for a daemon whose service forbids new privileges.",
      options: {},
      load: async () => (await import("./mount/helper.ts")).run,
    },
  ],
};
