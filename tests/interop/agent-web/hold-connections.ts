// Opens connections and sends REQUEST (environment) on each, for tests that run it as another user.
// Arguments: host, port, source port (0: any), count. Prints "open" when all have been connected, and "closed N" for
// each that the other side has ended, be it before the program has seen that it was connected. A line on standard input resets the rest; then it prints "reset" and ends.
import { once } from "node:events";
import { connect, type Socket } from "node:net";

const [host = "", port = "", sourcePort = "0", count = "1"] = process.argv.slice(2);

const sockets: Socket[] = [];
let begun = 0;
let closed = 0;
const begin = (): void => {
  if (++begun === Number(count)) process.stdout.write("open\n");
};
for (let index = 0; index < Number(count); index++) {
  const source = Number(sourcePort) === 0 ? {} : { localPort: Number(sourcePort) };
  let connected = false;
  const socket = connect({ host, port: Number(port), ...source }, () => {
    connected = true;
    socket.write(process.env["REQUEST"] ?? "");
    begin();
  });
  socket.resume();
  socket.on("error", () => undefined);
  socket.on("close", () => {
    if (!connected) begin();
    process.stdout.write(`closed ${++closed}\n`);
  });
  sockets.push(socket);
}
await once(process.stdin, "data");
process.stdin.destroy();
for (const socket of sockets) if (!socket.destroyed) socket.resetAndDestroy();
process.stdout.write("reset\n");
