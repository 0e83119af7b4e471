import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until, vaultPrograms } from "@devplat/testkit";
import type { Machine } from "../machine/machine.ts";
import { bootWith } from "../machine/programs.ts";

const UNIT = "agent.service";
const UNITS = "/home/ada/.config/systemd/user";
/** In the machine. The daemon's own port is 8200. */
const VAULT = "127.0.0.1:8201";
const CONFIG = "~/.config/daemon/config.yaml";

interface Report {
  readonly changed: boolean;
  readonly pid: number;
  readonly files: readonly { readonly path: string; readonly outcome: string; readonly backup?: string }[];
  readonly actions: readonly string[];
  readonly notes: readonly string[];
}

interface Status {
  readonly installed: boolean;
  readonly enabled: boolean;
  readonly active: string;
  readonly pid: number | null;
  readonly since: string | null;
  readonly restarts: number | null;
  readonly last_exit: string | null;
  readonly answers: boolean | null;
  readonly other_daemon: { readonly pid: number | null } | null;
  readonly sockets: readonly { readonly name: string; readonly enabled: boolean; readonly active: boolean }[];
  readonly problems: readonly string[];
}

describe("agent service of an ordinary user, without units of a package", () => {
  let machine: Machine;
  before(async () => {
    machine = await bootWith("agent", { "/usr/bin/vault": vaultPrograms().vault });
    await machine.addUser();
    const vault = `vault server -dev -dev-no-store-token -dev-root-token-id=root -dev-listen-address=${VAULT}`;
    await machine.sh(`systemd-run --quiet --unit=vault --setenv=HOME=/root ${vault}`);
    const store = ["driver: vault", `address: http://${VAULT}`, "auth_method: token", "kv_mount: secret"];
    await machine.sh(
      `agent init
       sed -i 's|^  driver: embedded|  ${store.join("\\n  ")}|' ${CONFIG}
       printf 'api: {enabled: true}\\n' >>${CONFIG}
       umask 077; printf root >~/.daemon-token`,
      "user",
    );
    await until(
      async () => (await machine.exec(["agent", "secrets", "list"], { account: "user" })).code === 0,
    );
  });
  after(async () => machine?.stop());

  const service = async (...args: readonly string[]) =>
    machine.exec(["agent", "service", ...args], { account: "user" });
  const install = async (...args: readonly string[]): Promise<Report> => {
    const { code, stdout, stderr } = await service("install", "--json", ...args);
    assert.equal(code, 0, `${stderr}\n${await machine.journal(UNIT, "user")}`);
    return JSON.parse(stdout) as Report;
  };
  const status = async (): Promise<Status> =>
    JSON.parse((await service("status", "--json")).stdout) as Status;
  const property = async (name: string): Promise<string> => machine.property(UNIT, name, "user");
  const outcomes = ({ files }: Report): string[] => [...new Set(files.map(({ outcome }) => outcome))];

  it("a dry run writes nothing", async () => {
    const report = await install("--dry-run");
    assert.equal(report.changed, true);
    assert.deepEqual(outcomes(report), ["written"]);
    assert.equal((await machine.exec(["ls", UNITS])).code, 2);
    const { installed, active } = await status();
    assert.deepEqual([installed, active], [false, "inactive"]);
  });

  it("install writes the units, starts the daemon, and it syncs", async () => {
    const report = await install();
    assert.equal(report.files.length, 7);
    assert.deepEqual(outcomes(report), ["written"]);
    assert.deepEqual(report.actions, [
      "enabled agent.service, agent-mount.socket, agent-api.socket, agent-peer.socket",
      "started agent-mount.socket, agent-api.socket, agent-peer.socket, agent.service",
    ]);
    assert.equal(String(report.pid), await property("MainPID"));
    assert.match(await property("ExecStart"), /path=\/usr\/bin\/agent ; argv\[\]=\/usr\/bin\/agent run/);
    await machine.sh("echo s3cret | agent secrets put example token=-", "user");
    await until(async () => (await machine.sh("cat ~/agent-example.yaml", "user")).includes("s3cret"));
    const { pid, since, last_exit, sockets, problems, ...state } = await status();
    assert.deepEqual(problems, []);
    assert.deepEqual(state, {
      ...state,
      installed: true,
      enabled: true,
      active: "active",
      restarts: 0,
      answers: true,
      other_daemon: null,
    });
    assert.equal(pid, report.pid);
    assert.equal(last_exit, null);
    assert.ok(Math.abs(Date.parse(since ?? "") - Date.now()) < 600_000, since ?? "");
    const open = sockets.filter(({ enabled, active }) => enabled && active).map(({ name }) => name);
    assert.deepEqual(open.toSorted(), ["api", "mount", "peer"]);
  });

  it("a second install changes nothing", async () => {
    const times = await machine.sh(`stat -c %Y.%i ${UNITS}/*`);
    const report = await install();
    assert.deepEqual([report.changed, outcomes(report), report.actions], [false, ["unchanged"], []]);
    assert.equal(await machine.sh(`stat -c %Y.%i ${UNITS}/*`), times);
    assert.match((await service("install")).stdout, /^nothing changed: /);
  });

  it("a killed daemon is started again", async () => {
    const first = await property("MainPID");
    await machine.must(["kill", "-KILL", first]);
    await until(
      async () => (await property("NRestarts")) === "1" && (await property("ActiveState")) === "active",
    );
    const { pid, restarts, answers } = await status();
    assert.notEqual(String(pid), first);
    assert.deepEqual([restarts, answers], [1, true]);
  });

  it("a daemon that hangs is told by status", async () => {
    const pid = await property("MainPID");
    await machine.must(["kill", "-STOP", pid]);
    const { code, stdout } = await service("status", "--json");
    await machine.must(["kill", "-CONT", pid]);
    const { active, answers, problems } = JSON.parse(stdout) as Status;
    assert.deepEqual([code, active, answers], [1, "active", false]);
    assert.match(problems.join(), /does not answer/);
  });

  it("a unit and a drop-in of the user stay, and --force keeps a copy", async () => {
    await machine.sh(
      `echo '# mine' >>${UNITS}/${UNIT}; mkdir -p ${UNITS}/${UNIT}.d; printf '[Service]\\nNice=3\\n' >${UNITS}/${UNIT}.d/own.conf`,
      "user",
    );
    const edited = await machine.sh(`cat ${UNITS}/${UNIT}`);
    assert.deepEqual(outcomes(await install()).toSorted(), ["kept", "unchanged"]);
    assert.equal(await machine.sh(`cat ${UNITS}/${UNIT}`), edited);
    const { files, actions } = await install("--force");
    const { backup } = files.find(({ outcome }) => outcome === "replaced") ?? {};
    assert.equal(await machine.sh(`cat ${backup}`), edited);
    assert.doesNotMatch(await machine.sh(`cat ${UNITS}/${UNIT}`), /mine/);
    assert.deepEqual(actions, ["restarted agent.service"]);
    assert.equal(await property("Nice"), "3");
  });

  it("a socket that the configuration turns on or off is opened or closed", async () => {
    await machine.sh(`printf 'agent: {enabled: true}\\n' >>${CONFIG}`, "user");
    assert.deepEqual((await install()).actions, ["enabled agent-ssh.socket", "restarted agent.service"]);
    const isOpen = async () => (await status()).sockets.find(({ name }) => name === "agent")?.active === true;
    assert.equal(await isOpen(), true);
    await machine.sh(`sed -i '/^agent:/d' ${CONFIG}`, "user");
    assert.deepEqual((await install()).actions, ["disabled agent-ssh.socket", "restarted agent.service"]);
    assert.equal(await isOpen(), false);
  });

  it("remove leaves configuration, secrets and the user's files, and can be repeated", async () => {
    const { code, stdout } = await service("remove", "--json");
    assert.equal(code, 0);
    assert.deepEqual(outcomes(JSON.parse(stdout) as Report), ["removed"]);
    const left = await machine.sh(`cd ${UNITS}; find . -type f -o -type l`);
    assert.match(
      left,
      /^\.\/agent\.service\.\w+\.backup\n\.\/agent\.service\.d\/own\.conf$|^\.\/agent\.service\.d\/own\.conf\n/,
    );
    assert.match(await machine.sh("agent secrets get example token", "user"), /s3cret/);
    assert.equal(await property("ActiveState"), "inactive");
    assert.match((await service("remove")).stdout, /^nothing changed: /);
    const gone = await service("status");
    assert.equal(gone.code, 1);
    assert.match(gone.stdout, /^there is no service/);
  });

  it("a daemon that was started by hand is named", async () => {
    const [command = "", ...args] = machine.command(["agent", "run"], "user");
    const daemon = spawn(command, args, { stdio: "ignore" });
    const ended = once(daemon, "exit");
    const pidFile = "$XDG_RUNTIME_DIR/daemon/daemon.pid";
    await until(async () => (await machine.sh(`cat ${pidFile} || true`, "user")) !== "");
    const pid = await machine.sh(`cat ${pidFile}`, "user");
    const { code, stderr } = await service("install");
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`a daemon with PID ${pid} runs already`));
    assert.deepEqual((await status()).other_daemon, { pid: Number(pid) });
    await machine.must(["kill", pid]);
    await ended;
  });

  it("another program on a socket of the daemon is named", async () => {
    const held = [
      "perl",
      "-MIO::Socket::UNIX",
      "-e",
      "my $socket = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1); sleep",
    ];
    const path = "/run/user/1000/daemon/api.sock";
    const [command = "", ...args] = machine.command([...held, path], "user");
    const holder = spawn(command, args, { stdio: "ignore" });
    const ended = once(holder, "exit");
    await until(async () => (await machine.exec(["test", "-S", path])).code === 0);
    const { code, stderr } = await service("install");
    const pid = await machine.sh("pgrep -x perl");
    await machine.must(["kill", pid]);
    await ended;
    await machine.must(["rm", path]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`perl, PID ${pid}, listens on ${path}`));
  });

  it("an install that is killed at any time is completed by the next one", async () => {
    const whole = performance.now();
    await install();
    const duration = performance.now() - whole;
    for (let part = 1; part <= 8; part++) {
      await service("remove");
      const [command = "", ...args] = machine.command(["agent", "service", "install"], "user");
      const child = spawn(command, args, { stdio: "ignore" });
      const ended = once(child, "exit");
      await sleep((duration * part) / 9);
      await machine.exec(["pkill", "-KILL", "-f", "service install"]);
      await ended;
      await install();
      assert.equal((await install()).changed, false, `killed at ${part}/9`);
      const names = await machine.sh(`ls -A ${UNITS}`);
      assert.doesNotMatch(names, /aside/);
      assert.equal((await status()).answers, true);
    }
  });

  it("a package's units take the place of those that were written", async () => {
    await machine.sh("mkdir -p /usr/lib/systemd/user; cp /usr/lib/units/user/* /usr/lib/systemd/user/");
    const report = await install();
    assert.deepEqual(outcomes(report), ["removed"]);
    assert.match(await property("FragmentPath"), /^\/usr\/lib\/systemd\/user\//);
    const again = await install();
    assert.deepEqual([again.changed, outcomes(again)], [false, ["packaged"]]);
    assert.equal((await service("remove")).code, 0);
    assert.equal(await property("UnitFileState"), "disabled");
    await machine.sh("rm /usr/lib/systemd/user/agent*");
    await machine.must(["systemctl", "--user", "daemon-reload"], { account: "user" });
  });

  it("a program in a path with blanks, %, $ and other letters can be a service", async () => {
    const folder = "/home/ada/my %h $HOME ä;/agent";
    await machine.must(["mkdir", "-p", folder], { account: "user" });
    await machine.must(["cp", "-rT", "/usr/lib/agent", folder], { account: "user" });
    const { code, stderr } = await machine.exec([`${folder}/agent`, "service", "install"], {
      account: "user",
    });
    assert.equal(code, 0, `${stderr}\n${await machine.journal(UNIT, "user")}`);
    const pid = await property("MainPID");
    assert.match(await machine.sh(`tr '\\0' '\\n' </proc/${pid}/cmdline; ls -l /proc/${pid}/exe`), /node/);
    assert.equal((await status()).answers, true);
    await service("remove");
  });

  it("a path that systemd does not take and a folder that is emptied are refused", async () => {
    for (const [folder, reason] of [
      ["/home/ada/a'b", /systemd takes no quotes/],
      ["/tmp/agent", /temporary folder/],
      ["/home/ada/.npm/_npx/0123/node_modules/agent", /downloaded for one run/],
    ] as const) {
      await machine.must(["mkdir", "-p", folder], { account: "user" });
      await machine.must(["cp", "-rT", "/usr/lib/agent", folder], { account: "user" });
      const { code, stderr } = await machine.exec([`${folder}/agent`, "service", "install"], {
        account: "user",
      });
      assert.equal(code, 1);
      assert.match(stderr, reason);
    }
  });

  it("root, a shell without a session and one with other folders are told what to do", async () => {
    const asRoot = await machine.exec(["env", "SUDO_USER=ada", "agent", "service", "status"]);
    assert.equal(asRoot.code, 1);
    assert.match(
      asRoot.stderr,
      /root has no service manager of its own here\nRun it without sudo, .*, ada\./,
    );
    const user = async (...assignments: string[]) =>
      machine.exec(["env", ...assignments, "agent", "service", "install"], { account: "user" });
    const bare = await user("-u", "XDG_RUNTIME_DIR", "-u", "DBUS_SESSION_BUS_ADDRESS");
    assert.match(bare.stderr, /no login session.*\n.*export XDG_RUNTIME_DIR=\/run\/user\/1000/);
    const none = await user("-u", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR=/run/user/4711");
    assert.match(none.stderr, /does not answer in \/run\/user\/4711/);
    const other = await user("XDG_STATE_HOME=/home/ada/elsewhere");
    assert.match(
      other.stderr,
      /it would use \/home\/ada\/\.local\/state\/daemon, and this shell uses \/home\/ada\/elsewhere/,
    );
  });

  it("a masked unit is refused", async () => {
    await machine.must(["systemctl", "--user", "mask", UNIT], { account: "user" });
    const { code, stderr } = await service("install");
    assert.equal(code, 1);
    assert.match(stderr, /agent\.service is masked\nRun 'systemctl --user unmask agent\.service' first/);
    await machine.must(["systemctl", "--user", "unmask", UNIT], { account: "user" });
  });
});
