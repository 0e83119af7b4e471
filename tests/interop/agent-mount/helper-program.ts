/** The mount helper as a program: `helper-program.ts SOCKET`. It serves processes of its own user. */
import { createServer } from "node:net";
import { serveMountHelper } from "../../../apps/agent/src/surfaces/mount/device/mount-helper.ts";
import { peerCredentials } from "../../../apps/agent/src/surfaces/ssh-agent/peer-process/credentials.ts";

const server = createServer();
serveMountHelper(server, (socket) => {
  const credentials = peerCredentials(socket);
  credentials?.handle?.[Symbol.dispose]();
  return credentials?.uid === process.geteuid?.();
});
server.listen(process.argv[2], () => process.stdout.write(`${JSON.stringify({ event: "listening" })}\n`));
