import { startPeer, type Peer } from "./peer.ts";
import { run, type Finished } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** A notification as the desktop's service has taken it. */
export interface ShownNotification {
  readonly application: string;
  readonly title: string;
  /** With the markup that the service reads. */
  readonly body: string;
}

/** A real desktop without a screen: an X server, a session bus and a notification service. */
export interface TestDesktop {
  /** Environment of a program in this desktop's session. */
  readonly environment: { readonly DISPLAY: string; readonly DBUS_SESSION_BUS_ADDRESS: string };
  /** The bytes on the clipboard; empty when nobody owns it. */
  clipboard(): Promise<Buffer>;
  /** Everything that was notified so far, newest first; closes what is shown. */
  notifications(): Promise<ShownNotification[]>;
  /** Ends the notification service alone. */
  stopNotifications(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts Xvfb, dbus-daemon and dunst. */
export async function startDesktop(): Promise<TestDesktop> {
  const folder = await tempFolder("desktop");
  const peers: Peer[] = [];
  const stop = async (): Promise<void> => {
    for (const peer of peers.toReversed()) await peer.stop();
    await folder.remove();
  };
  const start = async (
    command: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    isReady: (output: string) => boolean | Promise<boolean>,
  ): Promise<Peer> => {
    const options = { env: { PATH: process.env["PATH"], HOME: folder.path, ...env } };
    const peer = await startPeer(command, async () => ({ command, args, options, isReady }));
    peers.push(peer);
    return peer;
  };
  try {
    // It takes the first free display and prints its number.
    const server = await start(
      "Xvfb",
      ["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"],
      {},
      (output) => /^\d+\n/m.test(output),
    );
    const bus = await start(
      "dbus-daemon",
      ["--session", "--nofork", "--nopidfile", "--print-address=1", `--address=unix:path=${folder.path}/bus`],
      {},
      (output) => /^unix:.*\n/m.test(output),
    );
    const environment = {
      DISPLAY: `:${/^(\d+)$/m.exec(server.output())?.[1] ?? ""}`,
      DBUS_SESSION_BUS_ADDRESS: /^unix:.*$/m.exec(bus.output())?.[0] ?? "",
    };
    const ask = (command: string, ...args: string[]): Promise<Finished> =>
      run(command, args, { env: { PATH: process.env["PATH"], HOME: folder.path, ...environment } });
    const service = await start("dunst", [], environment, async () => {
      return (await ask("dunstctl", "is-paused")).code === 0;
    });
    return {
      environment,
      // Over base64: what a command prints is read as text.
      clipboard: async () => {
        const { stdout } = await ask("sh", "-c", "xclip -selection clipboard -out | base64 -w0");
        return Buffer.from(stdout, "base64");
      },
      notifications: async () => {
        await ask("dunstctl", "close-all");
        while ((await ask("dunstctl", "count", "displayed")).stdout.trim() !== "0");
        return parseHistory((await ask("dunstctl", "history")).stdout);
      },
      stopNotifications: async () => void (await service.stop()),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

type HistoryEntry = Readonly<Record<"appname" | "summary" | "body", { readonly data: string }>>;

/** The D-Bus value that `dunstctl history` prints as JSON. */
function parseHistory(text: string): ShownNotification[] {
  const { data } = JSON.parse(text) as { data: readonly (readonly HistoryEntry[])[] };
  return (data[0] ?? []).map(({ appname, summary, body }) => ({
    application: appname.data,
    title: summary.data,
    body: body.data,
  }));
}
