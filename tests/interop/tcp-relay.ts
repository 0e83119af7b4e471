import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A relay before a TCP server, which a test can cut. */
export interface TcpRelay {
  readonly port: number;
  /** Ends all connections, and each new one immediately. */
  cut(): void;
  restore(): void;
  stop(): void;
}

/** @param address where it listens; default a free port of loopback */
export async function startTcpRelay(
  targetPort: number,
  address: { readonly host: string; readonly port: number } = { host: "127.0.0.1", port: 0 },
): Promise<TcpRelay> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const target = connect(targetPort, "127.0.0.1");
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => undefined);
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  server.listen(address);
  await once(server, "listening");
  const cut = (): void => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    restore: () => void (isCut = false),
    stop: () => {
      cut();
      server.close();
    },
  };
}
